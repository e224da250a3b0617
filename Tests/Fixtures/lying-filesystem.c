// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// A filesystem that shows a directory and lies about what is in it, as anybody may write one:
// lying-filesystem DIRECTORY LIE MOUNTPOINT.
//
// What it lies about are files called "page.html" and directories called "de.lproj".

#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *below;
static const char *lie;

static int lies(const char *what, const char *path, const char *name) {
  return !strcmp(lie, what) && strstr(path, name);
}

static const char *real(const char *path) {
  static __thread char full[4096];
  snprintf(full, sizeof full, "%s%s", below, path);
  return full;
}

static int get_attributes(const char *path, struct stat *status, struct fuse_file_info *file) {
  (void)file;
  if (lies("endless", path, "/de.lproj/")) {
    memset(status, 0, sizeof *status);
    status->st_mode = S_IFREG | 0644;
    status->st_nlink = 1;
    return 0;
  }
  if (lstat(real(path), status) != 0) return -errno;
  if (lies("blocks", path, "page.html")) status->st_blocks = 1LL << 60;
  if (lies("size", path, "page.html")) status->st_size = INT64_MAX;
  if (lies("seek", path, "page.html")) {
    status->st_size = 1 << 30;
    status->st_blocks = 1;
  }
  return 0;
}

static int list(const char *path, void *names, fuse_fill_dir_t add, off_t offset, struct fuse_file_info *file,
                enum fuse_readdir_flags flags) {
  (void)file, (void)flags;
  if (lies("endless", path, "/de.lproj")) {
    char name[32];
    do snprintf(name, sizeof name, "%lld", (long long)++offset);
    while (!add(names, name, NULL, offset, 0));
    return 0;
  }
  DIR *directory = opendir(real(path));
  if (!directory) return -errno;
  for (struct dirent *entry; (entry = readdir(directory));) add(names, entry->d_name, NULL, 0, 0);
  closedir(directory);
  return 0;
}

static int open_file(const char *path, struct fuse_file_info *file) {
  int descriptor = open(real(path), O_RDONLY);
  if (descriptor < 0) return -errno;
  file->fh = (uint64_t)descriptor;
  file->direct_io = 1;
  return 0;
}

static int read_file(const char *path, char *bytes, size_t size, off_t offset, struct fuse_file_info *file) {
  static int times;
  if (lies("seek", path, "page.html")) {
    memset(bytes, 'x', size);
    return (int)size;
  }
  ssize_t count = pread((int)file->fh, bytes, size, offset);
  if (count < 0) return -errno;
  if (lies("contents", path, "page.html") && times++ % 2 == 0) memset(bytes, 'x', (size_t)count);
  return (int)count;
}

static off_t seek_file(const char *path, off_t offset, int whence, struct fuse_file_info *file) {
  if (lies("seek", path, "page.html")) return whence == SEEK_DATA ? 0 : 1;
  off_t found = lseek((int)file->fh, offset, whence);
  return found < 0 ? -errno : found;
}

static int read_link(const char *path, char *target, size_t size) {
  ssize_t count = readlink(real(path), target, size - 1);
  if (count < 0) return -errno;
  target[count] = 0;
  return 0;
}

static int close_file(const char *path, struct fuse_file_info *file) {
  (void)path;
  return close((int)file->fh);
}

static const struct fuse_operations operations = {.getattr = get_attributes,
                                                  .readdir = list,
                                                  .open = open_file,
                                                  .read = read_file,
                                                  .lseek = seek_file,
                                                  .readlink = read_link,
                                                  .release = close_file};

int main(int count, char **words) {
  if (count < 4) return 2;
  below = words[1];
  lie = words[2];
  char *rest[] = {words[0], words[3], NULL};
  return fuse_main(2, rest, &operations, NULL);
}
