// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
#include "insula.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "call.h"

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
  json reply = insula_ask(app, "{\"verb\":\"self\"}", &text);
  if (!reply.start) return NULL;
  json own = json_member(reply, "self");
  insula_information *to = &app->information;
  to->identifier = json_string(json_member(own, "identifier"));
  to->name = json_string(json_member(own, "name"));
  to->version = json_string(json_member(own, "version"));
  to->build = json_string(json_member(own, "build"));
  to->team = json_string(json_member(own, "team"));
  to->root = json_string(json_member(own, "root"));
  to->bundle = insula_absolute(to->root, json_member(own, "bundle"));
  to->home = insula_absolute(to->root, json_member(own, "data"));
  to->user_home = insula_absolute(to->root, json_member(own, "home"));
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
  insula_failed(app, EBADMSG, "the reply can't be understood");
  return NULL;
}

char *insula_path(insula *app, const char *place) {
  const insula_information *own = insula_info(app);
  if (!own) return NULL;
  char request[most_request] = "{\"verb\":\"path\",\"place\":";
  if (!json_quote(request, sizeof request - 300, place)) {
    insula_failed(app, EINVAL, "the name of the place is too long");
    return NULL;
  }
  strcat(request, ",\"identifier\":");
  if (!json_quote(request, sizeof request - 2, own->identifier)) {
    insula_failed(app, EINVAL, "the app's identifier is too long");
    return NULL;
  }
  strcat(request, "}");
  char *text;
  json reply = insula_ask(app, request, &text);
  if (!reply.start) return NULL;
  char *path = insula_absolute(own->root, json_member(reply, "path"));
  free(text);
  if (!path) insula_failed(app, EBADMSG, "the reply can't be understood");
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
    char *path = insula_absolute(root, json_member(place, "path"));
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
    json reply = insula_ask(app, request, &text);
    if (!reply.start) break;
    int result = add_grants(own->root, json_member(reply, "grants"), grants, count);
    json next = json_member(reply, "next");
    long long last = next.start ? json_number(next, INT64_MAX) : 0;
    if (version && !*version) *version = json_string(json_member(reply, "version"));
    free(text);
    if (result < 0) {
      insula_failed(app, EBADMSG, "the reply can't be understood");
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
    return insula_failed(app, EINVAL, "the version is too long");
  strcat(request, "}");
  json reply = insula_ask(app, request, &text);
  if (!reply.start) return -1;
  free(text);
  return 0;
}
