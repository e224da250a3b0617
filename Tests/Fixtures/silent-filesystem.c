// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// A filesystem that falls silent, as anybody may write one: silent-filesystem MOUNTPOINT [synchronous|slow].
//
// A slow one answers what is read after a third of a second.
//
// The kernel waits for what it reads ahead there as well if it is synchronous: no signal ends that.
//
// It has a directory called "directory", a file called "file" and one called "memory". It never answers when
// a file is closed or read, and nothing any more after SIGUSR1.

#define FUSE_USE_VERSION 312
#include <errno.h>
#include <fuse_lowlevel.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { top = 1, directory = 2, file = 3, memory = 4 };
static volatile sig_atomic_t is_silent;
static int is_synchronous, is_slow;
static const char zeros[1 << 20];

static void begin(void *data, struct fuse_conn_info *connection) {
  (void)data;
  if (is_synchronous) connection->want &= ~FUSE_CAP_ASYNC_READ;
}

static void fall_silent(int signal) {
  (void)signal;
  is_silent = 1;
}

static struct stat status_of(fuse_ino_t node) {
  struct stat status = {.st_ino = node, .st_uid = getuid(), .st_gid = getgid()};
  status.st_mode = node >= file ? S_IFREG | 0644 : S_IFDIR | 0755;
  status.st_nlink = node >= file ? 1 : 2;
  status.st_size = node != memory ? 0 : is_slow ? 1 << 30 : 4096;
  return status;
}

static void get_attributes(fuse_req_t request, fuse_ino_t node, struct fuse_file_info *info) {
  (void)info;
  struct stat status = status_of(node);
  if (!is_silent) fuse_reply_attr(request, &status, 0);
}

static void look_up(fuse_req_t request, fuse_ino_t parent, const char *name) {
  struct fuse_entry_param entry = {0};
  if (is_silent) return;
  if (parent == top && !strcmp(name, "directory")) entry.ino = directory;
  if (parent == top && !strcmp(name, "file")) entry.ino = file;
  if (parent == top && !strcmp(name, "memory")) entry.ino = memory;
  entry.attr = status_of(entry.ino);
  if (entry.ino) fuse_reply_entry(request, &entry);
  else fuse_reply_err(request, ENOENT);
}

static void open_any(fuse_req_t request, fuse_ino_t node, struct fuse_file_info *info) {
  (void)node;
  if (!is_silent) fuse_reply_open(request, info);
}

static void read_directory(fuse_req_t request, fuse_ino_t node, size_t size, off_t offset,
                           struct fuse_file_info *info) {
  (void)node, (void)size, (void)offset, (void)info;
  if (!is_silent) fuse_reply_buf(request, NULL, 0);
}

static void tell_room(fuse_req_t request, fuse_ino_t node) {
  (void)node;
  struct statvfs room = {.f_namemax = 255, .f_bsize = 4096};
  if (!is_silent) fuse_reply_statfs(request, &room);
}

static void read_file(fuse_req_t request, fuse_ino_t node, size_t size, off_t offset,
                      struct fuse_file_info *info) {
  (void)node, (void)offset, (void)info;
  if (!is_slow) return;
  usleep(300000);
  fuse_reply_buf(request, zeros, size < sizeof zeros ? size : sizeof zeros);
}

static void flush_file(fuse_req_t request, fuse_ino_t node, struct fuse_file_info *info) {
  (void)node, (void)info;
  if (is_slow) fuse_reply_err(request, 0);
}

static const struct fuse_lowlevel_ops operations = {.init = begin,
                                                    .getattr = get_attributes,
                                                    .lookup = look_up,
                                                    .open = open_any,
                                                    .opendir = open_any,
                                                    .readdir = read_directory,
                                                    .statfs = tell_room,
                                                    .read = read_file,
                                                    .flush = flush_file};

int main(int count, char **words) {
  if (count < 2) return 2;
  is_synchronous = count > 2 && !strcmp(words[2], "synchronous");
  is_slow = count > 2 && !strcmp(words[2], "slow");
  char *first[] = {words[0], NULL};
  struct fuse_args arguments = FUSE_ARGS_INIT(1, first);
  struct fuse_session *session = fuse_session_new(&arguments, &operations, sizeof operations, NULL);
  if (!session) return 2;
  struct sigaction action = {.sa_handler = fall_silent, .sa_flags = SA_RESTART};
  sigaction(SIGUSR1, &action, NULL);
  if (fuse_session_mount(session, words[1]) != 0) return 2;
  return fuse_session_loop(session) != 0;
}
