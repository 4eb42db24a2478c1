// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * device.c: the list of devices, from /sys/class/vhca.
 *
 * A device is the same object in each list, as long as it is there: librdmacm and others
 * compare pointers to tell which devices have come and gone.
 */
#include <ctype.h>
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "vhca_verbs.h"

#define CLASS_PATH	"/class/vhca"

/* Both are in the library's ABI, though in no public header. */
const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

/* Those that the last scan found, a reference each. */
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vhca_device *known;

/* "vhca" and a number, and nothing else, or -1. */
static int name_to_index(const char *name)
{
	int index, end = 0;

	if (sscanf(name, "vhca%d%n", &index, &end) != 1 || name[end] || !isdigit(name[4]))
		return -1;
	return index;
}

static int select_vhca(const struct dirent *entry)
{
	return name_to_index(entry->d_name) >= 0;
}

static int by_index(const struct dirent **a, const struct dirent **b)
{
	return name_to_index((*a)->d_name) - name_to_index((*b)->d_name);
}

static __be64 read_guid(const char *path)
{
	unsigned int part[4];
	char text[32];

	if (ibv_read_sysfs_file(path, "node_guid", text, sizeof(text)) < 0 ||
	    sscanf(text, "%4x:%4x:%4x:%4x", &part[0], &part[1], &part[2], &part[3]) != 4)
		return 0;
	return htobe64((uint64_t)part[0] << 48 | (uint64_t)part[1] << 32 |
		       (uint64_t)part[2] << 16 | part[3]);
}

static int read_abi_version(const char *path)
{
	char text[16];

	if (ibv_read_sysfs_file(path, "abi_version", text, sizeof(text)) < 0)
		return -1;
	return atoi(text);
}

static struct vhca_device *device_new(const char *class_path, int index)
{
	struct vhca_device *dev = calloc(1, sizeof(*dev));
	struct ibv_device *ibv;
	struct stat st;

	if (!dev)
		return NULL;
	dev->index = index;
	dev->refs = 1;
	ibv = &dev->ibv;
	ibv->node_type = IBV_NODE_CA;
	ibv->transport_type = IBV_TRANSPORT_IB;
	snprintf(ibv->name, sizeof(ibv->name), "vhca%d", index);
	snprintf(ibv->dev_name, sizeof(ibv->dev_name), "vhca%d", index);
	snprintf(ibv->dev_path, sizeof(ibv->dev_path), "%s/vhca%d", class_path, index);
	snprintf(ibv->ibdev_path, sizeof(ibv->ibdev_path), "%s/vhca%d", class_path, index);
	if (stat(ibv->dev_path, &st) || read_abi_version(ibv->dev_path) != VHCA_ABI_VERSION) {
		free(dev);
		return NULL;
	}
	dev->inode = st.st_ino;
	dev->guid = read_guid(ibv->dev_path);
	return dev;
}

void vhca_device_get(struct vhca_device *dev)
{
	__atomic_add_fetch(&dev->refs, 1, __ATOMIC_RELAXED);
}

void vhca_device_put(struct vhca_device *dev)
{
	if (!__atomic_sub_fetch(&dev->refs, 1, __ATOMIC_ACQ_REL))
		free(dev);
}

/* One that came after another one had gone has its name, and another directory. */
static bool is_there(const struct vhca_device *dev)
{
	struct stat st;

	return !stat(dev->ibv.dev_path, &st) && st.st_ino == dev->inode;
}

/* Take the device of that number out of those known, or make it. */
static struct vhca_device *device_find(const char *class_path, int index)
{
	struct vhca_device **link, *dev;

	for (link = &known; *link; link = &(*link)->next) {
		dev = *link;
		if (dev->index != index || !is_there(dev))
			continue;
		*link = dev->next;
		return dev;
	}
	return device_new(class_path, index);
}

/* Devices of another ABI version are left out: they cannot be opened. known_lock is held. */
static int fill_list(struct ibv_device **list, const char *class_path, struct dirent **entries,
		     int n)
{
	struct vhca_device *now = NULL, *dev;
	int i, count = 0;

	for (i = 0; i < n; i++) {
		dev = device_find(class_path, name_to_index(entries[i]->d_name));
		free(entries[i]);
		if (!dev)
			continue;
		dev->next = now;
		now = dev;
		vhca_device_get(dev);
		list[count++] = &dev->ibv;
	}
	while (known) {
		dev = known;
		known = dev->next;
		vhca_device_put(dev);
	}
	known = now;
	return count;
}

/* What is in @class_path, and how many in *@count; known_lock is held. */
static struct ibv_device **scan(const char *class_path, int *count)
{
	struct dirent **entries = NULL;
	struct ibv_device **list;
	int n;

	n = scandir(class_path, &entries, select_vhca, by_index);
	if (n < 0 && errno != ENOENT)
		return NULL;
	list = calloc(n < 0 ? 1 : (size_t)n + 1, sizeof(*list));
	if (!list) {
		while (n > 0)
			free(entries[--n]);
		free(entries);
		return NULL;
	}
	*count = fill_list(list, class_path, entries, n);
	free(entries);
	return list;
}

VHCA_EXPORT struct ibv_device **ibv_get_device_list(int *num)
{
	char class_path[IBV_SYSFS_PATH_MAX - IBV_SYSFS_NAME_MAX];
	struct ibv_device **list;
	int count = 0;

	snprintf(class_path, sizeof(class_path), "%s" CLASS_PATH, ibv_get_sysfs_path());
	pthread_mutex_lock(&known_lock);
	list = scan(class_path, &count);
	pthread_mutex_unlock(&known_lock);
	if (num)
		*num = count;
	return list;
}

VHCA_EXPORT void ibv_free_device_list(struct ibv_device **list)
{
	int i;

	for (i = 0; list[i]; i++)
		vhca_device_put(to_vdev(list[i]));
	free(list);
}

static bool is_device_of(struct ibv_device *device, const struct stat *st)
{
	char want[32], dev[32];

	snprintf(want, sizeof(want), "%u:%u", major(st->st_rdev), minor(st->st_rdev));
	return ibv_read_sysfs_file(device->dev_path, "dev", dev, sizeof(dev)) > 0 &&
	       !strcmp(dev, want);
}

/**
 * vhca_device_of_file - the device behind an open file
 * @fd: descriptor
 *
 * Return: the device, to be given back by vhca_device_put(), or NULL with errno.
 */
struct ibv_device *vhca_device_of_file(int fd)
{
	struct ibv_device *found = NULL;
	struct ibv_device **list;
	struct stat st;
	int i;

	if (fstat(fd, &st))
		return NULL;
	list = ibv_get_device_list(NULL);
	if (!list)
		return NULL;
	for (i = 0; list[i] && !found; i++)
		if (S_ISCHR(st.st_mode) && is_device_of(list[i], &st))
			found = list[i];
	if (found)
		vhca_device_get(to_vdev(found));
	ibv_free_device_list(list);
	return found ? found : vhca_null(ENODEV);
}

VHCA_EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

VHCA_EXPORT int ibv_get_device_index(struct ibv_device *device)
{
	return to_vdev(device)->index;
}

VHCA_EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
	return to_vdev(device)->guid;
}
