// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
//
// What the abuse "requests" is compared with: about the least that a local service can do. It takes in
// everybody, answers each line with one, and lets go of the oldest when it has many.

#include "neighbour.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { MOST = 512 };

// False when the client has gone.
static int answer(int client) {
  char bytes[4096];
  ssize_t count = recv(client, bytes, sizeof bytes, MSG_DONTWAIT);
  if (count <= 0) return count < 0 && errno == EAGAIN;
  for (ssize_t index = 0; index < count; index++) {
    if (bytes[index] != '\n') continue;
    if (send(client, "{}\n", 3, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) return errno == EAGAIN;
  }
  return 1;
}

int serve(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  struct pollfd polled[1 + MOST] = {{.events = POLLIN}};
  polled[0].fd = need(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), "socket");
  need(bind(polled[0].fd, (struct sockaddr *)&address, sizeof address), path);
  need(chmod(path, 0666), path);
  need(listen(polled[0].fd, 4096), path);
  unsigned clients = 0;
  for (;;) {
    need(poll(polled, 1 + clients, -1), "poll");
    for (unsigned index = clients; index > 0; index--)
      if (polled[index].revents && !answer(polled[index].fd)) {
        close(polled[index].fd);
        memmove(&polled[index], &polled[index + 1], (clients-- - index) * sizeof *polled);
      }
    int client;
    while ((client = accept4(polled[0].fd, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
      if (clients == MOST) {
        close(polled[1].fd);
        memmove(&polled[1], &polled[2], --clients * sizeof *polled);
      }
      polled[++clients] = (struct pollfd){.fd = client, .events = POLLIN};
    }
  }
}
