// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// By mounts, namespaces and roots.

#include "escape.h"
#include <linux/mount.h>
#include <sys/ioctl.h>

static int new_user(int others) {
  char map[64];
  uid_t uid = getuid();
  gid_t gid = getgid();
  if (uid == 0) return unshare(others & ~CLONE_NEWUSER);
  if (unshare(CLONE_NEWUSER | others) != 0) return -1;
  int fd = open("/proc/self/setgroups", O_WRONLY);
  if (fd >= 0 && write(fd, "deny", 4) < 0) return -1;
  fd = open("/proc/self/uid_map", O_WRONLY);
  int size = snprintf(map, sizeof map, "0 %d 1", uid);
  if (fd < 0 || write(fd, map, (size_t)size) < 0) return -1;
  fd = open("/proc/self/gid_map", O_WRONLY);
  size = snprintf(map, sizeof map, "0 %d 1", gid);
  return fd < 0 || write(fd, map, (size_t)size) < 0 ? -1 : 0;
}

static void own_namespace(void) { succeed_if(new_user(CLONE_NEWNS) == 0); }
ATTEMPT(user_namespace_of_its_own, USER) { in_child(own_namespace); }

static void own_namespace_by_clone(void) {
  struct {
    uint64_t flags, pidfd, child, parent, signal, stack, size, tls;
  } arguments = {.flags = CLONE_NEWUSER | CLONE_NEWNS, .signal = SIGCHLD};
  long child = syscall(SYS_clone3, &arguments, sizeof arguments);
  if (child == 0) {
    show_prizes();
    succeed_if(1);
    _exit(0);
  }
  if (child > 0) waitpid((pid_t)child, NULL, 0);
}
ATTEMPT(user_namespace_by_clone, USER) { in_child(own_namespace_by_clone); }

/// Takes away what may lie over something.
static void peel(void) {
  if (new_user(CLONE_NEWNS) != 0) return;
  mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
  const char *covers[] = {"/proc", "/dev", "/etc", "/usr", "/tmp", "/run", "/var", "/", NULL};
  for (int i = 0; covers[i]; i++) {
    for (int k = 0; k < 4; k++) umount2(covers[i], MNT_DETACH);
    show_prizes();
  }
  umount2(say("POINT"), MNT_DETACH);
  show_prizes();
}
ATTEMPT(unmounting_what_covers, USER) { in_child(peel); }

static void bind_all(void) {
  if (new_user(CLONE_NEWNS) != 0) return;
  mkdir("bound", 0700);
  if (mount("/", "bound", NULL, MS_BIND | MS_REC, NULL) == 0) {
    int directory = open("bound", O_PATH | O_DIRECTORY);
    show_prizes_at(directory);
  }
  rmdir("bound");
}
ATTEMPT(bind_mount_of_everything, USER) { in_child(bind_all); }

static void bind_view(void) {
  char directory[PATH_MAX];
  if (new_user(CLONE_NEWNS) != 0) return;
  mkdir("bound", 0700);
  snprintf(directory, sizeof directory, "%s/Users", say("POINT"));
  if (mount(directory, "bound", NULL, MS_BIND | MS_REC, NULL) == 0) {
    snprintf(directory, sizeof directory, "bound%s", say("OTHER_BELOW_USERS"));
    show_path(directory);
  }
  rmdir("bound");
}
ATTEMPT(bind_mount_of_the_tree, USER) { in_child(bind_view); }

static void old_root(void) {
  if (new_user(CLONE_NEWNS) != 0) return;
  mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
  mkdir("new", 0700);
  if (mount("/", "new", NULL, MS_BIND | MS_REC, NULL) != 0 || chdir("new") != 0) return;
  if (syscall(SYS_pivot_root, ".", ".") != 0) return;
  umount2(".", MNT_DETACH);
  int directory = open("/", O_PATH | O_DIRECTORY);
  show_prizes_at(directory);
  for (int i = 0; i < 40 && chdir("..") == 0; i++) {}
  show_prizes();
}
ATTEMPT(pivot_to_the_old_root, USER) { in_child(old_root); }

/// The oldest of them all.
static void chroot_twice(void) {
  if (getuid() != 0 && new_user(0) != 0) return;
  mkdir("jail", 0700);
  int here = open(".", O_PATH | O_DIRECTORY);
  if (chroot("jail") != 0 || fchdir(here) != 0) return;
  for (int i = 0; i < 60 && chdir("..") == 0; i++) {}
  if (chroot(".") != 0) return;
  show_prizes();
}
ATTEMPT(chroot_and_up, USER) {
  in_child(chroot_twice);
  rmdir("jail");
}

static void new_proc(void) {
  if (new_user(CLONE_NEWNS) != 0) return;
  mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
  // It belongs to the processes that we can see anyway; the question is which those are.
  char path[PATH_MAX];
  mkdir("proc", 0700);
  if (mount("proc", "proc", "proc", 0, NULL) != 0) mount("/proc", "proc", NULL, MS_BIND | MS_REC, NULL);
  snprintf(path, sizeof path, "proc/%s/cwd/secret", say("VICTIM"));
  show_path(path);
  snprintf(path, sizeof path, "proc/%s/root%s", say("VICTIM"), say("PRIZE_HOST"));
  show_path(path);
}
ATTEMPT(proc_of_its_own, ROOT) {
  in_child(new_proc);
  rmdir("proc");
}

static void cloned_tree(void) {
  int tree = (int)syscall(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE | AT_RECURSIVE);
  if (tree >= 0) show_prizes_at(tree);
}
ATTEMPT(clone_of_the_mounts, ROOT) { in_child(cloned_tree); }

static void moved_mount(void) {
  if (new_user(CLONE_NEWNS) != 0) return;
  mkdir("moved", 0700);
  int tree = (int)syscall(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE | AT_RECURSIVE);
  if (tree < 0 || syscall(SYS_move_mount, tree, "", AT_FDCWD, "moved", MOVE_MOUNT_F_EMPTY_PATH) != 0) return;
  int directory = open("moved", O_PATH | O_DIRECTORY);
  show_prizes_at(directory);
}
ATTEMPT(move_of_a_mount, USER) {
  in_child(moved_mount);
  rmdir("moved");
}

/// Another connection to the daemon, or a filesystem of one's own.
static void new_filesystem(void) {
  int context = (int)syscall(SYS_fsopen, "fuse", 0);
  int device = open("/dev/fuse", O_RDWR);
  char text[32];
  snprintf(text, sizeof text, "%d", device);
  succeed_if(context >= 0 && device >= 0
    && syscall(SYS_fsconfig, context, FSCONFIG_SET_STRING, "fd", text, 0) == 0);
}
ATTEMPT(filesystem_of_its_own, ROOT) { in_child(new_filesystem); }

ATTEMPT(the_fuse_device, USER) { succeed_if(open("/dev/fuse", O_RDWR) >= 0); }

/// A clone of a connection that is open already; outside it is root's way to the daemon's.
ATTEMPT(clone_of_a_connection, ROOT) {
  int process = (int)syscall(SYS_pidfd_open, (pid_t)number("DAEMON"), 0);
  for (int i = 0; i < 256; i++) {
    uint32_t connection;
    int fd = process >= 0 ? (int)syscall(SYS_pidfd_getfd, process, i, 0) : dup(i);
    if (fd < 0) continue;
    char path[64], target[64] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (readlink(path, target, sizeof target - 1) > 0 && strcmp(target, "/dev/fuse") == 0) {
      connection = (uint32_t)fd;
      int device = open("/dev/fuse", O_RDWR);
      int cloned = device >= 0 && ioctl(device, 0x8004e500, &connection) == 0;
      close(device);
      close(fd);
      return succeed_if(cloned);
    }
    close(fd);
  }
}

/// A file of the host's behind one of the daemon's connections.
ATTEMPT(backing_file_of_its_own_choice, ROOT) {
  int process = (int)syscall(SYS_pidfd_open, (pid_t)number("DAEMON"), 0);
  for (int i = 0; i < 256; i++) {
    int fd = process >= 0 ? (int)syscall(SYS_pidfd_getfd, process, i, 0) : dup(i);
    if (fd < 0) continue;
    struct { int32_t fd; uint32_t flags; uint64_t padding; } backing = {open("/usr/bin/env", O_RDONLY), 0, 0};
    int id = ioctl(fd, 0x4010e501, &backing);
    close(backing.fd);
    if (id > 0) {
      uint32_t number = (uint32_t)id;
      ioctl(fd, 0x4004e502, &number);
      return succeed_if(1);
    }
    close(fd);
  }
}

/// The tree is mounted without the right to run what can be written; that is a flag of the mount.
static void remount(void) {
  const char *places[] = {say("POINT"), "/tmp", "/dev/shm", "/", "/usr", NULL};
  for (int i = 0; places[i]; i++)
    if (mount(NULL, places[i], NULL, MS_REMOUNT | MS_BIND, NULL) == 0) return succeed_if(1);
}
ATTEMPT(other_flags_for_a_mount, ROOT) {
  // Outside in a namespace of its own: the machine's mounts stay as they are.
  if (getuid() == 0 && (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0))
    return;
  in_child(remount);
}

static void attributes_of_mounts(void) {
  struct mount_attr attributes = {.attr_clr = MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY};
  const char *places[] = {say("POINT"), "/usr", NULL};
  for (int i = 0; places[i]; i++)
    if (syscall(SYS_mount_setattr, AT_FDCWD, places[i], AT_RECURSIVE, &attributes, sizeof attributes) == 0)
      return succeed_if(1);
}
ATTEMPT(other_attributes_for_a_mount, ROOT) {
  if (getuid() == 0 && (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0))
    return;
  in_child(attributes_of_mounts);
}

/// Which mounts there are outside, and so where the whole tree is and what is behind it.
ATTEMPT(list_of_mounts, USER) {
  show_path("/proc/self/mountinfo");
  show_path("/proc/self/mountstats");
  show_path("/proc/1/mountinfo");
}

ATTEMPT(mounts_of_the_first_namespace, ROOT) {
  // struct mnt_id_req: size, spare, the mount, a parameter, the namespace.
  struct { uint32_t size, spare; uint64_t mount, parameter, space; } request = {32, 0, UINT64_MAX, 0, 0};
  uint64_t ids[64];
  long found = syscall(458, &request, ids, 64, 0);
  for (long i = 0; i < found; i++) {
    static char bytes[8192];
    request.mount = ids[i];
    // STATMOUNT_MNT_ROOT, STATMOUNT_MNT_POINT, STATMOUNT_FS_TYPE, STATMOUNT_SB_SOURCE
    request.parameter = 0x8 | 0x10 | 0x20 | 0x200;
    if (syscall(457, &request, bytes, sizeof bytes, 0) == 0) fwrite(bytes, 1, sizeof bytes, stdout);
  }
}
