// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// By devices, and by what the kernel lets be set and asked.

#include "escape.h"
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

/// A disk of the test's, by a node for it that the attempt makes.
static void read_disk(int disk) {
  static char bytes[1 << 20];
  ssize_t size;
  while (disk >= 0 && (size = read(disk, bytes, sizeof bytes)) > 0) {
    // Only what looks like a prize: the rest is noise.
    char *found = memmem(bytes, (size_t)size, "prize-", 6);
    if (found)
      fwrite(found, 1, (size_t)(bytes + size - found) < 100 ? (size_t)(bytes + size - found) : 100, stdout);
  }
  if (disk >= 0) close(disk);
}

ATTEMPT(node_of_a_disk, ROOT) {
  dev_t device = makedev((unsigned)number("DISK_MAJOR"), (unsigned)number("DISK_MINOR"));
  for (int i = 0; writable[i]; i++) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/disk", say(writable[i]));
    if (mknod(path, S_IFBLK | 0600, device) == 0) read_disk(open(path, O_RDONLY));
    unlink(path);
  }
}

ATTEMPT(disk_in_dev, ROOT) { read_disk(open(say("DISK"), O_RDONLY)); }

ATTEMPT(memory_of_the_kernel, ROOT) {
  succeed_if(open("/proc/kcore", O_RDONLY) >= 0 || open("/dev/mem", O_RDONLY) >= 0
             || open("/proc/kpageflags", O_RDONLY) >= 0);
}

/// Writes back what is there, so nothing changes where it works.
static int can_set(const char *path) {
  char bytes[4096];
  int fd = open(path, O_RDWR);
  if (fd < 0) return 0;
  ssize_t size = pread(fd, bytes, sizeof bytes, 0);
  return size > 0 && pwrite(fd, bytes, (size_t)size, 0) > 0;
}

ATTEMPT(program_for_core_dumps, ROOT) { succeed_if(can_set("/proc/sys/kernel/core_pattern")); }
ATTEMPT(programs_of_the_kernel, ROOT) {
  succeed_if(can_set("/proc/sys/kernel/poweroff_cmd") || can_set("/proc/sys/kernel/modprobe"));
}
ATTEMPT(settings_of_the_machine, ROOT) {
  succeed_if(can_set("/proc/sys/fs/file-max") || can_set("/proc/sys/vm/swappiness"));
}

ATTEMPT(settings_of_devices, ROOT) {
  succeed_if(can_set("/sys/kernel/mm/ksm/run") || can_set("/sys/kernel/profiling")
             || open("/proc/sysrq-trigger", O_WRONLY) >= 0
             || open("/sys/kernel/mm/transparent_hugepage/enabled", O_WRONLY) >= 0);
}

/// A control group of one's own, with a program that the kernel runs as root when it is empty.
ATTEMPT(control_groups, ROOT) {
  const char *places[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/pids",
                          "/sys/fs/cgroup/memory", NULL};
  for (int i = 0; places[i]; i++) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s%s", places[i], say("PRIZE_NAME"));
    if (mkdir(path, 0700) != 0) continue;
    char agent[PATH_MAX + 32];
    snprintf(agent, sizeof agent, "%s/cgroup.procs", path);
    int made = access(agent, F_OK) == 0;
    rmdir(path);
    if (made) return succeed_if(1);
  }
  succeed_if(open("/sys/fs/cgroup/pids/release_agent", O_WRONLY) >= 0);
}

ATTEMPT(program_in_the_kernel, ROOT) {
  union bpf_attr attributes = {.map_type = BPF_MAP_TYPE_ARRAY};
  attributes.key_size = 4;
  attributes.value_size = 4;
  attributes.max_entries = 1;
  succeed_if(syscall(SYS_bpf, BPF_MAP_CREATE, &attributes, sizeof attributes) >= 0);
}

ATTEMPT(counters_of_all_processes, ROOT) {
  struct perf_event_attr attributes = {
      .type = PERF_TYPE_SOFTWARE, .size = sizeof attributes, .config = PERF_COUNT_SW_CONTEXT_SWITCHES};
  succeed_if(syscall(SYS_perf_event_open, &attributes, -1, 0, -1, 0) >= 0);
}

ATTEMPT(faults_of_the_kernel, ROOT) { succeed_if(syscall(SYS_userfaultfd, O_CLOEXEC) >= 0); }

ATTEMPT(messages_of_the_kernel, ROOT) {
  char bytes[4096];
  succeed_if(klogctl(3, bytes, sizeof bytes) > 0 || open("/dev/kmsg", O_RDONLY) >= 0);
}

ATTEMPT(swap_of_its_own, ROOT) {
  // Outside that is no swap; only who may not is told so.
  succeed_if(syscall(SYS_swapon, say("PRIZE_HOST"), 0) == -1 && errno != EPERM && errno != ENOENT);
}

ATTEMPT(accounts_of_processes, ROOT) {
  succeed_if(syscall(SYS_acct, "/nowhere/at/all") == -1 && errno != EPERM && errno != ENOSYS);
}

/// Opens a file by another thread of the kernel.
ATTEMPT(opened_by_the_kernel, USER) {
  struct io_uring_params parameters;
  const char *names[] = {"PRIZE_HOST", "PRIZE_OTHER", NULL};
  for (int i = 0; names[i]; i++) {
    memset(&parameters, 0, sizeof parameters);
    int ring = (int)syscall(SYS_io_uring_setup, 4, &parameters);
    if (ring < 0) return;
    char *submitted = mmap(NULL, parameters.sq_off.array + 4 * sizeof(unsigned), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQ_RING);
    char *completed = mmap(NULL, parameters.cq_off.cqes + parameters.cq_entries * sizeof(struct io_uring_cqe),
                           PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_CQ_RING);
    struct io_uring_sqe *entries = mmap(NULL, 4 * sizeof *entries, PROT_READ | PROT_WRITE,
                                        MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQES);
    if (submitted == MAP_FAILED || completed == MAP_FAILED || entries == MAP_FAILED) return;
    memset(entries, 0, sizeof *entries);
    entries->opcode = IORING_OP_OPENAT;
    entries->fd = AT_FDCWD;
    entries->addr = (uint64_t)(uintptr_t)say(names[i]);
    entries->open_flags = O_RDONLY;
    ((unsigned *)(submitted + parameters.sq_off.array))[0] = 0;
    __atomic_store_n((unsigned *)(submitted + parameters.sq_off.tail), 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1) return;
    show(((struct io_uring_cqe *)(completed + parameters.cq_off.cqes))->res);
    close(ring);
  }
}

/// Makes itself the one that the terminal listens to, and reads what is typed.
static void take_terminal(int terminal) {
  signal(SIGTTOU, SIG_IGN);
  setpgid(0, 0);
  char bytes[4096];
  if (tcsetpgrp(terminal, getpgrp()) != 0) return;
  ssize_t size = read(terminal, bytes, sizeof bytes);
  if (size > 0) fwrite(bytes, 1, (size_t)size, stdout);
}

ATTEMPT(taking_the_terminal, USER) { take_terminal(STDIN_FILENO); }
ATTEMPT(taking_the_terminal_by_name, USER) { take_terminal(open("/dev/tty", O_RDWR)); }
ATTEMPT(taking_the_terminal_as_a_session, ROOT) {
  if (fork() != 0) return (void)wait(NULL);
  setsid();
  ioctl(STDIN_FILENO, TIOCSCTTY, 1);
  take_terminal(STDIN_FILENO);
  fflush(stdout);
  _exit(0);
}
ATTEMPT(taking_the_terminal_without_a_group, USER) {
  signal(SIGTTOU, SIG_IGN);
  signal(SIGTTIN, SIG_IGN);
  pid_t group = 0;
  // Where it is not known in the app's namespace, a group of everybody's would do.
  for (int fd = 0; fd < 3; fd++) if (ioctl(fd, TIOCSPGRP, &group) == 0) succeed_if(1);
  take_terminal(STDIN_FILENO);
}

/// Words at the terminal that the app was started from: the person's shell would obey them.
ATTEMPT(typing_into_the_terminal, ROOT) {
  const char *text = say("MARK");
  for (const char *at = text; *at; at++) ioctl(STDIN_FILENO, TIOCSTI, at);
  char line = '\n';
  ioctl(STDIN_FILENO, TIOCSTI, &line);
}

ATTEMPT(typing_into_the_terminal_by_name, ROOT) {
  int terminal = open("/dev/tty", O_RDWR);
  const char *text = say("MARK");
  for (const char *at = text; *at; at++) ioctl(terminal, TIOCSTI, at);
  char line = '\n';
  ioctl(terminal, TIOCSTI, &line);
}
