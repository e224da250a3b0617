// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
//
// One operation in a loop, in the working directory, for a profile of where its time goes.
//
// usage: loop OPERATION SECONDS
// Prints the number of operations and the nanoseconds of each.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec / 1e9;
}

static void demand(int isGood, const char *what) {
  if (isGood) return;
  perror(what);
  exit(1);
}

// Directories of a thousand names, as a tree of files has them; they are made untimed.
static void enter(long number) {
  char name[32];
  if (number % 1000 != 0) return;
  if (number > 0) demand(chdir("..") == 0, "chdir");
  snprintf(name, sizeof name, "d%ld", number / 1000);
  demand(mkdir(name, 0755) == 0 && chdir(name) == 0, name);
}

static void make(const char *name, int flags) {
  int file = open(name, flags | O_CREAT | O_WRONLY, 0644);
  demand(file >= 0, name);
  close(file);
}

int main(int count, char **words) {
  if (count != 3) return fprintf(stderr, "usage: loop OPERATION SECONDS\n"), 2;
  const char *operation = words[1];
  double limit = atof(words[2]), spent = 0;
  char name[32], value[16];
  make("file", 0);
  demand(setxattr("file", "user.note", "0123456789", 10, 0) == 0, "setxattr");
  long done = 0;
  for (; spent < limit; done++) {
    int makes = strcmp(operation, "create") == 0 || strcmp(operation, "mkdir") == 0;
    if (makes) enter(done);
    snprintf(name, sizeof name, "n%ld", done);
    double start = now();
    if (strcmp(operation, "getxattr") == 0)
      demand(getxattr("file", "user.note", value, sizeof value) == 10, operation);
    else if (strcmp(operation, "setxattr") == 0)
      demand(setxattr("file", "user.note", "0123456789", 10, 0) == 0, operation);
    else if (strcmp(operation, "chmod") == 0)
      demand(chmod("file", done % 2 ? 0644 : 0600) == 0, operation);
    else if (strcmp(operation, "rename") == 0)
      demand(rename(done % 2 ? "other" : "file", done % 2 ? "file" : "other") == 0, operation);
    else if (strcmp(operation, "create") == 0)
      make(name, O_EXCL);
    else if (strcmp(operation, "mkdir") == 0)
      demand(mkdir(name, 0755) == 0, operation);
    else
      return fprintf(stderr, "loop: no operation '%s'\n", operation), 2;
    spent += now() - start;
  }
  printf("%ld %.0f\n", done, spent / done * 1e9);
  return 0;
}
