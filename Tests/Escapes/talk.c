// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// By what processes talk to each other through.

#include "escape.h"
#include <arpa/inet.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/shm.h>

/// Prints what comes through a socket, and what can be read in the directory that comes along.
static void receive(int fd) {
  char text[256];
  union { char bytes[CMSG_SPACE(sizeof(int))]; struct cmsghdr aligned; } control;
  struct iovec vector = {text, sizeof text};
  struct msghdr header = {
      .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  struct timeval patience = {2, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ssize_t size = recvmsg(fd, &header, 0);
  if (size > 0) fwrite(text, 1, (size_t)size, stdout);
  struct cmsghdr *part = size > 0 ? CMSG_FIRSTHDR(&header) : NULL;
  if (part && part->cmsg_type == SCM_RIGHTS) {
    int directory;
    memcpy(&directory, CMSG_DATA(part), sizeof directory);
    show_at(directory, "secret");
  }
}

ATTEMPT(abstract_socket, USER) {
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "%s", say("PRIZE_NAME"));
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (connect(fd, (struct sockaddr *)&name,
              (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(say("PRIZE_NAME"))))
      == 0)
    receive(fd);
}

static void connect_to(const char *path) {
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (connect(fd, (struct sockaddr *)&name, sizeof name) == 0) receive(fd);
}

ATTEMPT(socket_of_a_process_outside, USER) { connect_to(say("SOCKET")); }

static void ask_daemon(const char *path) {
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (connect(fd, (struct sockaddr *)&name, sizeof name) != 0) return;
  const char question[] = "{\"verb\":\"status\"}\n";
  if (write(fd, question, sizeof question - 1) < 0) return;
  char bytes[65536];
  ssize_t size = read(fd, bytes, sizeof bytes);
  if (size > 0) succeed_if(1);
}

ATTEMPT(control_socket, USER) { ask_daemon(say("CONTROL")); }

ATTEMPT(loopback, USER) {
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)number("PORT")),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) receive(fd);
}

/// The host that the machine is a guest of, where it is one.
ATTEMPT(host_of_the_machine, USER) { succeed_if(socket(AF_VSOCK, SOCK_STREAM, 0) >= 0); }

/// News of the kernel's that are not of networks.
ATTEMPT(news_of_the_kernel, USER) { succeed_if(socket(AF_NETLINK, SOCK_RAW, 15) >= 0); }

/// Any other address that the machine has, or that it can reach.
ATTEMPT(any_address, USER) {
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)number("PORT")),
                                .sin_addr.s_addr = htonl(INADDR_ANY)};
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0) receive(fd);
}

ATTEMPT(names_of_all_sockets, USER) {
  show_path("/proc/net/unix");
  show_path("/proc/self/net/unix");
}

ATTEMPT(packets_of_the_machine, ROOT) { succeed_if(socket(AF_PACKET, SOCK_RAW, 0x300) >= 0); }

ATTEMPT(shared_memory, USER) {
  char *segment = shmat((int)number("SHM"), NULL, SHM_RDONLY);
  if (segment != (void *)-1) printf("%.200s\n", segment);
}

ATTEMPT(named_shared_memory, USER) { show(shm_open(say("PRIZE_NAME"), O_RDONLY, 0)); }

ATTEMPT(message_queue, USER) {
  struct { long type; char text[256]; } message;
  ssize_t size = msgrcv((int)number("MSG"), &message, sizeof message.text, 0, IPC_NOWAIT);
  if (size > 0) fwrite(message.text, 1, (size_t)size, stdout);
}

ATTEMPT(mailbox, USER) {
  char bytes[256];
  mqd_t box = mq_open(say("PRIZE_NAME"), O_RDONLY | O_NONBLOCK);
  ssize_t size = box >= 0 ? mq_receive(box, bytes, sizeof bytes, NULL) : 0;
  if (size > 0) fwrite(bytes, 1, (size_t)size, stdout);
}

ATTEMPT(keys_of_the_user, USER) {
  char bytes[256];
  long key = syscall(SYS_keyctl, 10, -4, "user", say("PRIZE_NAME"), 0);
  if (key < 0) key = syscall(SYS_request_key, "user", say("PRIZE_NAME"), NULL, 0);
  if (key < 0) key = number("KEY");
  long size = syscall(SYS_keyctl, 11, key, bytes, sizeof bytes);
  if (size > 0) fwrite(bytes, 1, (size_t)size < sizeof bytes ? (size_t)size : sizeof bytes, stdout);
}

/// What was open when the app was started, beyond its standard streams.
ATTEMPT(descriptors_that_were_left_open, USER) {
  for (int fd = 3; fd < 1024; fd++) {
    char bytes[4096];
    ssize_t size = pread(fd, bytes, sizeof bytes, 0);
    if (size > 0) fwrite(bytes, 1, (size_t)size, stdout);
    show_at(fd, "secret");
    show_prizes_at(fd);
  }
}

/// And what the processes above have open.
ATTEMPT(descriptors_of_the_processes_above, USER) {
  int parents[] = {getppid(), 1, 2};
  for (int i = 0; i < 3; i++) {
    for (int fd = 0; fd < 64; fd++) {
      char path[PATH_MAX];
      snprintf(path, sizeof path, "/proc/%d/fd/%d", parents[i], fd);
      struct stat status;
      if (stat(path, &status) != 0 || !S_ISREG(status.st_mode)) continue;
      show_path(path);
    }
  }
}

ATTEMPT(environment_of_the_processes_above, USER) {
  int parents[] = {getppid(), 1, 2, getpid()};
  for (unsigned i = 0; i < sizeof parents / sizeof *parents; i++) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/environ", parents[i]);
    show_path(path);
  }
}
