// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
//
// What a request to a daemon costs before the daemon does anything: getxattr(2) of a file that is served from
// memory, over /dev/fuse and over io_uring, asleep and polling. It bounds what another transport could gain.
//
// usage: transport [ROUNDS]
// As root, on Linux 6.14 or later with /sys/module/fuse/parameters/enable_uring set to Y, in a mount
// namespace of its own (unshare -m).
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

// From linux/fuse.h, of which older headers lack parts.
struct in_header {
  uint32_t length, opcode;
  uint64_t unique, node;
  uint32_t uid, gid, pid;
  uint16_t extensions, padding;
};
struct out_header {
  uint32_t length;
  int32_t error;
  uint64_t unique;
};
struct attributes {
  uint64_t inode, size, blocks, atime, mtime, ctime;
  uint32_t atimensec, mtimensec, ctimensec, mode, links, uid, gid, rdev, blksize, flags;
};
struct entry_out {
  uint64_t node, generation, valid, attr_valid;
  uint32_t nsec, attr_nsec;
  struct attributes attr;
};
struct attr_out {
  uint64_t valid;
  uint32_t nsec, dummy;
  struct attributes attr;
};
struct init_out {
  uint32_t major, minor, max_readahead, flags;
  uint16_t max_background, congestion;
  uint32_t max_write, time_gran;
  uint16_t max_pages, map_alignment;
  uint32_t flags2, max_stack_depth;
  uint16_t request_timeout, unused[11];
};
struct ring_header {
  char in_out[128], op_in[128];
  struct { uint64_t flags, commit_id; uint32_t payload, padding; uint64_t reserved; } entry;
};
struct ring_command {
  uint64_t flags, commit_id;
  uint16_t queue;
  uint8_t padding[6];
};
enum { LOOKUP = 1, FORGET = 2, GETATTR = 3, GETXATTR = 22, INIT = 26, INTERRUPT = 36, BATCH_FORGET = 42 };
enum { REGISTER = 1, COMMIT_AND_FETCH = 2 };
#define INIT_EXT (1u << 30)
#define MAX_PAGES (1u << 22)
#define OVER_IO_URING (1u << (41 - 32))
#define URING_CMD 46

static const char *value = "sixteen bytes in";
static _Atomic int stopping;

static void pin_to(cpu_set_t *set, int cpu) {
  CPU_ZERO(set);
  CPU_SET(cpu, set);
}

static void die(const char *what) { perror(what); exit(1); }

static struct attributes attributes(uint64_t node) {
  struct attributes found = {.inode = node, .links = 1, .blksize = 4096};
  found.mode = node == 1 ? S_IFDIR | 0755 : S_IFREG | 0644;
  return found;
}

// The answer to a request, as it follows the header; its length, or a negative error.
static int answer(const struct in_header *request, const void *arguments, void *reply, int over_ring) {
  switch (request->opcode) {
    case INIT: {
      struct init_out out = {.major = 7, .max_write = 4096, .time_gran = 1, .max_pages = 1};
      out.minor = ((const uint32_t *)arguments)[1];
      if (out.minor > 42) out.minor = 42;
      out.flags = INIT_EXT | MAX_PAGES;
      out.flags2 = over_ring ? OVER_IO_URING : 0;
      out.max_background = 12, out.congestion = 9;
      memcpy(reply, &out, sizeof out);
      return sizeof out;
    }
    case LOOKUP: {
      struct entry_out out = {.node = 2, .valid = 3600, .attr_valid = 3600, .attr = attributes(2)};
      memcpy(reply, &out, sizeof out);
      return sizeof out;
    }
    case GETATTR: {
      struct attr_out out = {.valid = 3600, .attr = attributes(request->node)};
      memcpy(reply, &out, sizeof out);
      return sizeof out;
    }
    case GETXATTR: memcpy(reply, value, 16); return 16;
    case FORGET: case BATCH_FORGET: case INTERRUPT: return 0;
    default: return -ENOSYS;
  }
}

// MARK: /dev/fuse

static int device, over_ring;
// How many requests came over the ring.
static _Atomic long over_ring_served;

static int serve_one(char *buffer) {
  ssize_t count = read(device, buffer, 1 << 17);
  if (count < 0) return errno == EAGAIN ? 0 : -1;
  const struct in_header *request = (const void *)buffer;
  if (request->opcode == FORGET || request->opcode == BATCH_FORGET || request->opcode == INTERRUPT) return 1;
  char reply[512];
  int length = answer(request, request + 1, reply + sizeof(struct out_header), over_ring);
  struct out_header *out = (void *)reply;
  out->unique = request->unique;
  out->error = length < 0 ? length : 0;
  out->length = sizeof *out + (length < 0 ? 0 : length);
  return write(device, reply, out->length) < 0 && errno != ENOENT ? -1 : 1;
}

static void *serve_device(void *polls) {
  char *buffer = malloc(1 << 17);
  struct pollfd waits = {.fd = device, .events = POLLIN};
  while (!stopping) {
    int done = serve_one(buffer);
    if (done < 0) break;
    if (done == 0 && !polls) poll(&waits, 1, 100);
  }
  free(buffer);
  return NULL;
}

// MARK: io_uring

struct entry {
  struct ring_header *header;
  char *payload;
  struct iovec parts[2];
  int queue;
};
struct ring {
  int fd;
  unsigned tail, *ktail, *chead, *ctail, smask, cmask, *array;
  char *entries;
  struct io_uring_cqe *done;
};

static void *mapped(int fd, size_t size, off_t which) {
  void *found = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, which);
  if (found == MAP_FAILED) die("mmap");
  return found;
}

static void open_ring(struct ring *ring) {
  // IORING_SETUP_SQE128, SINGLE_ISSUER, DEFER_TASKRUN.
  struct io_uring_params parameters = {.flags = 1u << 10 | 1u << 12 | 1u << 13};
  ring->fd = syscall(SYS_io_uring_setup, 64, &parameters);
  if (ring->fd < 0) die("io_uring_setup");
  char *queue = mapped(ring->fd, 1 << 16, IORING_OFF_SQ_RING);
  char *done = mapped(ring->fd, 1 << 16, IORING_OFF_CQ_RING);
  ring->entries = mapped(ring->fd, 128 * parameters.sq_entries, IORING_OFF_SQES);
  ring->ktail = (void *)(queue + parameters.sq_off.tail);
  ring->smask = parameters.sq_entries - 1;
  ring->array = (void *)(queue + parameters.sq_off.array);
  ring->chead = (void *)(done + parameters.cq_off.head);
  ring->ctail = (void *)(done + parameters.cq_off.tail);
  ring->cmask = parameters.cq_entries - 1;
  ring->done = (void *)(done + parameters.cq_off.cqes);
  ring->tail = *ring->ktail;
}

static void submit(struct ring *ring, struct entry *entry, int command, uint64_t commit) {
  struct io_uring_sqe *sqe = (void *)(ring->entries + 128 * (ring->tail & ring->smask));
  memset(sqe, 0, 128);
  sqe->opcode = URING_CMD;
  sqe->fd = device;
  sqe->off = command;
  sqe->user_data = (uintptr_t)entry;
  if (command == REGISTER) {
    sqe->addr = (uintptr_t)entry->parts;
    sqe->len = 2;
  }
  struct ring_command *what = (void *)((char *)sqe + 48);
  what->queue = entry->queue;
  what->commit_id = commit;
  ring->array[ring->tail & ring->smask] = ring->tail & ring->smask;
  atomic_store_explicit((_Atomic unsigned *)ring->ktail, ++ring->tail, memory_order_release);
}

struct server {
  int first, count, pin, polls;
};

static void *serve_ring(void *argument) {
  struct server *server = argument;
  if (server->pin >= 0) {
    cpu_set_t set;
    pin_to(&set, server->pin);
    sched_setaffinity(0, sizeof set, &set);
  }
  struct ring ring;
  open_ring(&ring);
  unsigned pending = 0;
  for (int queue = server->first; queue < server->first + server->count; queue++)
    for (int slot = 0; slot < 4; slot++) {
      struct entry *entry = calloc(1, sizeof *entry);
      entry->queue = queue;
      entry->header = calloc(1, sizeof *entry->header);
      entry->payload = aligned_alloc(4096, 1 << 17);
      memset(entry->payload, 0, 1 << 17);
      entry->parts[0] = (struct iovec){entry->header, sizeof *entry->header};
      entry->parts[1] = (struct iovec){entry->payload, 1 << 17};
      submit(&ring, entry, REGISTER, 0);
      pending++;
    }
  // So that a server that sleeps sees the end.
  while (!stopping) {
    struct timespec patience = {.tv_nsec = 100000000};
    struct { uint64_t mask; uint32_t size, padding; uint64_t time; } extra = {.time = (uintptr_t)&patience};
    // IORING_ENTER_GETEVENTS, and for one that sleeps EXT_ARG.
    int count = server->polls
      ? syscall(SYS_io_uring_enter, ring.fd, pending, 0, 1u, NULL, 0)
      : syscall(SYS_io_uring_enter, ring.fd, pending, 1, 1u | 8u, &extra, sizeof extra);
    if (count > 0) pending -= count;
    int isOver = errno == ETIME || errno == EINTR || errno == EBUSY || errno == EAGAIN;
    if (count < 0 && !isOver) die("io_uring_enter");
    unsigned head = *ring.chead;
    unsigned tail = atomic_load_explicit((_Atomic unsigned *)ring.ctail, memory_order_acquire);
    for (; head != tail; head++) {
      struct io_uring_cqe *done = &ring.done[head & ring.cmask];
      struct entry *entry = (void *)(uintptr_t)done->user_data;
      if (done->res < 0) {
        int isEnd = done->res == -ENOTCONN || done->res == -ENODEV;
        if (!stopping && !isEnd) fprintf(stderr, "ring: %s\n", strerror(-done->res));
        continue;
      }
      const struct in_header *request = (const void *)entry->header->in_out;
      uint64_t unique = request->unique;
      over_ring_served++;
      int length = answer(request, entry->header->op_in, entry->payload, 1);
      struct out_header *out = (void *)entry->header->in_out;
      *out = (struct out_header){sizeof *out + (length < 0 ? 0 : length), length < 0 ? length : 0, unique};
      entry->header->entry.payload = length < 0 ? 0 : length;
      submit(&ring, entry, COMMIT_AND_FETCH, entry->header->entry.commit_id);
      pending++;
    }
    atomic_store_explicit((_Atomic unsigned *)ring.chead, head, memory_order_release);
  }
  close(ring.fd);
  return NULL;
}

// MARK: the measurement

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec / 1e9;
}

// Requests in a second, by a process of its own.
static double rate(const char *file, int pin) {
  int ends[2];
  if (pipe(ends) < 0) die("pipe");
  pid_t child = fork();
  if (child == 0) {
    if (pin >= 0) {
      cpu_set_t set;
      pin_to(&set, pin);
      sched_setaffinity(0, sizeof set, &set);
    }
    char buffer[64];
    long count = 0;
    for (int warm = 0; warm < 2000; warm++)
      if (getxattr(file, "user.x", buffer, sizeof buffer) != 16) _exit(1);
    double start = now(), end = start;
    while (end - start < 0.5) {
      for (int batch = 0; batch < 200; batch++) getxattr(file, "user.x", buffer, sizeof buffer);
      count += 200, end = now();
    }
    double found = count / (end - start);
    if (write(ends[1], &found, sizeof found) < 0) _exit(1);
    _exit(0);
  }
  close(ends[1]);
  double found = -1;
  if (read(ends[0], &found, sizeof found) != sizeof found) found = -1;
  close(ends[0]);
  waitpid(child, NULL, 0);
  return found;
}

struct mode {
  const char *name;
  int ring, polls, pinned;
};

static double measure(const struct mode *mode) {
  char place[] = "/tmp/insula-transport-XXXXXX", options[128], file[64];
  if (!mkdtemp(place)) die("mkdtemp");
  device = open("/dev/fuse", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", device);
  if (device < 0 || mount("transport", place, "fuse", MS_NOSUID | MS_NODEV, options) < 0) die("mount");
  stopping = 0;
  over_ring = mode->ring;
  over_ring_served = 0;
  int cpus = sysconf(_SC_NPROCESSORS_CONF), count = 0;
  pthread_t threads[64];
  struct server servers[64];
  // INIT and what comes before the ring is ready.
  pthread_create(&threads[count++], NULL, serve_device, !mode->ring && mode->polls ? &stopping : NULL);
  if (mode->ring) {
    usleep(20000);
    if (mode->pinned)
      for (int cpu = 0; cpu < cpus && cpu < 62; cpu++) {
        servers[cpu] = (struct server){cpu, 1, cpu, 0};
        pthread_create(&threads[count++], NULL, serve_ring, &servers[cpu]);
      }
    else {
      servers[0] = (struct server){0, cpus, -1, mode->polls};
      pthread_create(&threads[count++], NULL, serve_ring, &servers[0]);
    }
    usleep(50000);
  } else if (mode->pinned) {
    cpu_set_t set;
    pin_to(&set, 0);
    pthread_setaffinity_np(threads[0], sizeof set, &set);
  }
  snprintf(file, sizeof file, "%s/file", place);
  double found = rate(file, mode->pinned && !mode->ring ? 0 : -1);
  stopping = 1;
  umount2(place, MNT_DETACH);
  for (int thread = 0; thread < count; thread++) pthread_join(threads[thread], NULL);
  close(device);
  rmdir(place);
  if (mode->ring && over_ring_served < 1000) {
    fprintf(stderr, "the kernel does not use the ring: is enable_uring set?\n");
    exit(1);
  }
  return found;
}

static int ascending(const void *a, const void *b) {
  return *(const double *)a < *(const double *)b ? -1 : 1;
}

int main(int count, char **words) {
  static const struct mode modes[] = {
      {"/dev/fuse, asleep", 0, 0, 0},
      {"/dev/fuse, polling", 0, 1, 0},
      {"/dev/fuse, client and server on one CPU", 0, 0, 1},
      {"io_uring, asleep, a thread", 1, 0, 0},
      {"io_uring, asleep, a thread for each CPU", 1, 0, 1},
      {"io_uring, polling", 1, 1, 0}};
  enum { kinds = sizeof modes / sizeof *modes, most = 64 };
  static double rates[kinds][most];
  int rounds = count > 1 ? atoi(words[1]) : 7;
  if (rounds < 1 || rounds > most) return 2;
  signal(SIGPIPE, SIG_IGN);
  for (int round = 0; round < rounds; round++)
    for (int turn = 0; turn < kinds; turn++) {
      int kind = round % 2 ? kinds - 1 - turn : turn;
      rates[kind][round] = measure(&modes[kind]);
    }
  for (int kind = 0; kind < kinds; kind++) {
    qsort(rates[kind], rounds, sizeof(double), ascending);
    const double *found = rates[kind];
    printf("%-42s %8.0f requests/s (%.0f to %.0f)\n", modes[kind].name, found[rounds / 2], found[rounds / 4],
           found[rounds * 3 / 4]);
  }
  return 0;
}
