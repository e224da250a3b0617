// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// A program outside that has what attempts are after: in its memory, its environment, its descriptors, and on
// all the ways by which processes talk to each other. It writes where those are into a file.

#include "escape.h"
#include <arpa/inet.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>

void hold_prizes(const char *directory);

static char secret[256];
static char path[4096];

static void note_signal(int signal) {
  (void)signal;
  int fd = open(path, O_WRONLY | O_CREAT, 0600);
  if (fd >= 0) close(fd);
}

static int listen_at(int family, const struct sockaddr *address, socklen_t size) {
  int fd = socket(family, SOCK_STREAM, 0);
  if (bind(fd, address, size) != 0 || listen(fd, 16) != 0) return -1;
  return fd;
}

/// Serves the secret until it is killed.
void hold_prizes(const char *directory) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  snprintf(secret, sizeof secret, "%s", say("SECRET"));
  size_t length = strlen(secret);
  if (chdir(directory) != 0) exit(1);
  snprintf(path, sizeof path, "%s/signalled", directory);
  signal(SIGUSR1, note_signal);
  dup2(open("secret", O_RDWR), 7);

  int segment = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0666);
  char *shared = shmat(segment, NULL, 0);
  memcpy(shared, secret, length);
  struct { long type; char text[256]; } message = {.type = 1};
  memcpy(message.text, secret, length);
  int queue = msgget(IPC_PRIVATE, IPC_CREAT | 0666);
  msgsnd(queue, &message, length, 0);
  int posix = shm_open(say("PRIZE_NAME"), O_RDWR | O_CREAT, 0666);
  fchmod(posix, 0666);
  if (write(posix, secret, length) < 0) exit(1);
  struct mq_attr attributes = {.mq_maxmsg = 4, .mq_msgsize = 256};
  mqd_t mailbox = mq_open(say("PRIZE_NAME"), O_RDWR | O_CREAT, 0666, &attributes);
  if (mailbox >= 0) mq_send(mailbox, secret, length, 0);
  // The session's keys are those of the user's, whoever of them asks.
  long key = syscall(SYS_add_key, "user", say("PRIZE_NAME"), secret, length, -4);

  struct sockaddr_un name = {.sun_family = AF_UNIX};
  snprintf(name.sun_path, sizeof name.sun_path, "%s/socket", directory);
  int named = listen_at(AF_UNIX, (struct sockaddr *)&name, sizeof name);
  chmod(name.sun_path, 0666);
  struct sockaddr_un abstract = {.sun_family = AF_UNIX};
  snprintf(abstract.sun_path + 1, sizeof abstract.sun_path - 1, "%s", say("PRIZE_NAME"));
  int nameless = listen_at(AF_UNIX, (struct sockaddr *)&abstract,
    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(say("PRIZE_NAME"))));
  struct sockaddr_in loopback = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int internet = listen_at(AF_INET, (struct sockaddr *)&loopback, sizeof loopback);
  socklen_t size = sizeof loopback;
  getsockname(internet, (struct sockaddr *)&loopback, &size);

  FILE *file = fopen("victim.new", "w");
  if (!file) exit(1);
  fprintf(file, "VICTIM=%d\nADDRESS=%p\nSHM=%d\nMSG=%d\nKEY=%ld\nPORT=%d\n", getpid(), (void *)secret,
          segment, queue, key, ntohs(loopback.sin_port));
  fclose(file);
  rename("victim.new", "victim");

  int before = getpriority(PRIO_PROCESS, 0);
  struct pollfd listeners[] = {{named, POLLIN, 0}, {nameless, POLLIN, 0}, {internet, POLLIN, 0}};
  for (;;) {
    // Its niceness is a prize too.
    int niceness = getpriority(PRIO_PROCESS, 0);
    if (niceness != before) note_signal(0);
    before = niceness;
    // A message that was taken is put back.
    struct msqid_ds state;
    if (msgctl(queue, IPC_STAT, &state) == 0 && state.msg_qnum == 0)
      msgsnd(queue, &message, length, IPC_NOWAIT);
    struct mq_attr left;
    if (mailbox >= 0 && mq_getattr(mailbox, &left) == 0 && left.mq_curmsgs == 0)
      mq_send(mailbox, secret, length, 0);
    if (poll(listeners, 3, 100) <= 0) continue;
    for (int i = 0; i < 3; i++) {
      if (!(listeners[i].revents & POLLIN)) continue;
      int caller = accept(listeners[i].fd, NULL, NULL);
      if (caller < 0) continue;
      // The secret, and with a socket of files the directory that it lies in.
      struct iovec text = {secret, length};
      union { char bytes[CMSG_SPACE(sizeof(int))]; struct cmsghdr aligned; } control;
      struct msghdr header = {.msg_iov = &text, .msg_iovlen = 1};
      int here = open(".", O_RDONLY | O_DIRECTORY);
      if (i < 2) {
        memset(&control, 0, sizeof control);
        header.msg_control = &control;
        header.msg_controllen = sizeof control;
        struct cmsghdr *part = CMSG_FIRSTHDR(&header);
        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(sizeof here);
        memcpy(CMSG_DATA(part), &here, sizeof here);
      }
      sendmsg(caller, &header, MSG_NOSIGNAL);
      close(here);
      close(caller);
    }
  }
}
