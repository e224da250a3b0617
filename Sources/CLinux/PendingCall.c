// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

#include "CLinux.h"
#include "NewerCalls.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/syscall.h>

// The descriptors among its arguments of what a call changes.
enum { nothing = 0, first = 1, second = 2, third = 4 };
enum { named = CLX_CHANGES_NAMED, other = CLX_CHANGES_OTHER };

int clx_call_changes(long call, const uint64_t *_Nonnull arguments) {
  switch (call) {
  // A page that is not in memory.
  case -1:
  case SYS_close: case SYS_close_range: case SYS_dup: case SYS_dup3: case SYS_pipe2:
  case SYS_read: case SYS_pread64: case SYS_readv: case SYS_preadv: case SYS_preadv2:
  case SYS_lseek: case SYS_getdents64: case SYS_readlinkat: case SYS_fadvise64: case SYS_readahead:
  case SYS_statx: case SYS_newfstatat: case SYS_fstat: case SYS_fstatfs:
#ifdef SYS_stat
  case SYS_stat: case SYS_lstat: case SYS_readlink: case SYS_access: case SYS_getdents:
  case SYS_dup2: case SYS_pipe:
#endif
  case SYS_statfs: case SYS_faccessat: case SYS_faccessat2: case SYS_name_to_handle_at:
  case SYS_getxattr: case SYS_lgetxattr: case SYS_fgetxattr: case SYS_getxattrat:
  case SYS_listxattr: case SYS_llistxattr: case SYS_flistxattr: case SYS_listxattrat:
  case SYS_getcwd: case SYS_chdir: case SYS_fchdir: case SYS_umask:
  // Ours look at what others have made (openToExamine).
  case SYS_openat2:
  // What was written is the same whenever it reaches the disk.
  case SYS_syncfs: case SYS_sync: case SYS_msync:
  case SYS_brk: case SYS_mmap: case SYS_munmap: case SYS_mprotect: case SYS_mremap: case SYS_madvise:
  case SYS_mincore: case SYS_mseal: case SYS_memfd_create:
  case SYS_futex: case SYS_futex_waitv: case SYS_futex_wake: case SYS_futex_wait: case SYS_futex_requeue:
  case SYS_set_robust_list: case SYS_get_robust_list: case SYS_set_tid_address: case SYS_rseq:
  case SYS_membarrier: case SYS_sched_yield: case SYS_sched_getaffinity: case SYS_sched_getparam:
  case SYS_sched_getscheduler: case SYS_sched_getattr: case SYS_sched_setattr: case SYS_getcpu:
  case SYS_gettid: case SYS_exit: case SYS_exit_group: case SYS_restart_syscall: case SYS_clone:
  case SYS_clone3: case SYS_prctl: case SYS_prlimit64:
  case SYS_rt_sigreturn: case SYS_rt_sigaction: case SYS_rt_sigprocmask: case SYS_rt_sigpending:
  case SYS_rt_sigsuspend: case SYS_rt_sigtimedwait: case SYS_sigaltstack: case SYS_wait4: case SYS_waitid:
  case SYS_getpid: case SYS_getppid: case SYS_getpgid: case SYS_getsid: case SYS_getuid: case SYS_geteuid:
  case SYS_getgid: case SYS_getegid: case SYS_getresuid: case SYS_getresgid: case SYS_getgroups:
  case SYS_uname: case SYS_sysinfo: case SYS_getrusage: case SYS_times: case SYS_getrandom: case SYS_capget:
  case SYS_setfsuid: case SYS_setfsgid: case SYS_setgroups: case SYS_capset:
  case SYS_clock_gettime: case SYS_clock_getres: case SYS_clock_nanosleep: case SYS_nanosleep:
  case SYS_gettimeofday: case SYS_ppoll: case SYS_pselect6: case SYS_epoll_create1: case SYS_epoll_ctl:
  case SYS_epoll_pwait: case SYS_epoll_pwait2: case SYS_eventfd2: case SYS_signalfd4:
  case SYS_timerfd_create: case SYS_timerfd_settime: case SYS_timerfd_gettime:
  case SYS_socket: case SYS_socketpair: case SYS_listen: case SYS_accept: case SYS_accept4: case SYS_connect:
  case SYS_shutdown: case SYS_getsockname: case SYS_getpeername: case SYS_getsockopt: case SYS_setsockopt:
  case SYS_recvfrom: case SYS_recvmsg: case SYS_recvmmsg: case SYS_pidfd_open:
#ifdef SYS_open
  case SYS_poll: case SYS_select: case SYS_epoll_create: case SYS_epoll_wait: case SYS_eventfd:
  case SYS_signalfd: case SYS_time: case SYS_getpgrp:
#endif
#ifdef SYS_getrlimit
  case SYS_getrlimit: case SYS_setrlimit:
#endif
#ifdef SYS_arch_prctl
  case SYS_arch_prctl:
#endif
#ifdef SYS_map_shadow_stack
  case SYS_map_shadow_stack:
#endif
    return nothing;

  case SYS_write: case SYS_writev: case SYS_pwrite64: case SYS_pwritev: case SYS_pwritev2:
  case SYS_ftruncate: case SYS_fallocate: case SYS_fsync: case SYS_fdatasync: case SYS_sync_file_range:
  case SYS_sendfile: case SYS_vmsplice:
  // Their locks are the descriptor's or its table's, which outlive the process.
  case SYS_flock: case SYS_fcntl:
  case SYS_fchmod: case SYS_fchown: case SYS_fsetxattr: case SYS_fremovexattr:
  case SYS_fchmodat: case SYS_fchmodat2: case SYS_fchownat: case SYS_utimensat:
  case SYS_setxattrat: case SYS_removexattrat:
  case SYS_mkdirat: case SYS_mknodat: case SYS_unlinkat:
#ifdef SYS_futimesat
  case SYS_futimesat:
#endif
    return first;
  case SYS_symlinkat: case SYS_tee: return second;
  case SYS_copy_file_range: case SYS_splice: case SYS_linkat: return third;
  case SYS_renameat2:
#ifdef SYS_renameat
  case SYS_renameat:
#endif
    return first | third;
  case SYS_openat: return arguments[2] & (O_CREAT | O_TRUNC) ? first : nothing;
  case SYS_open_by_handle_at: return arguments[2] & O_TRUNC ? other : nothing;
  case SYS_ioctl:
    return (uint32_t)arguments[1] == (uint32_t)FS_IOC_SETFLAGS || (uint32_t)arguments[1] == (uint32_t)FICLONE
               ? first
               : nothing;

  // Libraries name by a path what is ours alone.
  case SYS_truncate:
    return named;
#ifdef SYS_open
  case SYS_open: return arguments[1] & (O_CREAT | O_TRUNC) ? named : nothing;
  case SYS_creat: case SYS_mkdir: case SYS_rmdir: case SYS_unlink: case SYS_link: case SYS_symlink:
  case SYS_rename: case SYS_mknod:
    return named;
  // We name what is open that way, for its attributes.
  case SYS_chmod: case SYS_chown: case SYS_lchown: case SYS_utime: case SYS_utimes:
#endif
  case SYS_setxattr: case SYS_lsetxattr: case SYS_removexattr: case SYS_lremovexattr:
  case SYS_bind: case SYS_sendto: case SYS_sendmsg: case SYS_sendmmsg: case SYS_tgkill:
  case SYS_pidfd_send_signal:
  case SYS_fsopen: case SYS_fsconfig: case SYS_fsmount: case SYS_open_tree: case SYS_mount_setattr:
  case SYS_umount2:
    return other;
  default: return -1;
  }
}
