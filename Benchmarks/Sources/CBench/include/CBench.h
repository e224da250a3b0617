// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
// What the benchmarks need from Linux and Swift's Glibc module does not show.
#ifndef CBENCH_H
#define CBENCH_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/xattr.h>

// Necessary because syncfs(2) is declared under _GNU_SOURCE only. Returns 0 or an errno.
int bench_syncfs(int fd);

// Necessary because the clock id of another process is made by a C library call that hides its errno
// convention. The CPU time that all threads of a process have used, living and ended, in nanoseconds; -1 if
// it is gone. It is utime + stime of /proc/PID/stat, with the resolution of the scheduler instead of a clock
// tick.
int64_t bench_process_cpu_ns(pid_t pid);

// Necessary because setns(2) is declared under _GNU_SOURCE only, and open_tree(2) and move_mount(2) not at
// all in older C libraries. Mounts what a process sees at a path also here, on a directory. Returns 0 or an
// errno. The caller must have one thread.
int bench_take_mount(pid_t pid, const char *path, const char *target);

#endif
