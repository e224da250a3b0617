// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
#include "CLinux.h"
#include "NewerCalls.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <link.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/openat2.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/quota.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/// The kernel's struct xattr_args.
struct clx_xattr_args {
  uint64_t value __attribute__((aligned(8)));
  uint32_t size, flags;
};

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

static_assert(CLX_O_DIRECT == O_DIRECT, "O_DIRECT");
static_assert(CLX_O_NOATIME == O_NOATIME, "O_NOATIME");
static_assert(CLX_O_PATH == O_PATH, "O_PATH");
static_assert(CLX_O_TMPFILE == O_TMPFILE, "O_TMPFILE");
static_assert(CLX_AT_EMPTY_PATH == AT_EMPTY_PATH, "AT_EMPTY_PATH");
static_assert(CLX_RENAME_EXCHANGE == RENAME_EXCHANGE, "RENAME_EXCHANGE");
static_assert(CLX_RESOLVE_NO_XDEV == RESOLVE_NO_XDEV, "RESOLVE_NO_XDEV");
static_assert(CLX_UTIME_NOW == UTIME_NOW && CLX_UTIME_OMIT == UTIME_OMIT, "UTIME");
static_assert(CLX_SEEK_DATA == SEEK_DATA && CLX_SEEK_HOLE == SEEK_HOLE, "SEEK");
static_assert(CLX_F_OFD_SETLK == F_OFD_SETLK, "F_OFD_SETLK");
static_assert(CLX_F_SETLEASE == F_SETLEASE && CLX_F_SETSIG == F_SETSIG, "F_SETLEASE");
static_assert(sizeof(struct clx_statx) == sizeof(struct statx) && sizeof(struct statx) == 256, "statx");
static_assert(offsetof(struct clx_statx, stx_btime) == offsetof(struct statx, stx_btime), "statx btime");

int clx_open(const char *path, int flags, mode_t mode) { return open(path, flags, mode); }
int clx_openat(int dir, const char *name, int flags, mode_t mode) { return openat(dir, name, flags, mode); }
int clx_ioctl(int fd, unsigned long request, void *argument) { return ioctl(fd, request, argument); }
int clx_fcntl(int fd, int command, long argument) { return fcntl(fd, command, argument); }
int clx_fcntl_lock(int fd, int command, struct flock *lock) { return fcntl(fd, command, lock); }
int clx_prctl(int option, unsigned long argument) { return prctl(option, argument, 0, 0, 0); }

int clx_openat2(int dir, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve) {
  struct open_how how = {.flags = flags, .mode = mode, .resolve = resolve};
  return (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
}
int clx_fstat(int fd, struct stat *out) { return (int)syscall(SYS_fstat, fd, out); }
int clx_statx(int dir, const char *path, int flags, unsigned mask, struct clx_statx *out) {
  return (int)syscall(SYS_statx, dir, path, flags, mask, out);
}
int clx_renameat2(int from, const char *name, int to, const char *newName, unsigned flags) {
  return renameat2(from, name, to, newName, flags);
}
int clx_fchmodat2(int dir, const char *path, mode_t mode, int flags) {
  return (int)syscall(SYS_fchmodat2, dir, path, mode, flags);
}
int clx_user_has_quota(int fd, uint32_t user) {
  struct dqblk limits;
  if (syscall(SYS_quotactl_fd, fd, QCMD(Q_GETQUOTA, USRQUOTA), user, &limits) != 0) return -1;
  return limits.dqb_bhardlimit != 0 || limits.dqb_bsoftlimit != 0;
}
ssize_t clx_getxattrat(int dir, const char *path, const char *name, void *value, uint32_t size) {
  struct clx_xattr_args args = {(uint64_t)(uintptr_t)value, size, 0};
  return syscall(SYS_getxattrat, dir, path, 0, name, &args, sizeof args);
}
ssize_t clx_setxattrat(int dir, const char *path, const char *name, const void *value, uint32_t size,
                       uint32_t flags) {
  struct clx_xattr_args args = {(uint64_t)(uintptr_t)value, size, flags};
  return syscall(SYS_setxattrat, dir, path, 0, name, &args, sizeof args);
}
ssize_t clx_listxattrat(int dir, const char *path, int flags, char *names, size_t size) {
  return syscall(SYS_listxattrat, dir, path, flags, names, size);
}
ssize_t clx_removexattrat(int dir, const char *path, const char *name) {
  return syscall(SYS_removexattrat, dir, path, 0, name);
}
int clx_fallocate(int fd, int mode, off_t offset, off_t length) {
  return fallocate(fd, mode, offset, length);
}
int clx_dup3(int from, int to, int flags) { return dup3(from, to, flags); }
ssize_t clx_append(int fd, const void *_Nullable bytes, size_t count) {
  struct iovec part = {(void *)bytes, count};
  // The position is ignored; any but -1 leaves the descriptor's own as it is.
  return pwritev2(fd, &part, 1, 0, RWF_APPEND);
}
int clx_start_writing(int fd, off_t offset, off_t length) {
  return sync_file_range(fd, offset, length, SYNC_FILE_RANGE_WRITE);
}
int clx_syncfs(int fd) { return syncfs(fd); }
ssize_t clx_copy_file_range(int from, off_t *fromOffset, int to, off_t *toOffset, size_t length,
                            unsigned flags) {
  return copy_file_range(from, fromOffset, to, toOffset, length, flags);
}
ssize_t clx_getdents64(int fd, void *buffer, size_t length) { return getdents64(fd, buffer, length); }
// /proc/self is what it was when it was opened: in a child it would be the parent's.
static _Atomic int own_links = -2;
static void forget_own_links(void) { own_links = -2; }

int clx_close_range(unsigned first, unsigned last, unsigned flags) {
  int links = own_links;
  if (flags == 0 && links >= 0 && (unsigned)links >= first && (unsigned)links <= last) forget_own_links();
  return (int)syscall(SYS_close_range, first, last, flags);
}
int clx_pidfd_open(pid_t pid, unsigned flags) { return (int)syscall(SYS_pidfd_open, pid, flags); }
int clx_accept4(int fd, int flags) { return accept4(fd, NULL, NULL, flags); }

int clx_open_tree(int dir, const char *path, unsigned flags) {
  return (int)syscall(SYS_open_tree, dir, path, flags);
}
int clx_mount_setattr(int dir, const char *path, unsigned flags, uint64_t set, uint64_t clear) {
  // struct mount_attr {attr_set, attr_clr, propagation, userns_fd}.
  uint64_t attributes[4] = {set, clear, 0, 0};
  return (int)syscall(SYS_mount_setattr, dir, path, flags, attributes, sizeof attributes);
}

int clx_fsopen(const char *type) { return (int)syscall(SYS_fsopen, type, 1); }
int clx_fsconfig(int context, unsigned command, const char *key, const char *value) {
  return (int)syscall(SYS_fsconfig, context, command, key, value, 0);
}
int clx_fsmount(int context, uint64_t attributes) {
  return (int)syscall(SYS_fsmount, context, 1, attributes);
}
int clx_move_mount(int mount, int dir, const char *path) {
  return (int)syscall(SYS_move_mount, mount, "", dir, path, 4 | (*path ? 0 : 0x40));
}
int clx_pivot_root(const char *root, const char *old) { return (int)syscall(SYS_pivot_root, root, old); }
int clx_unshare(int flags) { return unshare(flags); }

// posix_spawn(3) can't have PR_SET_PDEATHSIG set. As with that, the child shares our memory, and we stand
// still until it is another program.
int clx_spawn_first(const char *path, char *const *words, char *const *variables, int from, int to,
                    const sigset_t *mask, const sigset_t *ignored) {
  int alive[2];
  volatile int error = 0;
  volatile int failure = -1;
  if (pipe2(alive, O_CLOEXEC) != 0) return -1;
  pid_t pid = vfork();
  if (pid == 0) {
    close(alive[1]);
    struct pollfd parent = {.fd = alive[0]};
    // A mount in a namespace of the child's own; what is unmounted elsewhere still goes away in it, but
    // nothing of it is seen there.
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0
        || mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0) {
      failure = -2;
      error = errno;
      _exit(127);
    }
    // The parent must not ignore them even for a moment, since that discards what has arrived for it. Its
    // memory is ours here, but its handlers are not.
    for (int number = 1; number < NSIG; number++)
      if (sigismember(ignored, number) == 1) signal(number, SIG_IGN);
    // A parent that ended before it was asked for does not end us: it has closed its end of the pipe.
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && poll(&parent, 1, 0) == 0
        && sigprocmask(SIG_SETMASK, mask, NULL) == 0
        && (from == to ? fcntl(to, F_SETFD, 0) : dup2(from, to)) >= 0)
      execve(path, words, variables);
    error = errno;
    _exit(127);
  }
  if (pid < 0) error = errno;
  // Either the program runs by now, or there will be none.
  close(alive[0]);
  close(alive[1]);
  if (error == 0) return pid;
  if (pid > 0) waitpid(pid, NULL, 0);
  errno = error;
  return failure;
}
int clx_pidfd_send_signal(int process, int signal) {
  return (int)syscall(SYS_pidfd_send_signal, process, signal, NULL, 0);
}
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
int clx_peer_process(int socket, int *process) {
  socklen_t length = sizeof *process;
  return getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, process, &length);
}
int clx_landlock_scope(uint64_t scopes) {
  // struct landlock_ruleset_attr {handled_access_fs, handled_access_net, scoped}.
  uint64_t attributes[3] = {0, 0, scopes};
  int rules = (int)syscall(SYS_landlock_create_ruleset, attributes, sizeof attributes, 0);
  if (rules < 0) return -1;
  int result = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (result == 0) result = (int)syscall(SYS_landlock_restrict_self, rules, 0);
  int error = errno;
  close(rules);
  errno = error;
  return result;
}
int clx_initgroups(const char *user, gid_t group) { return initgroups(user, group); }

int clx_become(uid_t uid, gid_t gid) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};
  // Changing ids sets "dumpable" to fs.suid_dumpable, which may be 1. Until it is 0 again, the permitted
  // capabilities, which that user does not have, keep their processes off.
  if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0) return -1;
  if (setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0) return -1;
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return -1;
  // Whatever securebits say, none stays.
  if (syscall(SYS_capset, &header, none) != 0) return -1;
  prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0);
  return 0;
}
int clx_join_new_session_keyring(void) {
  if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0) return 0;
  // A filter gives EPERM, the kernel never does here. It holds for what this process becomes as well.
  return errno == EPERM || errno == ENOSYS ? 0 : -1;
}

#if defined(__x86_64__)
uint32_t clx_filter_architecture(void) { return AUDIT_ARCH_X86_64; }
#elif defined(__aarch64__)
uint32_t clx_filter_architecture(void) { return AUDIT_ARCH_AARCH64; }
#else
#error "say here which architecture the filter of system calls is for"
#endif
uint32_t clx_filter_ioctl(void) { return SYS_ioctl; }
uint32_t clx_filter_memfd_create(void) { return SYS_memfd_create; }
uint32_t clx_filter_socket(void) { return SYS_socket; }
uint32_t clx_filter_socketpair(void) { return SYS_socketpair; }
// The same numbers on all architectures; headers may be older.
#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif
#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467
#endif
static const int32_t refused_calls[] = {
    SYS_add_key, SYS_keyctl, SYS_request_key, SYS_bpf, SYS_perf_event_open, SYS_userfaultfd,
    SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register, SYS_syslog, SYS_acct, SYS_quotactl,
    SYS_swapon, SYS_swapoff, SYS_kexec_load, SYS_init_module, SYS_finit_module, SYS_delete_module,
    SYS_open_by_handle_at, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_setns, SYS_fsopen,
    SYS_fsconfig, SYS_fsmount, SYS_fspick, SYS_move_mount, SYS_open_tree, SYS_mount_setattr,
    SYS_fanotify_init, SYS_pidfd_getfd, SYS_quotactl_fd, SYS_kexec_file_load, SYS_open_tree_attr};
int32_t clx_refused_call(unsigned index) {
  return index < sizeof refused_calls / sizeof *refused_calls ? refused_calls[index] : -1;
}

// struct file_handle ends in a flexible array, which Swift can't lay out.
union handle_buffer {
  struct file_handle handle;
  unsigned char bytes[sizeof(struct file_handle) + MAX_HANDLE_SZ];
};
int clx_name_to_handle_at(int dir, const char *path, unsigned char *handle, unsigned capacity,
                          unsigned *length, int *type, int flags) {
  union handle_buffer buffer;
  int mount;
  buffer.handle.handle_bytes = capacity < MAX_HANDLE_SZ ? capacity : MAX_HANDLE_SZ;
  if (name_to_handle_at(dir, path, &buffer.handle, &mount, flags) < 0) return -1;
  *length = buffer.handle.handle_bytes;
  *type = buffer.handle.handle_type;
  memcpy(handle, buffer.handle.f_handle, buffer.handle.handle_bytes);
  return 0;
}
int clx_open_by_handle_at(int mount, const unsigned char *handle, unsigned length, int type, int flags) {
  union handle_buffer buffer;
  if (length > MAX_HANDLE_SZ) return errno = EINVAL, -1;
  buffer.handle.handle_bytes = length;
  buffer.handle.handle_type = type;
  memcpy(buffer.handle.f_handle, handle, length);
  return open_by_handle_at(mount, &buffer.handle, flags);
}

int clx_peer_credentials(int socket, pid_t *pid, uid_t *uid, gid_t *gid) {
  struct ucred peer;
  socklen_t length = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0) return -1;
  *pid = peer.pid;
  *uid = peer.uid;
  *gid = peer.gid;
  return 0;
}

int clx_peer_groups(int socket, gid_t *groups, unsigned room) {
  socklen_t length = room * sizeof *groups;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups, &length) < 0) return -1;
  return (int)(length / sizeof *groups);
}

// Room for one descriptor, as cmsg(3) wants it.
union clx_control {
  char bytes[CMSG_SPACE(sizeof(int))];
  struct cmsghdr header;
};

ssize_t clx_send_with(int socket, const void *bytes, size_t length, int flags, int descriptor) {
  struct iovec data = {.iov_base = (void *)bytes, .iov_len = length};
  union clx_control control;
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
  if (descriptor >= 0) {
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptor);
    memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  return sendmsg(socket, &message, flags);
}

ssize_t clx_receive_with(int socket, void *bytes, size_t length, int *descriptor) {
  struct iovec data = {.iov_base = bytes, .iov_len = length};
  union clx_control control;
  struct msghdr message = {
      .msg_iov = &data,
      .msg_iovlen = 1,
      .msg_control = descriptor ? control.bytes : NULL,
      // Not CMSG_SPACE, in whose padding the kernel would find room for a second descriptor.
      .msg_controllen = descriptor ? CMSG_LEN(sizeof *descriptor) : 0};
  if (descriptor) *descriptor = -1;
  ssize_t count = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (count < 0 || !descriptor) return count;
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
      header->cmsg_len == CMSG_LEN(sizeof *descriptor))
    memcpy(descriptor, CMSG_DATA(header), sizeof *descriptor);
  return count;
}

static _Thread_local struct clx_fs_ids fs_ids;
struct clx_fs_ids *clx_fs_ids(void) { return &fs_ids; }

static _Thread_local struct {
  unsigned char count, ranks[31];
} held_locks;
unsigned char clx_last_lock(void) {
  return held_locks.count == 0 ? 0 : held_locks.ranks[held_locks.count - 1];
}
void clx_lock_enter(unsigned char rank) {
  // A rank is held once, so there is always room.
  if (held_locks.count < sizeof held_locks.ranks) held_locks.ranks[held_locks.count++] = rank;
}
void clx_lock_leave(unsigned char rank) {
  for (unsigned i = 0; i < held_locks.count; i++) {
    if (held_locks.ranks[i] != rank) continue;
    memmove(held_locks.ranks + i, held_locks.ranks + i + 1, held_locks.count - i - 1);
    held_locks.count--;
    return;
  }
}
void clx_set_fs_ids(uid_t uid, gid_t gid) {
  syscall(SYS_setfsgid, gid);
  syscall(SYS_setfsuid, uid);
}
int clx_set_effective(unsigned capability, int on) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
  if (syscall(SYS_capget, &header, sets) < 0) return -1;
  struct __user_cap_data_struct *set = &sets[capability / 32];
  uint32_t bit = (uint32_t)1 << (capability % 32);
  uint32_t effective = on ? set->effective | (set->permitted & bit) : set->effective & ~bit;
  if (effective == set->effective) return 0;
  set->effective = effective;
  return (int)syscall(SYS_capset, &header, sets);
}
int clx_thread_setresuid(uid_t uid) { return (int)syscall(SYS_setresuid, uid, uid, uid); }
int clx_thread_setresgid(gid_t gid) { return (int)syscall(SYS_setresgid, gid, gid, gid); }
int clx_thread_setgroups(size_t count, const gid_t *groups) {
  return (int)syscall(SYS_setgroups, count, groups);
}
int clx_has_fs_ids(uid_t uid, gid_t gid) {
  // An id that nobody has changes nothing and tells what is set.
  return (uid_t)syscall(SYS_setfsuid, -1) == uid && (gid_t)syscall(SYS_setfsgid, -1) == gid;
}

const void *clx_memmem(const void *hay, size_t length, const void *needle, size_t count) {
  return memmem(hay, length, needle, count);
}

void clx_copy_tracelessly(void *to, const void *from, size_t count) {
#if defined(__x86_64__)
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
#else
  // What is volatile is not vectorized.
  volatile unsigned char *out = to;
  const volatile unsigned char *in = from;
  for (; count >= 8 && ((uintptr_t)out | (uintptr_t)in) % 8 == 0; count -= 8, out += 8, in += 8)
    *(volatile uint64_t *)out = *(const volatile uint64_t *)in;
  for (; count > 0; count--) *out++ = *in++;
#endif
}

static _Thread_local void *thread_value;
void *clx_thread_value(void) { return thread_value; }
void clx_set_thread_value(void *value) { thread_value = value; }

static _Thread_local void *only_target;
void *clx_only_target(void) { return only_target; }
void clx_set_only_target(void *target) { only_target = target; }

static _Thread_local uint64_t refusal;
void clx_note_refusal(uint64_t note) { refusal = note; }
uint64_t clx_take_refusal(void) {
  uint64_t note = refusal;
  refusal = 0;
  return note;
}

// A bit for each number that a thread has.
static uint64_t thread_numbers[16];
static pthread_key_t thread_number_key;
static void give_thread_number_back(void *value) {
  unsigned number = (unsigned)(uintptr_t)value - 1;
  __atomic_fetch_and(&thread_numbers[number / 64], ~(UINT64_C(1) << number % 64), __ATOMIC_ACQ_REL);
}
static void make_thread_number_key(void) { pthread_key_create(&thread_number_key, give_thread_number_back); }

unsigned clx_thread_number(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  static _Thread_local unsigned number;
  if (number != 0) return number - 1;
  pthread_once(&once, make_thread_number_key);
  for (unsigned candidate = 0; candidate < 64 * 16; candidate++) {
    uint64_t bit = UINT64_C(1) << candidate % 64;
    if (__atomic_fetch_or(&thread_numbers[candidate / 64], bit, __ATOMIC_ACQ_REL) & bit) continue;
    number = candidate + 1;
    pthread_setspecific(thread_number_key, (void *)(uintptr_t)number);
    return candidate;
  }
  return UINT_MAX;
}

int clx_exit_status(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : -1; }
int clx_term_signal(int status) { return WIFSIGNALED(status) ? WTERMSIG(status) : 0; }
uint64_t clx_makedev(unsigned major, unsigned minor) { return makedev(major, minor); }
unsigned clx_major(uint64_t device) { return major(device); }
unsigned clx_minor(uint64_t device) { return minor(device); }

int clx_filesystem_type(int fd, uint64_t *type) {
  struct statfs status;
  if (fstatfs(fd, &status) < 0) return -1;
  *type = (uint64_t)status.f_type & 0xffffffff;
  return 0;
}
int clx_pipe2(int *ends, int flags) { return pipe2(ends, flags); }

int clx_own_links(void) {
  int known = own_links;
  if (known != -2) return known;
  int opened = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (atomic_compare_exchange_strong(&own_links, &known, opened)) return opened;
  if (opened >= 0) close(opened);
  return known;
}

pid_t clx_fork(void) {
  pid_t child = fork();
  if (child == 0) forget_own_links();
  return child;
}

// glibc keeps the number of the main thread where the kernel was told to clear it. The child's has to be
// there too, or raise(3) and locks of the C library would take the child for its parent.
pid_t clx_fork_sharing_descriptors(void) {
  int *number = NULL;
  if (prctl(PR_GET_TID_ADDRESS, &number) != 0 || number == NULL) return -1;
  // Not clone3(2), whose arguments lie in memory: service managers forbid what their filters can't look into.
  unsigned long flags = CLONE_FILES | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD;
#ifdef __x86_64__
  pid_t child = (pid_t)syscall(SYS_clone, flags, NULL, NULL, number, 0);
#else
  pid_t child = (pid_t)syscall(SYS_clone, flags, NULL, NULL, 0, number);
#endif
  if (child == 0) forget_own_links();
  return child;
}
extern char __executable_start, etext;
void clx_unmap_code(void) {
  // Nothing up to the end of the code is ever written to, so all of it is in the file.
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t first = ((uintptr_t)&__executable_start + page - 1) / page * page;
  uintptr_t last = (uintptr_t)&etext / page * page;
  if (first < last) madvise((void *)first, last - first, MADV_DONTNEED);
}
int clx_spawn_closing_from(posix_spawn_file_actions_t *actions, int first) {
  return posix_spawn_file_actions_addclosefrom_np(actions, first);
}
int clx_try_call(long number) { return syscall(number, -1L, -1L, -1L, -1L, -1L, -1L) < 0 ? errno : 0; }
long clx_ptrace(int request, pid_t pid, long data) { return ptrace(request, pid, (void *)0, data); }
// glibc before 2.41 has neither this nor the two functions; its first version has all that is needed.
struct scheduling {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period;
};
uint64_t clx_time_slice(pid_t thread) {
  struct scheduling attributes = {0};
  int result = (int)syscall(SYS_sched_getattr, thread, &attributes, (unsigned)sizeof attributes, 0);
  return result < 0 ? 0 : attributes.runtime;
}
int clx_set_time_slice(uint64_t nanoseconds) {
  struct scheduling attributes = {0};
  if (syscall(SYS_sched_getattr, 0, &attributes, (unsigned)sizeof attributes, 0) < 0) return -1;
  if (attributes.policy != SCHED_OTHER) return 0;
  attributes.size = sizeof attributes;
  attributes.runtime = nanoseconds;
  return (int)syscall(SYS_sched_setattr, 0, &attributes, 0);
}
void clx_return_free_memory(void) {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}
int clx_memory_file(const char *name, off_t size) {
  // Kernels before 6.3 do not know MFD_NOEXEC_SEAL.
  int file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
  if (file < 0 && errno == EINVAL) file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return -1;
  if (fchmod(file, 0600) == 0 && ftruncate(file, size) == 0
      && fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
    return file;
  int error = errno;
  close(file);
  errno = error;
  return -1;
}

ssize_t clx_splice(int from, off_t *fromOffset, int to, off_t *toOffset, size_t length, unsigned flags) {
  return splice(from, fromOffset, to, toOffset, length, flags);
}
int clx_unix_bind(int socket, const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  return bind(socket, (struct sockaddr *)&address, sizeof address);
}
int clx_unix_connect(int socket, const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  return connect(socket, (struct sockaddr *)&address, sizeof address);
}
const char *clx_errno_name(int error) { return strerrorname_np(error); }

int clx_set_nonblocking(int descriptor) {
  int flags = fcntl(descriptor, F_GETFL);
  return flags < 0 ? -1 : fcntl(descriptor, F_SETFL, flags | O_NONBLOCK);
}

struct libraries {
  char *buffer;
  size_t room, used;
};

static int add_library(struct dl_phdr_info *library, size_t size, void *context) {
  (void)size;
  struct libraries *all = context;
  size_t length = library->dlpi_name ? strlen(library->dlpi_name) : 0;
  // The program itself has no name, and what the kernel gives has no path.
  if (!length || *library->dlpi_name != '/' || length + 1 > all->room - all->used) return 0;
  memcpy(all->buffer + all->used, library->dlpi_name, length);
  all->buffer[all->used + length] = '\n';
  all->used += length + 1;
  return 0;
}

size_t clx_libraries(char *buffer, size_t room) {
  struct libraries all = {buffer, room, 0};
  dl_iterate_phdr(add_library, &all);
  return all.used;
}

int clx_renames(long number) {
#ifdef SYS_rename
  if (number == SYS_rename) return 1;
#endif
#ifdef SYS_renameat
  if (number == SYS_renameat) return 1;
#endif
  return number == SYS_renameat2 ? 2 : 0;
}

// In the place of the Swift library's own (see Package.swift), which brings half a megabyte of names with it:
// no character has a name.
long long __wrap__swift_stdlib_getScalarName(unsigned scalar, unsigned char *buffer, long long capacity) {
  (void)scalar, (void)buffer, (void)capacity;
  return 0;
}

// In the place of the C++ library's own, which would tell the type of an exception that nobody throws.
char *__wrap___cxa_demangle(const char *name, char *buffer, size_t *length, int *status) {
  (void)name, (void)buffer, (void)length;
  if (status) *status = -1;
  return NULL;
}

// What std::string is in memory.
struct text {
  char *start;
  size_t count;
  char own[16];
};

// Corresponds to swift::Demangle::nodeToString; only messages of the runtime ask for names of types.
struct text *__wrap__ZN5swift8Demangle9__runtime12nodeToStringB5cxx11EPNS1_4NodeERKNS1_15DemangleOptionsE(
    struct text *text, const void *node, const void *options) {
  (void)node, (void)options;
  text->start = text->own;
  text->count = 0;
  text->own[0] = 0;
  return text;
}
