// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
// Linux calls and constants that Swift's Glibc module does not show: variadic functions, what glibc hides
// behind _GNU_SOURCE, and system calls without a glibc wrapper. Declarations and thin calls only; no logic
// lives here.
#ifndef CLINUX_H
#define CLINUX_H

#include <fcntl.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/fsuid.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/xattr.h>

// Values that <fcntl.h>, <stdio.h> and <linux/*.h> keep behind _GNU_SOURCE or do not have yet.
// CLinux.c asserts each against the C library where that knows it.
#define CLX_O_DIRECT 040000
#define CLX_O_NOATIME 01000000
#define CLX_O_PATH 010000000
#define CLX_O_TMPFILE 020200000
#define CLX_AT_EMPTY_PATH 0x1000
#define CLX_RENAME_NOREPLACE 1
#define CLX_RENAME_EXCHANGE 2
#define CLX_RENAME_WHITEOUT 4
#define CLX_RESOLVE_NO_XDEV 0x01
#define CLX_RESOLVE_NO_MAGICLINKS 0x02
#define CLX_RESOLVE_NO_SYMLINKS 0x04
#define CLX_RESOLVE_BENEATH 0x08
#define CLX_UTIME_NOW 0x3fffffff
#define CLX_UTIME_OMIT 0x3ffffffe
#define CLX_SEEK_DATA 3
#define CLX_SEEK_HOLE 4
#define CLX_FALLOC_KEEP_SIZE 0x01
#define CLX_FALLOC_PUNCH_HOLE 0x02
#define CLX_FALLOC_COLLAPSE_RANGE 0x08
#define CLX_FALLOC_ZERO_RANGE 0x10
#define CLX_FALLOC_INSERT_RANGE 0x20
#define CLX_F_OFD_GETLK 36
#define CLX_F_OFD_SETLK 37
#define CLX_F_OFD_SETLKW 38
#define CLX_F_SETSIG 10
#define CLX_F_SETLEASE 1024
#define CLX_STATX_BASIC_STATS 0x7ffU
#define CLX_STATX_BTIME 0x800U
#define CLX_FS_IOC_GETFLAGS 0x80086601UL
#define CLX_FS_IOC_FSGETXATTR 0x801c581fUL
#define CLX_FS_IOC_SETFLAGS 0x40086602UL
#define CLX_FICLONE 0x40049409UL
#define CLX_MNT_DETACH 2
#define CLX_RUSAGE_THREAD 1

/// The kernel's struct statx: <linux/stat.h> and <sys/stat.h> each declare it, and not in a form both can
/// share.
struct clx_statx_time {
  int64_t tv_sec;
  uint32_t tv_nsec;
  int32_t reserved;
};
struct clx_statx {
  uint32_t stx_mask, stx_blksize;
  uint64_t stx_attributes;
  uint32_t stx_nlink, stx_uid, stx_gid;
  uint16_t stx_mode, spare0;
  uint64_t stx_ino, stx_size, stx_blocks, stx_attributes_mask;
  struct clx_statx_time stx_atime, stx_btime, stx_ctime, stx_mtime;
  uint32_t stx_rdev_major, stx_rdev_minor, stx_dev_major, stx_dev_minor;
  uint64_t stx_mnt_id;
  uint32_t stx_dio_mem_align, stx_dio_offset_align;
  uint64_t spare3[12];
};

/// A directory entry as getdents64(2) writes it; glibc shows it only under _GNU_SOURCE.
struct clx_dirent64 {
  uint64_t d_ino;
  int64_t d_off;
  uint16_t d_reclen;
  uint8_t d_type;
  char d_name[];
};

// Variadic in C, which Swift can't call.
int clx_open(const char *_Nonnull path, int flags, mode_t mode);
int clx_openat(int dir, const char *_Nonnull name, int flags, mode_t mode);
int clx_ioctl(int fd, unsigned long request, void *_Nullable argument);
int clx_fcntl(int fd, int command, long argument);
int clx_fcntl_lock(int fd, int command, struct flock *_Nonnull lock);
int clx_prctl(int option, unsigned long argument);

// Behind _GNU_SOURCE, or without a wrapper in glibc 2.36.
int clx_openat2(int dir, const char *_Nonnull path, uint64_t flags, uint64_t mode, uint64_t resolve);
/// fstat(2) itself: the C library asks for the status of an empty path instead, which costs more.
int clx_fstat(int fd, struct stat *_Nonnull out);
int clx_statx(int dir, const char *_Nonnull path, int flags, unsigned mask, struct clx_statx *_Nonnull out);
int clx_renameat2(int from, const char *_Nonnull name, int to, const char *_Nonnull newName, unsigned flags);
int clx_fchmodat2(int dir, const char *_Nonnull path, mode_t mode, int flags);
/// 1 if the filesystem of a file limits the blocks of a user, 0 if not: Linux 5.14.
int clx_user_has_quota(int fd, uint32_t user);
/// The calls on extended attributes that take a directory to start at: Linux 6.13.
ssize_t clx_getxattrat(int dir, const char *_Nonnull path, const char *_Nonnull name, void *_Nullable value,
                       uint32_t size);
ssize_t clx_setxattrat(int dir, const char *_Nonnull path, const char *_Nonnull name,
                       const void *_Nullable value, uint32_t size, uint32_t flags);
ssize_t clx_listxattrat(int dir, const char *_Nonnull path, int flags, char *_Nullable names, size_t size);
ssize_t clx_removexattrat(int dir, const char *_Nonnull path, const char *_Nonnull name);
int clx_fallocate(int fd, int mode, off_t offset, off_t length);
int clx_syncfs(int fd);
ssize_t clx_append(int fd, const void *_Nullable bytes, size_t count);
int clx_start_writing(int fd, off_t offset, off_t length);
ssize_t clx_copy_file_range(int from, off_t *_Nullable fromOffset, int to, off_t *_Nullable toOffset,
                            size_t length, unsigned flags);
ssize_t clx_getdents64(int fd, void *_Nonnull buffer, size_t length);
int clx_close_range(unsigned first, unsigned last, unsigned flags);
int clx_pidfd_open(pid_t pid, unsigned flags);
int clx_accept4(int fd, int flags);

/// open_tree(2) and mount_setattr(2): glibc 2.36 has them in a header that does not go together with
/// <linux/mount.h>.
#define CLX_OPEN_TREE_CLONE 1
#define CLX_AT_RECURSIVE 0x8000
#define CLX_MOUNT_ATTR_RELATIME 0x0
#define CLX_MOUNT_ATTR_NOATIME 0x10
#define CLX_MOUNT_ATTR_STRICTATIME 0x20
#define CLX_MOUNT_ATTR_ATIME 0x70
#define CLX_MOUNT_ATTR_NODIRATIME 0x80
int clx_open_tree(int dir, const char *_Nonnull path, unsigned flags);
int clx_mount_setattr(int dir, const char *_Nonnull path, unsigned flags, uint64_t set, uint64_t clear);
/// The calls by which a mount is made before it has a place: fsopen(2), fsconfig(2), fsmount(2),
/// move_mount(2).
#define CLX_FSCONFIG_SET_FLAG 0
#define CLX_FSCONFIG_SET_STRING 1
#define CLX_FSCONFIG_CMD_CREATE 6
#define CLX_MOUNT_ATTR_RDONLY 0x1
#define CLX_MOUNT_ATTR_NOSUID 0x2
#define CLX_MOUNT_ATTR_NODEV 0x4
#define CLX_MOUNT_ATTR_NOEXEC 0x8
int clx_fsopen(const char *_Nonnull type);
int clx_fsconfig(int context, unsigned command, const char *_Nullable key, const char *_Nullable value);
int clx_fsmount(int context, uint64_t attributes);
int clx_move_mount(int mount, int dir, const char *_Nonnull path);

/// unshare(2): behind _GNU_SOURCE.
#define CLX_CLONE_NEWNS 0x00020000
#define CLX_CLONE_NEWPID 0x20000000
#define CLX_POSIX_SPAWN_SETSID 0x80
#define CLX_CLONE_NEWUSER 0x10000000
int clx_unshare(int flags);
/// pivot_root(2), which has no wrapper.
int clx_pivot_root(const char *_Nonnull root, const char *_Nonnull old);
/// Starts a program as the first process of a namespace, which must be what the next child is. It is killed
/// when this process ends, from its first moment on; the descriptor `from` is its `to`; and its /proc shows
/// its own namespace. It begins with the signals `ignored` ignored. Gives its number, or with errno -1, or -2
/// if that /proc can't be mounted.
int clx_spawn_first(const char *_Nonnull path, char *_Nullable const *_Nonnull words,
                    char *_Nullable const *_Nonnull variables, int from, int to,
                    const sigset_t *_Nonnull mask, const sigset_t *_Nonnull ignored);
int clx_pidfd_send_signal(int process, int signal);
/// SO_PEERPIDFD (Linux 6.5): a descriptor of the very process that has connected.
int clx_peer_process(int socket, int *_Nonnull process);
/// landlock_create_ruleset(2) and landlock_restrict_self(2) with nothing but scopes, which glibc has no names
/// for.
#define CLX_LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET 1
#define CLX_LANDLOCK_SCOPE_SIGNAL 2
int clx_landlock_scope(uint64_t scopes);
/// Behind _GNU_SOURCE: initgroups(3).
int clx_initgroups(const char *_Nonnull user, gid_t group);
/// Changes all user and group ids of this process, which is root's, and drops its capabilities. At no moment
/// may a process of that user trace this one.
int clx_become(uid_t uid, gid_t gid);
/// KEYCTL_JOIN_SESSION_KEYRING: an empty session keyring in place of the inherited one.
int clx_join_new_session_keyring(void);

/// Numbers for a filter of system calls, from <linux/audit.h> and <asm/unistd.h>.
uint32_t clx_filter_architecture(void);
uint32_t clx_filter_ioctl(void);
uint32_t clx_filter_memfd_create(void);
uint32_t clx_filter_socket(void);
uint32_t clx_filter_socketpair(void);
uint32_t clx_filter_openat(void);
/// -1 where there is no such call.
int64_t clx_filter_open(void);
uint32_t clx_filter_clone(void);
uint32_t clx_filter_clone3(void);
uint32_t clx_filter_prctl(void);
uint32_t clx_filter_prlimit(void);
uint32_t clx_filter_keyctl(void);
uint32_t clx_filter_sched_getattr(void);
uint32_t clx_filter_sched_setattr(void);
/// The calls that a daemon may make whatever their arguments are, in order; how many. Root's has some more.
unsigned clx_daemon_calls(int system, int32_t *_Nonnull calls, unsigned room);
/// Gives away, for good, the capabilities of this thread that are not among the bits of `kept`.
int clx_keep_capabilities(uint64_t kept);
/// PR_SET_MDWE: what this process may write into, it can't make run. Kernels before 6.3 don't know it.
int clx_refuse_made_code(void);
/// Sets PR_SET_NO_NEW_PRIVS and a filter of system calls, for this thread or for all.
int clx_set_filter(const void *_Nonnull program, unsigned short count, int all_threads);
/// From here on each mount(2) of this thread, and of what it starts, waits for an answer; gives the
/// descriptor for whoever answers. No program that is started gets new privileges.
int clx_intercept_mounts(void);
int clx_next_intercepted(int listener, uint64_t *_Nonnull call, pid_t *_Nonnull thread);
int clx_answer_intercepted(int listener, uint64_t call, int error);
/// Puts a descriptor of ours in the place of one that the caller has.
int clx_replace_descriptor(int listener, uint64_t call, int source, int target);
/// Gives what a process has opened of /dev/fuse, and nothing has been mounted by, a connection that there is.
int clx_join_connection(pid_t process, int descriptor, int connection);

/// The calls that the process makes that parses files of others, besides those that open something; how many.
unsigned clx_parser_calls(int32_t *_Nonnull calls, unsigned room);

/// The calls that no app gets, one by one; -1 after the last.
int32_t clx_refused_call(unsigned index);

/// name_to_handle_at(2): `capacity` bytes at `handle` are there to be filled; `length` and `type` describe
/// what was.
int clx_name_to_handle_at(int dir, const char *_Nonnull path, unsigned char *_Nonnull handle,
                          unsigned capacity, unsigned *_Nonnull length, int *_Nonnull type, int flags);
int clx_open_by_handle_at(int mount, const unsigned char *_Nonnull handle, unsigned length, int type,
                          int flags);

// SO_PASSRIGHTS, of Linux 6.16: whether a local socket takes descriptors.
#define CLX_SO_PASSRIGHTS 83

// SO_PEERCRED: struct ucred is behind _GNU_SOURCE.
int clx_peer_credentials(int socket, pid_t *_Nonnull pid, uid_t *_Nonnull uid, gid_t *_Nonnull gid);

// SO_PEERGROUPS: how many groups the other end had when it connected; ERANGE if there are more than there is
// room for.
int clx_peer_groups(int socket, gid_t *_Nonnull groups, unsigned room);

// sendmsg(2) and recvmsg(2) with at most one descriptor (SCM_RIGHTS): the macros for such messages are C's
// alone. -1 stands for no descriptor; what came beyond the first is closed by the kernel, and so is the first
// where there is no room for it.
ssize_t clx_send_with(int socket, const void *_Nonnull bytes, size_t length, int flags, int descriptor);
ssize_t clx_receive_with(int socket, void *_Nonnull bytes, size_t length, int *_Nullable descriptor);

// setfsuid(2) and setfsgid(2) through glibc cost two calls and hide nothing; the raw ones act on this thread
// alone.
void clx_set_fs_ids(uid_t uid, gid_t gid);

/// For each thread its filesystem ids, as far as they have been changed by whoever keeps them here.
struct clx_fs_ids {
  uid_t uid;
  gid_t gid;
  /// Whether the thread keeps them until it needs others.
  int stay;
};
struct clx_fs_ids *_Nonnull clx_fs_ids(void);

// The ranks of the locks that this thread holds, for debug builds: the last one (0 if there is none), one
// more, and one less.
unsigned char clx_last_lock(void);
void clx_lock_enter(unsigned char rank);
void clx_lock_leave(unsigned char rank);

// capset(2), of this thread alone: makes a capability effective, if it is permitted, or not.
int clx_set_effective(unsigned capability, int on);

// Credentials of this thread alone (glibc's own calls change every thread of the process).
int clx_thread_setresuid(uid_t uid);
int clx_thread_setresgid(gid_t gid);
int clx_thread_setgroups(size_t count, const gid_t *_Nullable groups);
/// Whether this thread's filesystem ids are these: setting them tells nobody that it has failed.
int clx_has_fs_ids(uid_t uid, gid_t gid);

// memmem(3) is behind _GNU_SOURCE.
const void *_Nullable clx_memmem(const void *_Nonnull hay, size_t length, const void *_Nonnull needle,
                                 size_t count);

/// Copies as memcpy(3) does, but by no vector register: those are saved on the stack now and then (by the
/// loader when it finds a function, by the kernel for a signal), and what was copied stays there.
void clx_copy_tracelessly(void *_Nonnull to, const void *_Nonnull from, size_t count);

/// One pointer per thread: the raw request that a worker is decoding (Swift has no thread-local storage).
void *_Nullable clx_thread_value(void);
void clx_set_thread_value(void *_Nullable value);
// In what this thread works alone (`RedirectedNames.only`).
void *_Nullable clx_only_target(void);
void clx_set_only_target(void *_Nullable target);
/// One number per thread besides: why a filesystem has last refused something on it, 0 for nothing.
void clx_note_refusal(uint64_t note);
/// Gives the number, and forgets it.
uint64_t clx_take_refusal(void);
/// A number that no other thread has that lives, the smallest there is.
unsigned clx_thread_number(void);

// Macros of <sys/wait.h> and <sys/sysmacros.h>, which Swift does not import.
int clx_exit_status(int status);
int clx_term_signal(int status);
uint64_t clx_makedev(unsigned major, unsigned minor);
unsigned clx_major(uint64_t device);
unsigned clx_minor(uint64_t device);

/// Something that a path names, which no descriptor leads to; something else that no descriptor leads to.
#define CLX_CHANGES_NAMED 64
#define CLX_CHANGES_OTHER 128
/// What a system call changes, whenever it is carried out: bit N for what the descriptor leads to that is its
/// argument N, or one of those above. 0 for nothing: it looks, opens or closes. -1 if this call is not known.
int clx_call_changes(long call, const uint64_t *_Nonnull arguments);

/// The magic number of the filesystem that a descriptor lies on: Glibc's module map leaves <sys/statfs.h>
/// out.
int clx_filesystem_type(int fd, uint64_t *_Nonnull type);

/// The paths of the libraries that were loaded, a line each; how many bytes that are, of which there is room.
/// Behind _GNU_SOURCE.
size_t clx_libraries(char *_Nonnull buffer, size_t room);

// Behind _GNU_SOURCE.
int clx_dup3(int from, int to, int flags);
int clx_pipe2(int *_Nonnull ends, int flags);

// For the conformance list. Swift marks fork(2) as unavailable; a process of one thread may call it all the
// same.
pid_t clx_fork(void);
/// fork(2), but both processes have one table of descriptors: what either opens or closes, the other has, and
/// lacks, too. The process has one thread.
pid_t clx_fork_sharing_descriptors(void);
/// The directory of this process's own links (/proc/self/fd), open as long as it lives; -1 where it can't be
/// opened.
int clx_own_links(void);
/// Has the CPU fetch what will be read or written soon.
static inline void clx_prefetch(const void *_Nonnull address) { __builtin_prefetch(address, 1); }
/// Lets go of the program's code, which comes back page by page where it is run.
void clx_unmap_code(void);
// For tests that start programs: nothing from `first` on is theirs. Behind _DEFAULT_SOURCE.
int clx_spawn_closing_from(posix_spawn_file_actions_t *_Nonnull actions, int first);
// For tests of filters: a system call whose arguments are all -1; its error, or 0.
int clx_try_call(long number);
// For tests that stop a program at one of its system calls; variadic in C.
long clx_ptrace(int request, pid_t pid, long data);
// sched_setattr(2): the time slice of the calling thread, which must be of the usual policy.
int clx_set_time_slice(uint64_t nanoseconds);
// sched_getattr(2): that of another thread; 0 if the kernel has none for each (before 6.12).
uint64_t clx_time_slice(pid_t thread);
// malloc_trim(3), where there is one.
void clx_return_free_memory(void);
/// memfd_create(2): a file in memory that keeps its size and can't be run.
int clx_memory_file(const char *_Nonnull name, off_t size);
ssize_t clx_splice(int from, off_t *_Nullable fromOffset, int to, off_t *_Nullable toOffset, size_t length,
                   unsigned flags);
int clx_unix_bind(int socket, const char *_Nonnull path);
int clx_unix_connect(int socket, const char *_Nonnull path);
/// The symbolic name of an errno ("ENOENT"), or NULL.
const char *_Nullable clx_errno_name(int error);

// fcntl(2) is variadic: sets O_NONBLOCK on top of what is set.
int clx_set_nonblocking(int descriptor);

/// Whether a system call of that number renames: 1, or 2 if its fifth argument has flags, else 0.
int clx_renames(long number);

#endif
