// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// Attempts to get out of a view. Each is a function that prints what it has got hold of; it has succeeded if
// that contains the secret, which it is not told, or the word that it may say where there is nothing to read,
// or if one of the prizes has changed.
//
// The same program runs outside, where each of them must succeed: as the user whose app it is, or as root
// where that takes root.

#ifndef ESCAPE_H
#define ESCAPE_H
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum who { USER, ROOT };

void add_attempt(const char *name, enum who who, void (*run)(void));

/// Defines an attempt, and who can do it outside.
#define ATTEMPT(name, who) \
  static void name(void); \
  __attribute__((constructor)) static void add_##name(void) { add_attempt(#name, who, name); } \
  static void name(void)

/// What a variable says; a place that is nowhere if it is not set.
const char *say(const char *variable);
long number(const char *variable);
/// Prints what can be read from a descriptor, or from what it names; closes it.
void show(int fd);
void show_path(const char *path);
void show_at(int directory, const char *path);
/// Prints the prizes that lie outside, by their paths as they are seen now.
void show_prizes(void);
void show_prizes_at(int directory);
/// For what has nothing to show.
void succeed_if(int succeeded);
/// Directories in which an app may write.
extern const char *writable[];
/// Runs `body` in a child, so that what it does to itself ends with it.
void in_child(void (*body)(void));

#endif
