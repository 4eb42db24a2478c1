/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * barrier.h: the order in which the device sees our stores and we see its own.
 *
 * The device is an observer outside of this process's threads, so what the C
 * memory model offers is not enough: on arm64 it lives in the outer shareable
 * domain, and the UAR page may be mapped write-combining.
 */
#ifndef VHCA_BARRIER_H
#define VHCA_BARRIER_H

#if defined(__x86_64__)

/*
 * x86 keeps cacheable stores in order, loads in order, and loads before stores.
 * A locked instruction is a full barrier, empties the write-combining buffers,
 * and costs less than MFENCE.
 */
#define ORDER_RECORD	""
#define ORDER_DOORBELL	"sfence"
#define ORDER_OWNER	""
#define ORDER_CONSUMED	""
#define ORDER_FULL	"lock; addl $0, -4(%%rsp)"
#define CPU_RELAX	"pause"

#elif defined(__aarch64__)

#define ORDER_RECORD	"dmb oshst"
#define ORDER_DOORBELL	"dsb st"
#define ORDER_OWNER	"dmb oshld"
#define ORDER_CONSUMED	"dmb osh"
#define ORDER_FULL	"dmb osh"
#define CPU_RELAX	"yield"

#else
#error "no barriers for this architecture"
#endif

/*
 * WQE stores before the doorbell record. Pairs with the device's read barrier
 * between the record and the WQE.
 */
static inline void vhca_barrier_record(void)
{
	__asm__ __volatile__(ORDER_RECORD : : : "memory");
}

/*
 * Doorbell record before the doorbell. Pairs with the device's read barrier
 * between the doorbell and the record.
 */
static inline void vhca_barrier_doorbell(void)
{
	__asm__ __volatile__(ORDER_DOORBELL : : : "memory");
}

/*
 * The owner bit's load before the loads of the rest of the CQE. Pairs with the
 * device's write barrier before it stores the owner.
 */
static inline void vhca_barrier_owner(void)
{
	__asm__ __volatile__(ORDER_OWNER : : : "memory");
}

/*
 * The CQE's loads before the consumer index that gives the slot back. Pairs with
 * the device's read of that index before it writes the next CQE there.
 */
static inline void vhca_barrier_consumed(void)
{
	__asm__ __volatile__(ORDER_CONSUMED : : : "memory");
}

/*
 * A store before a load, one of
 * doorbell, then kick_needed: pairs with the device's full barrier between its
 *	store of kick_needed and its last look at the doorbells;
 * rq_pi, then rq_watch: pairs with that between rq_watch and rq_pi;
 * tell, then the SQ's lock: pairs with that between its unlock and the look at tell, in
 *	vhca_qp_kick() and vhca_qp_tell();
 * tell taken back, then rq_pi: pairs with that between rq_pi and tell, in tell_watcher();
 * arm word, then the next CQE's owner: pairs with that between the CQE and the
 *	arm word.
 */
static inline void vhca_barrier_full(void)
{
	__asm__ __volatile__(ORDER_FULL : : : "memory", "cc");
}

/* In a loop that waits for another CPU. */
static inline void vhca_cpu_relax(void)
{
	__asm__ __volatile__(CPU_RELAX : : : "memory");
}

#endif
