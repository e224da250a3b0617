// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// By paths, names and descriptors of the app's own.

#include "escape.h"
#include <linux/openat2.h>
#include <pthread.h>
#include <sys/inotify.h>
#include <sys/fanotify.h>
#include <time.h>

/// As many levels as there can be.
ATTEMPT(parents_of_the_working_directory, USER) {
  char way[PATH_MAX] = "";
  for (int level = 0; level < 40; level++) {
    strcat(way, "../");
    int directory = open(way, O_PATH | O_DIRECTORY);
    if (directory < 0) continue;
    show_prizes_at(directory);
    close(directory);
  }
}

ATTEMPT(parents_of_each_open_directory, USER) {
  const char *starts[] = {"/", "/usr", "/proc", "/dev", "/tmp", "/etc", ".", NULL};
  for (int i = 0; starts[i]; i++) {
    int directory = open(starts[i], O_PATH | O_DIRECTORY);
    for (int level = 0; directory >= 0 && level < 20; level++) {
      show_prizes_at(directory);
      int parent = openat(directory, "..", O_PATH | O_DIRECTORY);
      close(directory);
      directory = parent;
    }
    if (directory >= 0) close(directory);
  }
}

ATTEMPT(named_only_and_opened_again, USER) {
  const char *names[] = {"PRIZE_HOST", "PRIZE_OTHER", "PRIZE_HOME", NULL};
  for (int i = 0; names[i]; i++) {
    int fd = open(say(names[i]), O_PATH);
    char again[64];
    snprintf(again, sizeof again, "/proc/self/fd/%d", fd);
    show_path(again);
    if (fd >= 0) show(openat(fd, "", O_RDONLY));
  }
}

ATTEMPT(openat2_without_limits, USER) {
  const char *names[] = {"PRIZE_HOST", "PRIZE_OTHER", "PRIZE_HOME", NULL};
  uint64_t resolves[] = {0, RESOLVE_IN_ROOT, RESOLVE_NO_XDEV};
  for (int i = 0; names[i]; i++) {
    for (int k = 0; k < 3; k++) {
      struct open_how how = {.flags = O_RDONLY, .resolve = resolves[k]};
      int directory = open("/", O_PATH | O_DIRECTORY);
      show((int)syscall(SYS_openat2, directory, say(names[i]), &how, sizeof how));
      close(directory);
    }
  }
}

/// Longer than any path may be: step by step, and from deep down up again.
ATTEMPT(overlong_paths, USER) {
  char name[201];
  memset(name, 'd', 200);
  name[200] = 0;
  char start[PATH_MAX];
  if (!getcwd(start, sizeof start)) return;
  if (mkdir("deep", 0700) != 0 || chdir("deep") != 0) return;
  int depth = 0;
  while (depth < 30 && mkdir(name, 0700) == 0 && chdir(name) == 0) depth++;
  // Up by the same number of steps, and on to where it began, and further.
  for (int level = 0; level < depth + 40; level++) {
    if (chdir("..") != 0) break;
    int here = open(".", O_PATH | O_DIRECTORY);
    if (level > depth) show_prizes_at(here);
    close(here);
  }
  if (chdir(start) != 0) return;
  // One path of nearly that length that leads to the root.
  static char way[PATH_MAX];
  way[0] = 0;
  while (strlen(way) < PATH_MAX - 300) strcat(way, "./../");
  strcat(way, say("PRIZE_HOST"));
  show_path(way);
  if (system("rm -rf deep") != 0) return;
}

static volatile int racing;

/// Tries until there was something to read, or for as long as anyone would.
static void race_until_shown(const char *path) {
  time_t end = time(NULL) + 3;
  while (time(NULL) < end) {
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    struct stat status;
    int found = fd >= 0 && fstat(fd, &status) == 0 && status.st_size > 0;
    show(fd);
    if (found) return;
  }
}

static void *flip_link(void *unused) {
  (void)unused;
  while (racing) {
    unlink("race");
    if (symlink(say("PRIZE_OTHER"), "race") != 0) continue;
    unlink("race");
    int fd = open("race", O_WRONLY | O_CREAT, 0600);
    if (fd >= 0) close(fd);
  }
  return NULL;
}

ATTEMPT(race_of_a_file_and_a_link, USER) {
  pthread_t thread;
  racing = 1;
  if (pthread_create(&thread, NULL, flip_link, NULL) != 0) return;
  race_until_shown("race");
  racing = 0;
  pthread_join(thread, NULL);
  unlink("race");
}

static void *move_up_and_down(void *unused) {
  (void)unused;
  while (racing) {
    rename("one/two/three", "three");
    rename("three", "one/two/three");
  }
  return NULL;
}

/// Whoever is in a directory that moves up takes more steps up than there are.
ATTEMPT(race_of_a_directory_that_moves, USER) {
  pthread_t thread;
  mkdir("one", 0700);
  mkdir("one/two", 0700);
  mkdir("one/two/three", 0700);
  racing = 1;
  if (pthread_create(&thread, NULL, move_up_and_down, NULL) != 0) return;
  char way[PATH_MAX];
  for (int i = 0; i < 2000; i++) {
    snprintf(way, sizeof way, "one/two/three/../../../../../../../../../../../../../../..%s",
             say("PRIZE_HOST"));
    show_path(way);
    snprintf(way, sizeof way, "one/two/three/../../../../../../../../../../../../../../..%s",
             say("PRIZE_OTHER"));
    show_path(way);
  }
  racing = 0;
  pthread_join(thread, NULL);
  if (system("rm -rf one three") != 0) return;
}

static void *exchange_forever(void *unused) {
  (void)unused;
  while (racing) syscall(SYS_renameat2, AT_FDCWD, "swap", AT_FDCWD, "trap", 2);
  return NULL;
}

/// A directory of the app's and a link to another's place change their names while someone walks through.
ATTEMPT(race_of_exchanged_names, USER) {
  char directory[PATH_MAX];
  snprintf(directory, sizeof directory, "%s", say("PRIZE_OTHER"));
  char *slash = strrchr(directory, '/');
  if (!slash) return;
  *slash = 0;
  mkdir("swap", 0700);
  if (symlink(directory, "trap") != 0) return;
  pthread_t thread;
  racing = 1;
  if (pthread_create(&thread, NULL, exchange_forever, NULL) != 0) return;
  race_until_shown("swap/secret");
  racing = 0;
  pthread_join(thread, NULL);
  if (system("rm -rf swap trap") != 0) return;
}

/// By the handles that files have in the filesystems below; they are in variables, in hexadecimal.
ATTEMPT(handles_from_outside, ROOT) {
  const char *roots[] = {"/", ".", "/usr", "/tmp", "/dev/shm", "/etc/passwd", NULL};
  struct { struct file_handle head; unsigned char bytes[128]; } handle;
  const char *text = say("HANDLE");
  handle.head.handle_type = (int)number("HANDLE_TYPE");
  handle.head.handle_bytes = (unsigned)strlen(text) / 2;
  if (handle.head.handle_bytes > 128) return;
  for (unsigned i = 0; i < handle.head.handle_bytes; i++) {
    unsigned byte = 0;
    sscanf(text + 2 * i, "%2x", &byte);
    handle.head.f_handle[i] = (unsigned char)byte;
  }
  for (int i = 0; roots[i]; i++) {
    int root = open(roots[i], O_RDONLY);
    if (root < 0) continue;
    show(open_by_handle_at(root, &handle.head, O_RDONLY));
    close(root);
  }
}

/// Tells whether there is something, without a look at it.
ATTEMPT(asking_whether_it_is_there, USER) {
  struct stat status;
  struct statx extended;
  succeed_if(access(say("PRIZE_OTHER"), F_OK) == 0 || lstat(say("PRIZE_OTHER"), &status) == 0
    || statx(AT_FDCWD, say("PRIZE_HOST"), 0, STATX_BASIC_STATS, &extended) == 0
    || mkdir(say("PRIZE_HOST"), 0700) == 0 || errno == EEXIST);
}

ATTEMPT(watching_from_afar, USER) {
  int watch = inotify_init1(IN_NONBLOCK);
  succeed_if(inotify_add_watch(watch, say("PRIZE_HOST"), IN_ALL_EVENTS) >= 0
    || inotify_add_watch(watch, say("PRIZE_OTHER"), IN_ALL_EVENTS) >= 0);
}

ATTEMPT(watching_whole_filesystems, ROOT) {
  int watch = (int)syscall(SYS_fanotify_init, FAN_CLASS_NOTIF | FAN_NONBLOCK, O_RDONLY);
  succeed_if(
      watch >= 0
      && syscall(SYS_fanotify_mark, watch, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, FAN_OPEN, AT_FDCWD, "/usr")
             == 0);
}
