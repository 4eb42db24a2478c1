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

/* x86 keeps cacheable stores in order, loads in order, and loads before stores. */
#define vhca_barrier_record()	__asm__ __volatile__("" ::: "memory")
#define vhca_barrier_doorbell()	__asm__ __volatile__("sfence" ::: "memory")
#define vhca_barrier_owner()	__asm__ __volatile__("" ::: "memory")
#define vhca_barrier_consumed()	__asm__ __volatile__("" ::: "memory")
/* A locked instruction is a full barrier, empties the write-combining buffers
 * and costs less than MFENCE.
 */
#define vhca_barrier_full() \
	__asm__ __volatile__("lock; addl $0, -4(%%rsp)" ::: "memory", "cc")
#define vhca_cpu_relax()	__asm__ __volatile__("pause" ::: "memory")

#elif defined(__aarch64__)

#define vhca_barrier_record()	__asm__ __volatile__("dmb oshst" ::: "memory")
#define vhca_barrier_doorbell()	__asm__ __volatile__("dsb st" ::: "memory")
#define vhca_barrier_owner()	__asm__ __volatile__("dmb oshld" ::: "memory")
#define vhca_barrier_consumed()	__asm__ __volatile__("dmb osh" ::: "memory")
#define vhca_barrier_full()	__asm__ __volatile__("dmb osh" ::: "memory")
#define vhca_cpu_relax()	__asm__ __volatile__("yield" ::: "memory")

#else
#error "no barriers for this architecture"
#endif

/*
 * Who pairs with whom:
 *
 * vhca_barrier_record: WQE stores before the doorbell record. Pairs with the
 *	device's read barrier between the record and the WQE.
 * vhca_barrier_doorbell: doorbell record before the doorbell. Pairs with the
 *	device's read barrier between the doorbell and the record.
 * vhca_barrier_owner: the owner bit's load before the loads of the rest of the
 *	CQE. Pairs with the device's write barrier before it stores the owner.
 * vhca_barrier_consumed: the CQE's loads before the consumer index that gives
 *	the slot back. Pairs with the device's read of that index before it
 *	writes the next CQE there.
 * vhca_barrier_full: a store before a load, one of
 *	doorbell, then kick_needed; pairs with the device's full barrier between
 *		its store of kick_needed and its last look at the doorbells;
 *	rq_pi, then rq_watch; pairs with that between rq_watch and rq_pi;
 *	arm word, then the next CQE's owner; pairs with that between the CQE and
 *		the arm word.
 */

#endif
