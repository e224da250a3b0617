// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// By processes that are outside.

#include "escape.h"
#include <dirent.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>

static void of_process(const char *format) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, format, say("VICTIM"));
  show_path(path);
}

ATTEMPT(environment_of_a_process_outside, USER) { of_process("/proc/%s/environ"); }
ATTEMPT(working_directory_of_a_process_outside, USER) { of_process("/proc/%s/cwd/secret"); }
ATTEMPT(descriptor_of_a_process_outside, USER) { of_process("/proc/%s/fd/7"); }
ATTEMPT(command_line_of_a_process_outside, USER) { of_process("/proc/%s/cmdline"); }

ATTEMPT(root_of_a_process_outside, USER) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "/proc/%s/root%s", say("VICTIM"), say("PRIZE_HOST"));
  show_path(path);
}

ATTEMPT(memory_of_a_process_outside, ROOT) {
  char path[PATH_MAX], bytes[256];
  snprintf(path, sizeof path, "/proc/%s/mem", say("VICTIM"));
  int fd = open(path, O_RDONLY);
  ssize_t size = pread(fd, bytes, sizeof bytes, (off_t)number("ADDRESS"));
  if (size > 0) fwrite(bytes, 1, (size_t)size, stdout);
}

ATTEMPT(reading_the_memory_of_a_process_outside, ROOT) {
  char bytes[256];
  struct iovec here = {bytes, sizeof bytes};
  struct iovec there = {(void *)number("ADDRESS"), sizeof bytes};
  ssize_t size = process_vm_readv((pid_t)number("VICTIM"), &here, 1, &there, 1, 0);
  if (size > 0) fwrite(bytes, 1, (size_t)size, stdout);
}

ATTEMPT(tracing_a_process_outside, ROOT) {
  pid_t victim = (pid_t)number("VICTIM");
  if (ptrace(PTRACE_SEIZE, victim, 0, 0) != 0) return;
  ptrace(PTRACE_INTERRUPT, victim, 0, 0);
  waitpid(victim, NULL, __WALL);
  for (int i = 0; i < 32; i++) {
    long word = ptrace(PTRACE_PEEKDATA, victim, (void *)(number("ADDRESS") + i * 8), 0);
    fwrite(&word, 1, sizeof word, stdout);
  }
  ptrace(PTRACE_DETACH, victim, 0, 0);
}

ATTEMPT(taking_a_descriptor_from_a_process_outside, ROOT) {
  int process = (int)syscall(SYS_pidfd_open, (pid_t)number("VICTIM"), 0);
  int fd = (int)syscall(SYS_pidfd_getfd, process, 7, 0);
  char bytes[256];
  ssize_t size = pread(fd, bytes, sizeof bytes, 0);
  if (size > 0) fwrite(bytes, 1, (size_t)size, stdout);
}

ATTEMPT(taking_a_descriptor_from_the_daemon, ROOT) {
  int process = (int)syscall(SYS_pidfd_open, (pid_t)number("DAEMON"), 0);
  for (int i = 3; process >= 0 && i < 256; i++) {
    int fd = (int)syscall(SYS_pidfd_getfd, process, i, 0);
    if (fd < 0) continue;
    show_prizes_at(fd);
    show_at(fd, say("PRIZE_BELOW_TREE"));
    close(fd);
  }
}

ATTEMPT(the_daemon_through_proc, ROOT) {
  char path[PATH_MAX];
  for (int i = 0; i < 256; i++) {
    snprintf(path, sizeof path, "/proc/%s/fd/%d%s", say("DAEMON"), i, say("PRIZE_BELOW_TREE"));
    show_path(path);
  }
  snprintf(path, sizeof path, "/proc/%s/root%s", say("DAEMON"), say("PRIZE_STORE"));
  show_path(path);
}

ATTEMPT(all_processes_there_are, ROOT) {
  DIR *processes = opendir("/proc");
  struct dirent *entry;
  while (processes && (entry = readdir(processes))) {
    char path[PATH_MAX];
    if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
    const char *ways[] = {"root", "cwd", "task/../root", "cwd/../../..", NULL};
    for (int i = 0; ways[i]; i++) {
      snprintf(path, sizeof path, "/proc/%s/%s", entry->d_name, ways[i]);
      int directory = open(path, O_PATH | O_DIRECTORY);
      if (directory < 0) continue;
      show_prizes_at(directory);
      close(directory);
    }
  }
}

ATTEMPT(roots_of_the_first_processes, ROOT) {
  const char *processes[] = {"1", "2", "3", say("DAEMON"), NULL};
  for (int i = 0; processes[i]; i++) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%s/root%s", processes[i], say("PRIZE_HOST"));
    show_path(path);
  }
}

ATTEMPT(own_root_in_other_words, USER) {
  const char *ways[] = {"/proc/self/root",
                        "/proc/thread-self/root",
                        "/proc/self/task/../root",
                        "/proc/self/cwd/../../../../../../../../../../..",
                        "/proc/self/root/proc/self/root",
                        "/dev/fd/../root",
                        NULL};
  for (int i = 0; ways[i]; i++) {
    int directory = open(ways[i], O_PATH | O_DIRECTORY);
    show_prizes_at(directory);
  }
}

ATTEMPT(signal_to_a_process_outside, USER) { kill((pid_t)number("VICTIM"), SIGUSR1); }

ATTEMPT(signal_by_descriptor, USER) {
  int process = (int)syscall(SYS_pidfd_open, (pid_t)number("VICTIM"), 0);
  syscall(SYS_pidfd_send_signal, process, SIGUSR1, NULL, 0);
}

ATTEMPT(niceness_of_a_process_outside, USER) { id_t victim = (id_t)number("VICTIM");
  errno = 0;
  int before = getpriority(PRIO_PROCESS, victim);
  if (errno == 0) setpriority(PRIO_PROCESS, victim, before + 1); }

ATTEMPT(limits_of_a_process_outside, USER) {
  struct rlimit64 limit;
  succeed_if(prlimit64((pid_t)number("VICTIM"), RLIMIT_CORE, NULL, &limit) == 0);
}

ATTEMPT(cpus_of_a_process_outside, USER) {
  cpu_set_t set;
  succeed_if(sched_getaffinity((pid_t)number("VICTIM"), sizeof set, &set) == 0);
}

static void join(int namespaces) {
  show_prizes();
  (void)namespaces;
}

static void enter_by_proc(void) {
  const char *kinds[] = {"user", "mnt", NULL};
  for (int i = 0; kinds[i]; i++) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%s/ns/%s", say("VICTIM"), kinds[i]);
    int fd = open(path, O_RDONLY);
    if (fd >= 0) setns(fd, 0);
  }
  join(0);
}
ATTEMPT(namespaces_of_a_process_outside, ROOT) { in_child(enter_by_proc); }

static void enter_first(void) {
  const char *kinds[] = {"user", "mnt", "pid", NULL};
  for (int i = 0; kinds[i]; i++) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "/proc/1/ns/%s", kinds[i]);
    int fd = open(path, O_RDONLY);
    if (fd >= 0) setns(fd, 0);
  }
  join(0);
}
ATTEMPT(namespaces_of_the_first_process, ROOT) { in_child(enter_first); }

static void enter_by_descriptor(void) {
  int process = (int)syscall(SYS_pidfd_open, (pid_t)number("VICTIM"), 0);
  setns(process, CLONE_NEWNS);
  join(0);
}
ATTEMPT(namespaces_by_descriptor, ROOT) { in_child(enter_by_descriptor); }

/// A process that stays when all others of the app have gone; it has done what it says when they have been
/// gone for a while.
ATTEMPT(outliving_the_app, USER) {
  if (fork() != 0) return;
  setsid();
  if (fork() != 0) _exit(0);
  signal(SIGHUP, SIG_IGN);
  for (int fd = 0; fd < 64; fd++) close(fd);
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/outlived", say("LEAVE"));
  usleep(1500000);
  int fd = open(path, O_WRONLY | O_CREAT, 0600);
  if (fd >= 0) close(fd);
  _exit(0);
}
