// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
#include "CBench.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

int bench_syncfs(int fd) { return syncfs(fd) == 0 ? 0 : errno; }

int64_t bench_process_cpu_ns(pid_t pid) {
  clockid_t clock;
  struct timespec time;
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return -1;
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}
