// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
// What Benchmarks/purge.py runs, within an app's view and outside of it.
//
//   purge fill DIR FILES UID GID   makes so many small files below DIR, a thousand in each directory
//   purge open FILES SECONDS       opens, reads and closes files of its own; prints a line "BUCKET COUNT" for
//                                  each bucket of times, 256 of which double the time
//   purge start                    makes files in both directories that may be purged, and looks for them;
//                                  7, 8 or 9 where one is missing
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void make(const char *path, size_t size) {
  static char words[4096];
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || write(file, words, size) != (ssize_t)size) fail(path);
  close(file);
}

static int fill(const char *directory, long files, unsigned uid, unsigned gid) {
  if (chdir(directory)) fail(directory);
  for (long i = 0; i < files; i++) {
    char path[64];
    snprintf(path, sizeof path, "d%ld", i / 1000);
    if (i % 1000 == 0 && (mkdir(path, 0700) || chown(path, uid, gid))) fail(path);
    snprintf(path, sizeof path, "d%ld/f%ld", i / 1000, i % 1000);
    make(path, 100);
    if (chown(path, uid, gid)) fail(path);
  }
  return 0;
}

static int opens(long files, double seconds) {
  static uint32_t counts[256 * 40];
  char path[4096];
  const char *home = getenv("HOME");
  snprintf(path, sizeof path, "%s/Documents", home ? home : ".");
  if (chdir(path)) fail(path);
  for (long i = 0; i < files; i++) {
    snprintf(path, sizeof path, "o%ld", i);
    if (access(path, F_OK)) make(path, 4096);
  }
  uint64_t begin = now() + 100000000u, end = begin + (uint64_t)(seconds * 1e9);
  for (unsigned seed = 1;;) {
    char bytes[4096];
    snprintf(path, sizeof path, "o%ld", rand_r(&seed) % files);
    uint64_t before = now();
    if (before >= end) break;
    int file = open(path, O_RDONLY);
    if (file < 0 || read(file, bytes, sizeof bytes) != sizeof bytes) fail(path);
    close(file);
    uint64_t took = now() - before;
    if (before >= begin) counts[(int)(log2((double)took) * 256) % (256 * 40)]++;
  }
  for (int i = 0; i < 256 * 40; i++)
    if (counts[i]) printf("%d %u\n", i, counts[i]);
  return 0;
}

static int start(void) {
  const char *places[] = {"tmp", "Library/Caches"}, *home = getenv("HOME");
  for (int p = 0; p < 2; p++) {
    if (!home || chdir(home) || chdir(places[p])) return 6;
    if ((mkdir("a", 0700) && errno != EEXIST) || (mkdir("a/b", 0700) && errno != EEXIST)) return 7;
    for (int i = 0; i < 20; i++) {
      char path[32];
      snprintf(path, sizeof path, "a/b/%d", i);
      make(path, 100);
    }
  }
  for (int round = 0; round < 10; round++)
    for (int p = 0; p < 2; p++)
      for (int i = 0; i < 20; i++) {
        char path[4096];
        struct stat status;
        snprintf(path, sizeof path, "%s/%s/a/b/%d", home, places[p], i);
        if (stat(path, &status)) return 8;
        if (status.st_size != 100) return 9;
      }
  return 0;
}

int main(int count, char **words) {
  if (count == 6 && !strcmp(words[1], "fill"))
    return fill(words[2], atol(words[3]), (unsigned)atol(words[4]), (unsigned)atol(words[5]));
  if (count == 4 && !strcmp(words[1], "open")) return opens(atol(words[2]), atof(words[3]));
  if (count == 2 && !strcmp(words[1], "start")) return start();
  fprintf(stderr, "purge fill DIR FILES UID GID | open FILES SECONDS | start\n");
  return 2;
}
