// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// By running what the app itself has written, and by programs that have rights of their own.

#include "escape.h"
#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>

static int copy(const char *from, int to) {
  char bytes[65536];
  ssize_t size;
  int source = open(from, O_RDONLY);
  if (source < 0) return -1;
  while ((size = read(source, bytes, sizeof bytes)) > 0)
    if (write(to, bytes, (size_t)size) != size) return -1;
  close(source);
  return size < 0 ? -1 : 0;
}

/// Writes a copy of a program of the machine's; its descriptor is closed.
static const char *write_program(const char *directory, const char *program) {
  static char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/written", directory);
  unlink(path);
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0755);
  if (fd < 0) return NULL;
  int failed = copy(program, fd);
  close(fd);
  return failed ? NULL : path;
}

static int run(char **words) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    execv(words[0], words);
    _exit(99);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

ATTEMPT(program_that_it_has_written, USER) {
  int ran = 0;
  for (int i = 0; writable[i]; i++) {
    const char *path = write_program(say(writable[i]), "/usr/bin/true");
    char *words[] = {(char *)path, NULL};
    if (path && run(words) == 0) ran = 1;
    if (path) unlink(path);
  }
  succeed_if(ran);
}

ATTEMPT(script_that_it_has_written, USER) {
  int ran = 0;
  for (int i = 0; writable[i]; i++) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/script", say(writable[i]));
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    if (fd < 0) continue;
    if (write(fd, "#!/bin/sh\nexit 0\n", 17) != 17) return;
    close(fd);
    char *words[] = {path, NULL};
    if (run(words) == 0) ran = 1;
    unlink(path);
  }
  succeed_if(ran);
}

ATTEMPT(program_in_its_groups_container, USER) {
  const char *path = write_program(say("GROUP"), "/usr/bin/true");
  char *words[] = {(char *)path, NULL};
  succeed_if(path && run(words) == 0);
  if (path) unlink(path);
}

static const char *loader(void) {
  const char *loaders[] = {"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", NULL};
  for (int i = 0; loaders[i]; i++)
    if (access(loaders[i], X_OK) == 0) return loaders[i];
  return "/nowhere";
}

/// The machine's own loader maps it.
ATTEMPT(program_by_the_loader, USER) {
  int ran = 0;
  for (int i = 0; writable[i]; i++) {
    const char *path = write_program(say(writable[i]), "/usr/bin/true");
    char *words[] = {(char *)loader(), (char *)path, NULL};
    if (path && run(words) == 0) ran = 1;
    if (path) unlink(path);
  }
  succeed_if(ran);
}

ATTEMPT(library_that_it_has_written, USER) {
  int loaded = 0;
  for (int i = 0; writable[i]; i++) {
    const char *path = write_program(say(writable[i]), say("LIBRARY"));
    if (path && dlopen(path, RTLD_NOW)) loaded = 1;
    if (path) unlink(path);
  }
  succeed_if(loaded);
}

ATTEMPT(library_for_another_program, USER) {
  const char *path = write_program(say("TMPDIR"), say("LIBRARY"));
  if (!path) return;
  setenv("LD_PRELOAD", path, 1);
  setenv("LD_BIND_NOW", "1", 1);
  // Where it can't be loaded, the loader says so and goes on; what was loaded shows itself.
  FILE *maps = popen("cat /proc/self/maps", "r");
  char line[PATH_MAX];
  int loaded = 0;
  while (maps && fgets(line, sizeof line, maps))
    if (strstr(line, "/written") && strstr(line, "r-xp")) loaded = 1;
  if (maps) pclose(maps);
  unsetenv("LD_PRELOAD");
  unlink(path);
  succeed_if(loaded);
}

ATTEMPT(map_of_what_it_has_written, USER) {
  int mapped = 0;
  for (int i = 0; writable[i]; i++) {
    const char *path = write_program(say(writable[i]), "/usr/bin/true");
    int fd = path ? open(path, O_RDONLY) : -1;
    if (fd >= 0 && mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED) mapped = 1;
    if (path) unlink(path);
  }
  succeed_if(mapped);
}

ATTEMPT(map_that_becomes_a_program, USER) {
  int mapped = 0;
  for (int i = 0; writable[i]; i++) {
    const char *path = write_program(say(writable[i]), "/usr/bin/true");
    int fd = path ? open(path, O_RDWR) : -1;
    void *map = fd >= 0 ? mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (map != MAP_FAILED && mprotect(map, 4096, PROT_READ | PROT_EXEC) == 0) mapped = 1;
    if (path) unlink(path);
  }
  succeed_if(mapped);
}

ATTEMPT(program_without_a_name, USER) {
  int ran = 0;
  for (int i = 0; writable[i]; i++) {
    int fd = open(say(writable[i]), O_TMPFILE | O_RDWR, 0755);
    if (fd < 0 || copy("/usr/bin/true", fd) != 0) continue;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int reading = open(path, O_RDONLY);
    close(fd);
    snprintf(path, sizeof path, "/proc/self/fd/%d", reading);
    char *words[] = {path, NULL};
    if (run(words) == 0) ran = 1;
    close(reading);
  }
  succeed_if(ran);
}

ATTEMPT(program_in_memory, USER) {
  int fd = (int)syscall(SYS_memfd_create, "program", 0);
  if (fd < 0 || copy("/usr/bin/true", fd) != 0) return;
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  char *words[] = {path, NULL};
  succeed_if(run(words) == 0);
}

/// A file in memory that execve(2) refuses: it can have no right to be run (MFD_NOEXEC_SEAL).
static const char *sealed_copy(const char *program, int *fd) {
  static char path[64];
  *fd = (int)syscall(SYS_memfd_create, "program", 8U);
  if (*fd < 0 || copy(program, *fd) != 0) return NULL;
  snprintf(path, sizeof path, "/proc/self/fd/%d", *fd);
  return path;
}

ATTEMPT(program_in_sealed_memory_by_the_loader, USER) {
  int fd;
  const char *path = sealed_copy("/usr/bin/true", &fd);
  char *words[] = {(char *)loader(), (char *)path, NULL};
  succeed_if(path && run(words) == 0);
}

ATTEMPT(library_in_sealed_memory, USER) {
  int fd;
  const char *path = sealed_copy(say("LIBRARY"), &fd);
  succeed_if(path && dlopen(path, RTLD_NOW) != NULL);
}

ATTEMPT(map_of_sealed_memory, USER) {
  int fd;
  if (!sealed_copy("/usr/bin/true", &fd)) return;
  succeed_if(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED);
}

ATTEMPT(sealed_memory_that_becomes_a_program, USER) {
  int fd;
  if (!sealed_copy("/usr/bin/true", &fd)) return;
  void *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  succeed_if(map != MAP_FAILED && mprotect(map, 4096, PROT_READ | PROT_EXEC) == 0);
}

/// By a process that was given the file, and did not create it.
ATTEMPT(sealed_memory_of_another_process, USER) {
  int pair[2], fd;
  union { char bytes[CMSG_SPACE(sizeof(int))]; struct cmsghdr aligned; } control;
  char byte = 0;
  struct iovec vector = {&byte, 1};
  struct msghdr header = {
      .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return;
  if (fork() == 0) {
    if (!sealed_copy("/usr/bin/true", &fd)) _exit(1);
    struct cmsghdr *part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(part), &fd, sizeof fd);
    _exit(sendmsg(pair[1], &header, 0) != 1);
  }
  close(pair[1]);
  if (recvmsg(pair[0], &header, 0) != 1 || !CMSG_FIRSTHDR(&header)) return;
  memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&header)), sizeof fd);
  succeed_if(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED);
}

/// The kernel makes everything that can be read a program then.
static void map_with_another_personality(void) {
  int mapped = 0;
  if (personality(READ_IMPLIES_EXEC) < 0) return;
  for (int i = 0; writable[i]; i++) {
    const char *path = write_program(say(writable[i]), "/usr/bin/true");
    int fd = path ? open(path, O_RDONLY) : -1;
    char *map = fd >= 0 ? mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[PATH_MAX], start[32];
    snprintf(start, sizeof start, "%lx-", (unsigned long)map);
    while (map != MAP_FAILED && maps && fgets(line, sizeof line, maps))
      if (strncmp(line, start, strlen(start)) == 0 && strstr(line, " r-xp ")) mapped = 1;
    if (maps) fclose(maps);
    if (path) unlink(path);
  }
  succeed_if(mapped);
}
ATTEMPT(map_with_another_persona, USER) { in_child(map_with_another_personality); }

ATTEMPT(map_that_becomes_a_program_by_a_key, USER) {
  int mapped = 0;
  for (int i = 0; writable[i]; i++) {
    const char *path = write_program(say(writable[i]), "/usr/bin/true");
    int fd = path ? open(path, O_RDONLY) : -1;
    void *map = fd >= 0 ? mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    if (map != MAP_FAILED && syscall(SYS_pkey_mprotect, map, 4096, PROT_READ | PROT_EXEC, -1) == 0)
      mapped = 1;
    if (path) unlink(path);
  }
  succeed_if(mapped);
}

/// The program names the file that the kernel is to run for it.
ATTEMPT(interpreter_that_it_has_written, USER) {
  int ran = 0;
  for (int i = 0; writable[i]; i++) {
    char path[PATH_MAX], line[PATH_MAX];
    const char *interpreter = write_program(say(writable[i]), "/usr/bin/true");
    if (!interpreter) continue;
    snprintf(path, sizeof path, "%s/script", say(writable[i]));
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    int size = snprintf(line, sizeof line, "#!%s\n", interpreter);
    if (fd < 0 || write(fd, line, (size_t)size) != size) return;
    close(fd);
    char *words[] = {path, NULL};
    if (run(words) == 0) ran = 1;
    unlink(path);
    unlink(interpreter);
  }
  succeed_if(ran);
}

ATTEMPT(program_in_named_memory, USER) {
  int fd = shm_open("/insula-program", O_RDWR | O_CREAT, 0700);
  if (fd < 0 || copy("/usr/bin/true", fd) != 0) return;
  close(fd);
  char *words[] = {"/dev/shm/insula-program", NULL};
  succeed_if(run(words) == 0);
  shm_unlink("/insula-program");
}

/// The bundle is the one place of the app's from which programs run.
ATTEMPT(change_of_the_bundle, USER) {
  char path[PATH_MAX], other[PATH_MAX];
  snprintf(path, sizeof path, "%s/Contents/MacOS/tool", say("COPY"));
  int fd = open(path, O_WRONLY | O_TRUNC);
  snprintf(other, sizeof other, "%s/Contents/MacOS/new", say("COPY"));
  int made = open(other, O_WRONLY | O_CREAT, 0755);
  succeed_if(fd >= 0 || made >= 0 || chmod(path, 0700) == 0 || rename(path, other) == 0);
}

/// And what leads to it: another bundle in its place.
ATTEMPT(another_bundle_in_its_place, USER) {
  char moved[PATH_MAX];
  snprintf(moved, sizeof moved, "%s.old", say("COPY"));
  succeed_if(rename(say("COPY"), moved) == 0);
  rename(moved, say("COPY"));
}

/// Programs with the rights of root; outside, root runs the test and need not ask.
ATTEMPT(rights_of_other_programs, ROOT) {
  // Whoever has given that up, or whose mounts all say nosuid, gains nothing by any program.
  char line[256];
  unsigned long long bounding = 0;
  FILE *status = fopen("/proc/self/status", "r");
  while (status && fgets(line, sizeof line, status)) sscanf(line, "CapBnd: %llx", &bounding);
  if (status) fclose(status);
  succeed_if(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 && bounding != 0);
}

/// A program of the machine's that mounts for users: it passes a connection to the kernel on to who asks.
ATTEMPT(helper_that_mounts, USER) {
  int pair[2];
  char text[16];
  // Where root may go too.
  if (chdir(say("TEMPORARY")) != 0) return;
  mkdir("mounted", 0700);
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return;
  pid_t child = fork();
  if (child == 0) {
    snprintf(text, sizeof text, "%d", pair[1]);
    setenv("_FUSE_COMMFD", text, 1);
    close(2);
    execlp("fusermount3", "fusermount3", "-o", "fsname=escape", "mounted", NULL);
    _exit(127);
  }
  close(pair[1]);
  char byte;
  union { char bytes[CMSG_SPACE(sizeof(int))]; struct cmsghdr aligned; } control;
  struct iovec vector = {&byte, 1};
  struct msghdr header = {
      .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  int got = recvmsg(pair[0], &header, 0) > 0 && CMSG_FIRSTHDR(&header) != NULL;
  waitpid(child, NULL, 0);
  succeed_if(got);
  if (got && system("fusermount3 -u mounted") != 0) {}
  rmdir("mounted");
}

ATTEMPT(identity_of_another, ROOT) {
  succeed_if(setresuid(0, 0, 0) == 0 && setgid(0) == 0 && setuid((uid_t)54399) == 0);
}
