// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// Preloaded, it keeps the attribute of `FILE` in `FILE.nfs4`, so that nfs4-acl-tools can be watched where
// there is no NFSv4.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

static int open_beside(const char *path, int flags) {
  char beside[4096];
  snprintf(beside, sizeof beside, "%s.nfs4", path);
  return open(beside, flags | O_CLOEXEC, 0600);
}

ssize_t getxattr(const char *path, const char *name, void *value, size_t size) {
  static char all[65536];
  (void)name;
  int file = open_beside(path, O_RDONLY);
  if (file < 0) {
    errno = ENODATA;
    return -1;
  }
  ssize_t length = size == 0 ? read(file, all, sizeof all) : read(file, value, size);
  close(file);
  return length;
}

int setxattr(const char *path, const char *name, const void *value, size_t size, int flags) {
  (void)name;
  (void)flags;
  int file = open_beside(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (file < 0) return -1;
  ssize_t written = write(file, value, size);
  close(file);
  return written == (ssize_t)size ? 0 : -1;
}
