// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
#include "CLinux.h"
#include "NewerCalls.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/fuse.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#endif

int clx_keep_capabilities(uint64_t kept) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  // EINVAL is for what this kernel does not know, EPERM for who has no right to narrow what programs may get.
  for (unsigned number = 0; number < 64; number++)
    if (!(kept >> number & 1) && prctl(PR_CAPBSET_DROP, number, 0, 0, 0) < 0 && errno != EINVAL
        && errno != EPERM)
      return -1;
  if (syscall(SYS_capget, &header, sets) < 0) return -1;
  for (unsigned half = 0; half < _LINUX_CAPABILITY_U32S_3; half++) {
    sets[half].permitted &= (uint32_t)(kept >> (32 * half));
    sets[half].effective = sets[half].permitted;
    sets[half].inheritable = 0;
  }
  return (int)syscall(SYS_capset, &header, sets);
}

int clx_refuse_made_code(void) {
  // PR_MDWE_REFUSE_EXEC_GAIN, from Linux 6.3 on.
  return prctl(PR_SET_MDWE, 1, 0, 0, 0) < 0 && errno != EINVAL ? -1 : 0;
}

int clx_set_filter(const void *program, unsigned short count, int all_threads) {
  struct sock_fprog filter = {.len = count, .filter = (struct sock_filter *)program};
  // Old kernels else slow a filtered thread down, against programs that run the code of others.
  unsigned flags = SECCOMP_FILTER_FLAG_SPEC_ALLOW | (all_threads ? SECCOMP_FILTER_FLAG_TSYNC : 0);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return -1;
  long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter);
  // A thread that can't be brought along is told by its number.
  return result > 0 ? (errno = ESRCH, -1) : (int)result;
}

// What the program that is started here mounts is asked of another process (seccomp_unotify(2)).
int clx_intercept_mounts(void) {
  struct sock_filter questions[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mount, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = {.len = 4, .filter = questions};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return -1;
  return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter);
}
int clx_next_intercepted(int listener, uint64_t *call, pid_t *thread) {
  struct seccomp_notif notice = {0};
  if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &notice) < 0) return -1;
  *call = notice.id;
  *thread = (pid_t)notice.pid;
  return 0;
}
int clx_answer_intercepted(int listener, uint64_t call, int error) {
  struct seccomp_notif_resp answer = {.id = call, .error = -error};
  return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}
int clx_replace_descriptor(int listener, uint64_t call, int source, int target) {
  struct seccomp_notif_addfd change = {.id = call,
                                       .flags = SECCOMP_ADDFD_FLAG_SETFD,
                                       .srcfd = (uint32_t)source,
                                       .newfd = (uint32_t)target,
                                       .newfd_flags = O_CLOEXEC};
  return ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &change) < 0 ? -1 : 0;
}
int clx_join_connection(pid_t process, int descriptor, int connection) {
  int holder = (int)syscall(SYS_pidfd_open, process, 0);
  int opened = holder < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, holder, descriptor, 0);
  uint32_t source = (uint32_t)connection;
  int result = opened < 0 ? -1 : ioctl(opened, FUSE_DEV_IOC_CLONE, &source);
  int error = errno;
  if (opened >= 0) close(opened);
  if (holder >= 0) close(holder);
  errno = error;
  return result;
}

uint32_t clx_filter_clone(void) { return SYS_clone; }
uint32_t clx_filter_clone3(void) { return SYS_clone3; }
uint32_t clx_filter_prctl(void) { return SYS_prctl; }
uint32_t clx_filter_prlimit(void) { return SYS_prlimit64; }
uint32_t clx_filter_keyctl(void) { return SYS_keyctl; }
uint32_t clx_filter_sched_getattr(void) { return SYS_sched_getattr; }
uint32_t clx_filter_sched_setattr(void) { return SYS_sched_setattr; }

// What every daemon may call. The calls of a subject stand together, whether or not ours are all among them:
// the C library, libfuse, SQLite, libcrypto and the modules of the name service choose by themselves, and
// differently with each version.
static const int32_t common_calls[] = {
    // Data and descriptors.
    SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64, SYS_preadv, SYS_pwritev,
    SYS_preadv2, SYS_pwritev2, SYS_lseek, SYS_close, SYS_close_range, SYS_dup, SYS_dup3, SYS_pipe2, SYS_fcntl,
    SYS_flock, SYS_fsync, SYS_fdatasync, SYS_sync_file_range, SYS_syncfs, SYS_sync, SYS_ftruncate,
    SYS_fallocate, SYS_fadvise64, SYS_readahead, SYS_sendfile, SYS_copy_file_range, SYS_splice, SYS_tee,
    SYS_vmsplice,
    // Names.
    SYS_openat, SYS_openat2, SYS_faccessat, SYS_faccessat2, SYS_readlinkat, SYS_getdents64, SYS_mkdirat,
    SYS_unlinkat, SYS_linkat, SYS_symlinkat, SYS_renameat2, SYS_truncate, SYS_getcwd, SYS_chdir, SYS_fchdir,
    SYS_umask, SYS_mknodat, SYS_name_to_handle_at,
    // Attributes.
    SYS_statx, SYS_fstat, SYS_statfs, SYS_fstatfs, SYS_fchmod, SYS_fchmodat, SYS_fchmodat2, SYS_fchown,
    SYS_fchownat, SYS_utimensat, SYS_getxattr, SYS_lgetxattr, SYS_fgetxattr, SYS_getxattrat, SYS_setxattr,
    SYS_lsetxattr, SYS_fsetxattr, SYS_setxattrat, SYS_listxattr, SYS_llistxattr, SYS_flistxattr,
    SYS_listxattrat, SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr, SYS_removexattrat,
    // Memory.
    SYS_brk, SYS_mmap, SYS_munmap, SYS_mprotect, SYS_mremap, SYS_madvise, SYS_msync, SYS_mincore, SYS_mseal,
    SYS_memfd_create,
    // Threads and signals.
    SYS_futex, SYS_futex_waitv, SYS_futex_wake, SYS_futex_wait, SYS_futex_requeue, SYS_set_robust_list,
    SYS_get_robust_list, SYS_set_tid_address, SYS_rseq, SYS_membarrier, SYS_sched_yield,
    SYS_sched_getaffinity, SYS_sched_getparam, SYS_sched_getscheduler, SYS_getcpu, SYS_gettid, SYS_exit,
    SYS_exit_group, SYS_restart_syscall, SYS_rt_sigreturn, SYS_rt_sigaction, SYS_rt_sigprocmask,
    SYS_rt_sigpending, SYS_rt_sigsuspend, SYS_rt_sigtimedwait, SYS_sigaltstack, SYS_tgkill, SYS_wait4,
    SYS_waitid,
    // Who and where we are.
    SYS_getpid, SYS_getppid, SYS_getpgid, SYS_getsid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid,
    SYS_getresuid, SYS_getresgid, SYS_getgroups, SYS_uname, SYS_sysinfo, SYS_getrusage, SYS_times,
    SYS_getrandom, SYS_capget,
    // Time and waiting.
    SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep, SYS_nanosleep, SYS_gettimeofday, SYS_ppoll,
    SYS_pselect6, SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait, SYS_epoll_pwait2, SYS_eventfd2,
    SYS_signalfd4, SYS_timerfd_create, SYS_timerfd_settime, SYS_timerfd_gettime,
    // Sockets, of which the filter judges what they may be.
    SYS_socketpair, SYS_bind, SYS_listen, SYS_accept, SYS_accept4, SYS_connect, SYS_shutdown,
    SYS_getsockname, SYS_getpeername, SYS_getsockopt, SYS_setsockopt, SYS_sendto, SYS_sendmsg, SYS_sendmmsg,
    SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg,
    // The processes that apps are.
    SYS_pidfd_open, SYS_pidfd_send_signal,
// What younger architectures have no numbers for.
#ifdef SYS_open
    SYS_open, SYS_creat, SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_getdents, SYS_mkdir, SYS_rmdir,
    SYS_unlink, SYS_link, SYS_symlink, SYS_rename, SYS_chmod, SYS_chown, SYS_lchown, SYS_mknod, SYS_utime,
    SYS_utimes, SYS_futimesat, SYS_dup2, SYS_pipe, SYS_poll, SYS_select, SYS_epoll_create, SYS_epoll_wait,
    SYS_eventfd, SYS_signalfd, SYS_time, SYS_getpgrp,
#endif
#ifdef SYS_getrlimit
    SYS_getrlimit, SYS_setrlimit,
#endif
#ifdef SYS_renameat
    SYS_renameat,
#endif
#ifdef SYS_newfstatat
    SYS_newfstatat,
#endif
// Control-flow enforcement, when a library is loaded.
#ifdef SYS_arch_prctl
    SYS_arch_prctl,
#endif
#ifdef SYS_map_shadow_stack
    SYS_map_shadow_stack,
#endif
};

// What root's daemon may call besides: mounts that have no place yet, its end, other people's ids and files.
static const int32_t system_calls[] = {
    SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_open_tree, SYS_mount_setattr, SYS_umount2, SYS_setfsuid,
    SYS_setfsgid, SYS_setgroups, SYS_capset, SYS_open_by_handle_at,
};

// What a program calls that is loaded, reads what it is given, and answers. What it opens is judged besides.
static const int32_t parser_calls[] = {
    SYS_read, SYS_readv, SYS_pread64, SYS_write, SYS_writev, SYS_lseek, SYS_close, SYS_dup, SYS_dup3,
    SYS_fcntl, SYS_fstat, SYS_statx, SYS_readlinkat, SYS_faccessat, SYS_fadvise64, SYS_getcwd,
    SYS_brk, SYS_mmap, SYS_munmap, SYS_mprotect, SYS_mremap, SYS_madvise, SYS_mincore,
    SYS_futex, SYS_set_robust_list, SYS_set_tid_address, SYS_rseq, SYS_sched_yield, SYS_sched_getaffinity,
    SYS_getpid, SYS_gettid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_uname, SYS_sysinfo,
    SYS_getrandom, SYS_prlimit64, SYS_prctl, SYS_execve,
    // bubblewrap's own first process waits for it.
    SYS_wait4,
    SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack, SYS_tgkill, SYS_exit,
    SYS_exit_group, SYS_restart_syscall, SYS_clock_gettime, SYS_ppoll, SYS_recvmsg, SYS_recvfrom, SYS_sendmsg,
    SYS_sendto,
#ifdef SYS_open
    SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_dup2, SYS_poll, SYS_time,
#endif
#ifdef SYS_getrlimit
    SYS_getrlimit, SYS_setrlimit,
#endif
#ifdef SYS_newfstatat
    SYS_newfstatat,
#endif
#ifdef SYS_arch_prctl
    SYS_arch_prctl,
#endif
};

// Copies as many as there is room for; how many.
static unsigned copy_calls(const int32_t *known, size_t size, int32_t *calls, unsigned room) {
  unsigned count = size / sizeof *known < room ? (unsigned)(size / sizeof *known) : room;
  memcpy(calls, known, count * sizeof *calls);
  return count;
}

unsigned clx_parser_calls(int32_t *calls, unsigned room) {
  return copy_calls(parser_calls, sizeof parser_calls, calls, room);
}

uint32_t clx_filter_openat(void) { return SYS_openat; }
#ifdef SYS_open
int64_t clx_filter_open(void) { return SYS_open; }
#else
int64_t clx_filter_open(void) { return -1; }
#endif

static int compare(const void *one, const void *other) {
  return *(const int32_t *)one - *(const int32_t *)other;
}

unsigned clx_daemon_calls(int system, int32_t *calls, unsigned room) {
  unsigned count = copy_calls(common_calls, sizeof common_calls, calls, room);
  if (system) count += copy_calls(system_calls, sizeof system_calls, calls + count, room - count);
  qsort(calls, count, sizeof *calls, compare);
  return count;
}
