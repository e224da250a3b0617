// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
#include "CBench.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int bench_syncfs(int fd) { return syncfs(fd) == 0 ? 0 : errno; }

int64_t bench_process_cpu_ns(pid_t pid) {
  clockid_t clock;
  struct timespec time;
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return -1;
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

// The first call that fails ends it; what is open is closed by the end of the program.
int bench_take_mount(pid_t pid, const char *path, const char *target) {
  char place[64];
  snprintf(place, sizeof place, "/proc/%d/ns/mnt", (int)pid);
  int own = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
  int other = open(place, O_RDONLY | O_CLOEXEC);
  if (own < 0 || other < 0 || setns(other, CLONE_NEWNS) != 0) return errno;
  int tree = (int)syscall(SYS_open_tree, AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  int error = errno;
  if (setns(own, CLONE_NEWNS) != 0) return errno;
  if (tree < 0) return error;
  int moved = (int)syscall(SYS_move_mount, tree, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH);
  return moved == 0 ? 0 : errno;
}
