// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

#include "escape.h"
#include <dirent.h>
#include <pty.h>
#include <utmp.h>

void hold_prizes(const char *directory);

static struct { const char *name; enum who who; void (*run)(void); } attempts[200];
static int count;

void add_attempt(const char *name, enum who who, void (*run)(void)) {
  if (count == 200) abort();
  attempts[count].name = name;
  attempts[count].who = who;
  attempts[count++].run = run;
}

const char *say(const char *variable) {
  const char *value = getenv(variable);
  return value ? value : "/nowhere";
}

/// Without the number of a process, a signal would go to our own.
long number(const char *variable) {
  const char *value = getenv(variable);
  if (!value || !*value) {
    fprintf(stderr, "%s is not set\n", variable);
    exit(3);
  }
  return strtol(value, NULL, 0);
}

void show(int fd) {
  char bytes[65536];
  ssize_t size;
  if (fd < 0) return;
  fcntl(fd, F_SETFL, O_NONBLOCK);
  for (int i = 0; i < 64 && (size = read(fd, bytes, sizeof bytes)) > 0; i++)
    fwrite(bytes, 1, (size_t)size, stdout);
  close(fd);
  fflush(stdout);
}

void show_path(const char *path) { show(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)); }

void show_at(int directory, const char *path) {
  while (*path == '/') path++;
  show(openat(directory, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
}

static const char *prizes[] = {"PRIZE_HOST", "PRIZE_VAR", "PRIZE_RUN", "PRIZE_HOMES", "PRIZE_ROOT",
  "PRIZE_OTHER", "PRIZE_GROUP", "PRIZE_HOME", "PRIZE_NEIGHBOUR", "PRIZE_STORE", NULL};

void show_prizes(void) {
  for (int i = 0; prizes[i]; i++) show_path(say(prizes[i]));
}

void show_prizes_at(int directory) {
  for (int i = 0; prizes[i]; i++) show_at(directory, say(prizes[i]));
}

void succeed_if(int succeeded) {
  if (succeeded) puts(say("MARK"));
  fflush(stdout);
}

const char *writable[] = {"HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "TEMPORARY", "SHARED", NULL};

void in_child(void (*body)(void)) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    body();
    fflush(stdout);
    _exit(0);
  }
  int status;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {}
}

/// Runs a command at a terminal of its own, and prints what has been typed into that by anyone.
static int at_terminal(char **words) {
  int master, slave;
  if (openpty(&master, &slave, NULL, NULL, NULL) != 0) return 1;
  pid_t child = fork();
  if (child == 0) {
    // What it says of itself is not for the terminal.
    int output = dup(STDOUT_FILENO), errors = dup(STDERR_FILENO);
    close(master);
    login_tty(slave);
    dup2(output, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    close(output);
    close(errors);
    execvp(words[0], words);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  // What was typed waits to be read by the next program at this terminal.
  fcntl(slave, F_SETFL, O_NONBLOCK);
  show(slave);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/// Runs a command in the background of a terminal, at which then a word is typed for others; prints that word
/// if the terminal was taken.
static int behind_terminal(char **words) {
  int master, slave, status;
  if (openpty(&master, &slave, NULL, NULL, NULL) != 0) return 1;
  pid_t child = fork();
  if (child == 0) {
    int output = dup(STDOUT_FILENO), errors = dup(STDERR_FILENO);
    close(master);
    login_tty(slave);
    pid_t job = fork();
    if (job == 0) {
      setpgid(0, 0);
      dup2(output, STDOUT_FILENO);
      dup2(errors, STDERR_FILENO);
      close(output);
      close(errors);
      execvp(words[0], words);
      _exit(127);
    }
    setpgid(job, job);
    for (int i = 0; i < 60; i++) {
      if (waitpid(job, &status, WNOHANG | WUNTRACED) != 0) break;
      if (tcgetpgrp(STDIN_FILENO) != getpgrp()) dprintf(output, "%s\n", say("SECRET"));
      usleep(100000);
    }
    kill(-job, SIGKILL);
    _exit(0);
  }
  close(slave);
  sleep(2);
  dprintf(master, "%s\n", say("SECRET"));
  waitpid(child, &status, 0);
  return 0;
}

/// Makes one system call that no program of a machine makes, in the words of the tests' own client; says
/// "ok", or the number of the error.
static int call(int argc, char **words) {
  const char *name = words[0];
  const char *path = argc > 1 ? words[1] : "";
  long number = argc > 2 ? strtol(words[2], NULL, 10) : 0;
  int result = -1;
  errno = EINVAL;
  if (strcmp(name, "open") == 0)
    result = open(path, (int)number, argc > 3 ? (mode_t)strtol(words[3], NULL, 10) : 0);
  if (strcmp(name, "truncate") == 0) result = truncate(path, number);
  if (strcmp(name, "access") == 0) result = access(path, (int)number);
  if (strcmp(name, "rmdir") == 0) result = rmdir(path);
  if (strcmp(name, "unlink") == 0) result = unlink(path);
  if (strcmp(name, "rename") == 0 && argc > 2) result = rename(path, words[2]);
  if (strcmp(name, "exchange") == 0 && argc > 2)
    result = (int)syscall(SYS_renameat2, AT_FDCWD, path, AT_FDCWD, words[2], 2);
  if (result < 0) printf("%d\n", errno);
  else printf("ok\n");
  return 0;
}

/// Prints the kind and the bytes of a file's handle.
static int print_handle(const char *path) {
  struct { struct file_handle head; unsigned char bytes[128]; } handle;
  int mount;
  handle.head.handle_bytes = 128;
  if (name_to_handle_at(AT_FDCWD, path, &handle.head, &mount, 0) != 0) return 1;
  printf("%d ", handle.head.handle_type);
  for (unsigned i = 0; i < handle.head.handle_bytes; i++) printf("%02x", handle.head.f_handle[i]);
  printf("\n");
  return 0;
}

int main(int argc, char **words) {
  if (argc >= 3 && strcmp(words[1], "victim") == 0) hold_prizes(words[2]);
  if (argc >= 3 && strcmp(words[1], "terminal") == 0) return at_terminal(words + 2);
  if (argc >= 3 && strcmp(words[1], "background") == 0) return behind_terminal(words + 2);
  if (argc >= 4 && strcmp(words[1], "call") == 0) return call(argc - 2, words + 2);
  if (argc == 3 && strcmp(words[1], "handle") == 0) return print_handle(words[2]);
  if (argc == 2 && strcmp(words[1], "list") == 0) {
    for (int i = 0; i < count; i++)
      printf("%s %s\n", attempts[i].name, attempts[i].who == ROOT ? "root" : "user");
    return 0;
  }
  for (int i = 0; argc == 2 && i < count; i++) {
    if (strcmp(attempts[i].name, words[1]) != 0) continue;
    // So it is known that it was tried at all.
    fprintf(stderr, "tried %s\n", words[1]);
    alarm(20);
    attempts[i].run();
    fflush(stdout);
    return 0;
  }
  fprintf(stderr, "escape NAME, one of 'escape list'\n");
  return 2;
}
