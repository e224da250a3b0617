// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
#include "insula.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "json.h"

enum { most_request = 8192, most_reply = 1 << 20, most_replacements = 5 };

struct insula {
  int socket;
  char error[512];
  insula_information information;
  int is_informed;
};

static int failed(insula *app, int error, const char *message) {
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

static void free_list(const char *const *list) {
  for (const char *const *item = list; item && *item; item++) free((char *)*item);
  free((void *)list);
}

static void free_information(insula *app) {
  insula_information *own = &app->information;
  const char *strings[] = {own->identifier, own->name, own->version, own->build, own->team,
                           own->root,       own->bundle, own->home,  own->user_home};
  for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) free((char *)strings[i]);
  free_list(own->groups);
  free_list(own->clouds);
  memset(own, 0, sizeof *own);
}

void insula_close(insula *app) {
  if (!app) return;
  if (app->socket >= 0) close(app->socket);
  free_information(app);
  free(app);
}

const char *insula_error(const insula *app) { return app->error; }
int insula_descriptor(const insula *app) { return app->socket; }

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
  failed(app, errno, "Insula does not answer; the store may not be mounted any more");
  return NULL;
}

char *insula_call(insula *app, const char *request) {
  size_t length = strlen(request);
  app->error[0] = 0;
  if (length >= most_request || memchr(request, '\n', length)) {
    failed(app, EINVAL, "a request is one line of at most 8191 bytes");
    return NULL;
  }
  char *line = malloc(length + 2);
  if (!line) {
    failed(app, ENOMEM, "out of memory");
    return NULL;
  }
  memcpy(line, request, length);
  memcpy(line + length, "\n", 2);
  char *reply = ask(app, line, length + 1, &length);
  free(line);
  return reply;
}

// Asks something that must be done; the reply's text is `*text`, for free().
static json ask_well(insula *app, const char *request, char **text) {
  *text = insula_call(app, request);
  json reply = *text ? json_text(*text, strlen(*text)) : (json){NULL, NULL};
  if (reply.start && json_is_true(json_member(reply, "ok"))) return reply;
  if (*text && !reply.start) failed(app, EBADMSG, "the reply can't be understood");
  if (reply.start) {
    char *message = json_string(json_member(reply, "message"));
    long long error = json_number(json_member(reply, "errno"), 4095);
    failed(app, error > 0 ? (int)error : EPERM, message ? message : "it was refused");
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

// The path below the root of the tree, made absolute; for free().
static char *absolute(const char *root, json value) {
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

static const char *const *strings(json array) {
  size_t count = 0;
  for (json item = json_first(array); item.start; item = json_next(array, item)) count++;
  char **list = calloc(count + 1, sizeof *list);
  if (!list) return NULL;
  size_t used = 0;
  for (json item = json_first(array); item.start; item = json_next(array, item)) {
    char *text = json_string(item);
    if (text) list[used++] = text;
  }
  return (const char *const *)list;
}

const insula_information *insula_info(insula *app) {
  app->error[0] = 0;
  if (app->is_informed) return &app->information;
  char *text;
  json reply = ask_well(app, "{\"verb\":\"self\"}", &text);
  if (!reply.start) return NULL;
  json own = json_member(reply, "self");
  insula_information *to = &app->information;
  to->identifier = json_string(json_member(own, "identifier"));
  to->name = json_string(json_member(own, "name"));
  to->version = json_string(json_member(own, "version"));
  to->build = json_string(json_member(own, "build"));
  to->team = json_string(json_member(own, "team"));
  to->root = json_string(json_member(own, "root"));
  to->bundle = absolute(to->root, json_member(own, "bundle"));
  to->home = absolute(to->root, json_member(own, "data"));
  to->user_home = absolute(to->root, json_member(own, "home"));
  to->groups = strings(json_member(own, "groups"));
  to->clouds = strings(json_member(own, "clouds"));
  long long user = json_number(json_member(own, "user"), UINT32_MAX);
  to->user = (uint32_t)user;
  free(text);
  if (to->identifier && to->name && to->version && to->build && to->team && to->root && to->bundle &&
      to->home && to->user_home && to->groups && to->clouds && user >= 0) {
    app->is_informed = 1;
    return to;
  }
  free_information(app);
  failed(app, EBADMSG, "the reply can't be understood");
  return NULL;
}

char *insula_path(insula *app, const char *place) {
  const insula_information *own = insula_info(app);
  if (!own) return NULL;
  char request[most_request] = "{\"verb\":\"path\",\"place\":";
  if (!json_quote(request, sizeof request - 300, place)) {
    failed(app, EINVAL, "the name of the place is too long");
    return NULL;
  }
  strcat(request, ",\"identifier\":");
  if (!json_quote(request, sizeof request - 2, own->identifier)) {
    failed(app, EINVAL, "the app's identifier is too long");
    return NULL;
  }
  strcat(request, "}");
  char *text;
  json reply = ask_well(app, request, &text);
  if (!reply.start) return NULL;
  char *path = absolute(own->root, json_member(reply, "path"));
  free(text);
  if (!path) failed(app, EBADMSG, "the reply can't be understood");
  return path;
}

void insula_free_grants(insula_grant *grants, size_t count) {
  for (size_t i = 0; grants && i < count; i++) free(grants[i].path);
  free(grants);
}

// Adds those of one reply; -1 without memory, or if they make no sense.
static int add_grants(const char *root, json places, insula_grant **grants, size_t *count) {
  for (json place = json_first(places); place.start; place = json_next(places, place)) {
    insula_grant *larger = realloc(*grants, (*count + 1) * sizeof **grants);
    if (!larger) return -1;
    *grants = larger;
    char *access = json_string(json_member(place, "access"));
    char *path = absolute(root, json_member(place, "path"));
    int is_writable = access && !strcmp(access, "read-write");
    free(access);
    if (!path) return -1;
    (*grants)[(*count)++] =
        (insula_grant){path, is_writable, json_is_true(json_member(place, "isDirectory"))};
  }
  return 0;
}

int insula_grants(insula *app, insula_grant **grants, size_t *count, char **version) {
  *grants = NULL;
  *count = 0;
  if (version) *version = NULL;
  const insula_information *own = insula_info(app);
  if (!own) return -1;
  long long after = 0;
  // Each reply goes on after the last, so there is an end.
  for (;;) {
    char request[128], *text;
    snprintf(request, sizeof request, "{\"verb\":\"grants\",\"after\":%lld}", after);
    json reply = ask_well(app, request, &text);
    if (!reply.start) break;
    int result = add_grants(own->root, json_member(reply, "grants"), grants, count);
    json next = json_member(reply, "next");
    long long last = next.start ? json_number(next, INT64_MAX) : 0;
    if (version && !*version) *version = json_string(json_member(reply, "version"));
    free(text);
    if (result < 0) {
      failed(app, EBADMSG, "the reply can't be understood");
      break;
    }
    if (last <= after) return 0;
    after = last;
  }
  int error = errno;
  insula_free_grants(*grants, *count);
  if (version) {
    free(*version);
    *version = NULL;
  }
  *grants = NULL;
  *count = 0;
  errno = error;
  return -1;
}

int insula_await_grants(insula *app, const char *version) {
  char request[most_request] = "{\"verb\":\"grant-change\",\"version\":", *text;
  app->error[0] = 0;
  if (!json_quote(request, sizeof request - 2, version))
    return failed(app, EINVAL, "the version is too long");
  strcat(request, "}");
  json reply = ask_well(app, request, &text);
  if (!reply.start) return -1;
  free(text);
  return 0;
}
