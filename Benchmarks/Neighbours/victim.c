// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
//
// The victim: does one operation after the other in its own directory, with a short pause between them, as a
// person's programs do. Prints a line for each kind: name, count, refused, median and 99th percentile in
// microseconds.

#include "neighbour.h"

#include <dirent.h>

enum { most = 200000, files = 200 };

typedef struct {
  const char *name;
  int (*perform)(int directory, unsigned number);
  unsigned count, refused;
  int error;
  uint64_t *times;
} Operation;

static int make(int directory, unsigned number) {
  char name[32];
  snprintf(name, sizeof name, "new-%u", number);
  int file = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (file < 0) return -1;
  ssize_t written = write(file, name, sizeof name);
  close(file);
  int removed = unlinkat(directory, name, 0);
  return written == sizeof name ? removed : -1;
}

static int look(int directory, unsigned number) {
  char name[32];
  snprintf(name, sizeof name, "file-%u", number % files);
  struct stat status;
  return fstatat(directory, name, &status, 0);
}

static int list(int directory, unsigned number) {
  (void)number;
  int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY);
  if (copy < 0) return -1;
  DIR *stream = fdopendir(copy);
  if (!stream) {
    close(copy);
    return -1;
  }
  unsigned seen = 0;
  errno = 0;
  while (readdir(stream)) seen += 1;
  int failed = errno;
  closedir(stream);
  errno = failed;
  return !failed && seen >= files ? 0 : -1;
}

static int read_file(int directory, unsigned number) {
  char name[32], bytes[4096];
  snprintf(name, sizeof name, "file-%u", number % files);
  int file = openat(directory, name, O_RDONLY);
  if (file < 0) return -1;
  ssize_t count = pread(file, bytes, sizeof bytes, 0);
  close(file);
  return count == sizeof bytes ? 0 : -1;
}

static int make_directory(int directory, unsigned number) {
  char name[32];
  snprintf(name, sizeof name, "directory-%u", number);
  return mkdirat(directory, name, 0700) == 0 ? unlinkat(directory, name, AT_REMOVEDIR) : -1;
}

static int ascending(const void *one, const void *other) {
  uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
  return (a > b) - (a < b);
}

static void prepare(int directory) {
  char bytes[4096] = "x";
  for (unsigned number = 0; number < files; number++) {
    char name[32];
    snprintf(name, sizeof name, "file-%u", number);
    int file = need(openat(directory, name, O_WRONLY | O_CREAT, 0600), name);
    need(write(file, bytes, sizeof bytes) == sizeof bytes ? 0 : -1, name);
    close(file);
  }
}

int victim(const char *place, double seconds) {
  Operation operations[] = {
      {.name = "create", .perform = make},   {.name = "mkdir", .perform = make_directory},
      {.name = "stat", .perform = look},     {.name = "list", .perform = list},
      {.name = "read", .perform = read_file},
  };
  enum { kinds = sizeof operations / sizeof *operations };
  int directory = need(open(place, O_RDONLY | O_DIRECTORY), place);
  prepare(directory);
  for (unsigned kind = 0; kind < kinds; kind++) operations[kind].times = calloc(most, sizeof(uint64_t));
  uint64_t end = now() + (uint64_t)(seconds * 1e9);
  // Each of them once, however long that takes.
  for (unsigned number = 0; now() < end || number < kinds; number++) {
    Operation *operation = &operations[number % kinds];
    uint64_t begin = now();
    int result = operation->perform(directory, number);
    uint64_t time = now() - begin;
    if (result < 0) {
      operation->refused += 1;
      operation->error = errno;
    }
    if (operation->count < most) operation->times[operation->count++] = time;
    usleep(500);
  }
  for (unsigned kind = 0; kind < kinds; kind++) {
    Operation *operation = &operations[kind];
    if (operation->count == 0) return 1;
    qsort(operation->times, operation->count, sizeof(uint64_t), ascending);
    printf("%s %u %u %.1f %.1f %s\n", operation->name, operation->count, operation->refused,
           operation->times[operation->count / 2] / 1e3,
           operation->times[operation->count * 99ull / 100] / 1e3,
           operation->refused ? strerrorname_np(operation->error) : "-");
  }
  return 0;
}
