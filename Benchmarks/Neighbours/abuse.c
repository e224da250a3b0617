// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
//
// The abusers. Each works in a directory of its own until its time is up; whoever is refused goes on trying.

#include "neighbour.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

static uint64_t end;
static const char *other;

static int going(void) { return now() < end; }

// Opens as many as the process gets, and tries again and again for more.
static void hoard(int flags) {
  need(mkdir("many", 0700) == 0 || errno == EEXIST ? 0 : -1, "many");
  for (unsigned number = 0; going(); number++) {
    char name[64];
    snprintf(name, sizeof name, "many/%d-%u", getpid(), number);
    if (flags & O_DIRECTORY && mkdir(name, 0700) < 0) usleep(1000);
    int file = open(name, flags | (flags & O_DIRECTORY ? 0 : O_CREAT), 0600);
    if (file < 0) {
      usleep(1000);
      continue;
    }
    // A directory is only known to be open once somebody has begun to read it.
    char entry[1024];
    if (flags & O_DIRECTORY && getdents64(file, entry, sizeof entry) < 0) close(file);
  }
}

static void directories(unsigned number) {
  (void)number;
  hoard(O_RDONLY | O_DIRECTORY);
}

static void descriptors(unsigned number) {
  (void)number;
  hoard(O_RDWR);
}

static void fill(const char *name, off_t size) {
  int file = need(open(name, O_RDWR | O_CREAT, 0600), name);
  static char bytes[1 << 20];
  memset(bytes, 7, sizeof bytes);
  for (off_t at = 0; at < size; at += sizeof bytes)
    need(pwrite(file, bytes, sizeof bytes, at) > 0 ? 0 : -1, name);
  close(file);
}

// All loops read one file, so that they take time and not the disk.
static void copies(unsigned number) {
  char name[64];
  off_t size = 64 << 20;
  snprintf(name, sizeof name, "copy-%u", number);
  fill(name, size);
  int from = need(open(name, O_RDONLY), name);
  strcat(name, "-to");
  int to = need(open(name, O_RDWR | O_CREAT, 0600), name);
  while (going()) {
    off_t in = 0, out = 0;
    while (going() && copy_file_range(from, &in, to, &out, (size_t)size, 0) > 0) continue;
    if (ftruncate(to, 0) < 0) return;
  }
}

static void synchronizations(unsigned number) {
  char name[64];
  snprintf(name, sizeof name, "synchronized-%u", number);
  int file = need(open(name, O_RDWR | O_CREAT, 0600), name);
  for (unsigned round = 0; going(); round++) {
    if (pwrite(file, &round, sizeof round, (round % 4096) * 4096) < 0) usleep(1000);
    fsync(file);
  }
}

static void truncations(unsigned number) {
  char name[64];
  snprintf(name, sizeof name, "truncated-%u", number);
  int file = need(open(name, O_RDWR | O_CREAT, 0600), name);
  while (going()) {
    if (fallocate(file, 0, 0, 256 << 20) < 0) usleep(1000);
    if (ftruncate(file, 0) < 0) usleep(1000);
  }
}

// Every other byte, so that no two of them become one.
static void locks(unsigned number) {
  int file = need(open("locked", O_RDWR | O_CREAT, 0600), "locked");
  for (unsigned round = 0; going(); round++) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    lock.l_start = (off_t)number * 1000000 + (round % 100000) * 2;
    if (fcntl(file, F_SETLK, &lock) < 0) usleep(1000);
  }
}

static void *waits(void *argument) {
  (void)argument;
  int file = open("waited-for", O_RDWR);
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
  if (file >= 0) fcntl(file, F_OFD_SETLKW, &lock);
  return NULL;
}

static void parked(unsigned number) {
  int file = need(open("waited-for", O_RDWR | O_CREAT, 0600), "waited-for");
  if (number == 0) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    fcntl(file, F_OFD_SETLKW, &lock);
  } else {
    sleep(1);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 32 << 10);
    pthread_t thread;
    for (unsigned count = 0; count < 1000 && going(); count++) pthread_create(&thread, &small, waits, NULL);
  }
  while (going()) usleep(10000);
  _exit(0);
}

static void names(unsigned number) {
  for (unsigned round = 0; going(); round++) {
    char name[64], next[64];
    snprintf(name, sizeof name, "name-%u-%u", number, round % 100);
    snprintf(next, sizeof next, "next-%u-%u", number, round % 100);
    int file = open(name, O_WRONLY | O_CREAT, 0600);
    if (file >= 0) close(file);
    rename(name, next);
    unlink(next);
  }
}

static void listings(unsigned number) {
  for (unsigned round = 0; number == 0 && round < 20000 && going(); round++) {
    char name[64];
    snprintf(name, sizeof name, "listed-%u", round);
    int file = open(name, O_WRONLY | O_CREAT, 0600);
    if (file >= 0) close(file);
  }
  while (going()) {
    DIR *stream = opendir(".");
    if (!stream) continue;
    struct dirent *entry;
    struct stat status;
    while (going() && (entry = readdir(stream)))
      if (number % 2) fstatat(dirfd(stream), entry->d_name, &status, 0);
    closedir(stream);
  }
}

// Opens and closes a directory with names in it that everybody's kernel remembers.
static void closings(unsigned number) {
  char name[64];
  snprintf(name, sizeof name, "closed-%u", number);
  need(mkdir(name, 0755) == 0 || errno == EEXIST ? 0 : -1, name);
  char inner[80];
  snprintf(inner, sizeof inner, "%s/inner", name);
  mkdir(inner, 0755);
  while (going()) {
    struct stat status;
    stat(inner, &status);
    chmod(name, 0700);
    chmod(name, 0755);
  }
}

// Asks for what is in a directory that it may not search.
static void strangers(unsigned number) {
  (void)number;
  char name[4096];
  for (unsigned round = 0; going(); round++) {
    struct stat status;
    snprintf(name, sizeof name, "%s/file-%u", other, round % 200);
    stat(name, &status);
    stat(other, &status);
  }
}

// Talks to a socket and never listens.
static void requests(unsigned number) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", other);
  static const char request[] = "{\"verb\":\"status\"}\n";
  int held[256] = {0};
  for (unsigned round = 0; going(); round++) {
    int *place = &held[round % 256];
    if (*place > 0) close(*place);
    *place = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (*place < 0 || connect(*place, (struct sockaddr *)&address, sizeof address) < 0) {
      usleep(100);
      continue;
    }
    // Half of them never end their request.
    for (unsigned count = 0; count < 20; count++)
      if (send(*place, request, sizeof request - 1 - number % 2, MSG_NOSIGNAL) < 0) break;
  }
}

static const struct {
  const char *name;
  void (*perform)(unsigned number);
  unsigned processes;
} kinds[] = {
    {"directories", directories, 3}, {"descriptors", descriptors, 3},
    {"copies", copies, 10},          {"synchronizations", synchronizations, 8},
    {"truncations", truncations, 8}, {"locks", locks, 4},
    {"parked", parked, 6},           {"names", names, 8},
    {"listings", listings, 8},       {"closings", closings, 4},
    {"strangers", strangers, 4},     {"requests", requests, 8},
};

int abuse(const char *kind, const char *place, const char *what, double seconds) {
  other = what;
  end = now() + (uint64_t)(seconds * 1e9);
  need(chdir(place), place);
  for (unsigned index = 0; index < sizeof kinds / sizeof *kinds; index++) {
    if (strcmp(kinds[index].name, kind) != 0) continue;
    for (unsigned number = 0; number < kinds[index].processes; number++) {
      if (need(fork(), "fork") > 0) continue;
      kinds[index].perform(number);
      _exit(0);
    }
    while (wait(NULL) > 0) continue;
    return 0;
  }
  fprintf(stderr, "there is no abuse called %s\n", kind);
  return 2;
}
