// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
#include "call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { most_reply = 1 << 20, most_replacements = 5 };

int insula_failed(insula *app, int error, const char *message) {
  snprintf(app->error, sizeof app->error, "%s", message);
  errno = error;
  return -1;
}

static int connect_socket(void) {
  const char *path = getenv("INSULA_SOCKET");
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (!path || !*path) path = "/run/insula/app.sock";
  if (strlen(path) >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  memcpy(address.sun_path, path, strlen(path) + 1);
  int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return -1;
  int result;
  do result = connect(descriptor, (struct sockaddr *)&address, sizeof address);
  while (result < 0 && errno == EINTR);
  if (result == 0) return descriptor;
  int error = errno;
  close(descriptor);
  errno = error;
  return -1;
}

insula *insula_open(void) {
  insula *app = calloc(1, sizeof *app);
  if (!app) return NULL;
  app->socket = connect_socket();
  if (app->socket >= 0) return app;
  int error = errno;
  free(app);
  errno = error;
  return NULL;
}

static int send_all(int descriptor, const char *bytes, size_t length) {
  while (length) {
    ssize_t sent = send(descriptor, bytes, length, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return -1;
    bytes += sent;
    length -= (size_t)sent;
  }
  return 0;
}

// A line, for free(), and its length without the newline; ECONNRESET if the daemon goes before its end.
static char *receive_line(int descriptor, size_t *length) {
  size_t used = 0, room = 4096;
  char *line = malloc(room);
  while (line) {
    ssize_t count = recv(descriptor, line + used, room - used, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      if (count == 0) errno = ECONNRESET;
      break;
    }
    char *end = memchr(line + used, '\n', (size_t)count);
    used += (size_t)count;
    if (end) {
      *end = 0;
      *length = (size_t)(end - line);
      return line;
    }
    if (used < room) continue;
    char *larger = room < most_reply ? realloc(line, room * 2) : NULL;
    if (!larger) {
      errno = room < most_reply ? ENOMEM : EMSGSIZE;
      break;
    }
    line = larger;
    room *= 2;
  }
  int error = errno;
  free(line);
  errno = error;
  return NULL;
}

static int is_gone(int error) { return error == ECONNRESET || error == EPIPE || error == ENOTCONN; }

// Sends a line, and gives the reply.
static char *ask(insula *app, const char *line, size_t size, size_t *length) {
  for (int attempt = 0; attempt <= most_replacements; attempt++) {
    if (app->socket < 0) app->socket = connect_socket();
    if (app->socket < 0) break;
    // One that was refused for want of room may have said so before it was asked.
    int is_sent = send_all(app->socket, line, size) == 0 || errno == EPIPE;
    char *reply = is_sent ? receive_line(app->socket, length) : NULL;
    if (reply) return reply;
    int error = errno;
    close(app->socket);
    app->socket = -1;
    errno = error;
    if (!is_gone(error)) break;
  }
  insula_failed(app, errno, "Insula does not answer; the store may not be mounted any more");
  return NULL;
}

char *insula_call(insula *app, const char *request) {
  size_t length = strlen(request);
  app->error[0] = 0;
  if (length >= most_request || memchr(request, '\n', length)) {
    insula_failed(app, EINVAL, "a request is one line of at most 8191 bytes");
    return NULL;
  }
  char *line = malloc(length + 2);
  if (!line) {
    insula_failed(app, ENOMEM, "out of memory");
    return NULL;
  }
  memcpy(line, request, length);
  memcpy(line + length, "\n", 2);
  char *reply = ask(app, line, length + 1, &length);
  free(line);
  return reply;
}

json insula_ask(insula *app, const char *request, char **text) {
  *text = insula_call(app, request);
  json reply = *text ? json_text(*text, strlen(*text)) : (json){NULL, NULL};
  if (reply.start && json_is_true(json_member(reply, "ok"))) return reply;
  if (*text && !reply.start) insula_failed(app, EBADMSG, "the reply can't be understood");
  if (reply.start) {
    char *message = json_string(json_member(reply, "message"));
    long long error = json_number(json_member(reply, "errno"), 4095);
    insula_failed(app, error > 0 ? (int)error : EPERM, message ? message : "it was refused");
    int kept = errno;
    free(message);
    errno = kept;
  }
  int error = errno;
  free(*text);
  *text = NULL;
  errno = error;
  return (json){NULL, NULL};
}

char *insula_absolute(const char *root, json value) {
  char *relative = json_string(value);
  char *path = NULL;
  if (relative && root) {
    size_t size = strlen(root) + strlen(relative) + 2;
    path = malloc(size);
    if (path) snprintf(path, size, "%s/%s", root, relative);
  }
  free(relative);
  return path;
}
