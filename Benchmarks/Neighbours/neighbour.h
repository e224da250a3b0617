// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
//
// What the victim and the abusers share: a clock, an end, and what was refused.

#pragma once

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static inline uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

// Ends the program where something fails that neither side is measured by.
static inline int need(int result, const char *what) {
  if (result < 0) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(3);
  }
  return result;
}

// victim.c: works as an ordinary user for so many seconds and prints how long each operation took.
int victim(const char *place, double seconds);

// abuse.c: takes as much as it can of one thing, until it is killed or the time is up.
int abuse(const char *kind, const char *place, const char *other, double seconds);

// server.c: a plain local service, until it is killed.
int serve(const char *path);
