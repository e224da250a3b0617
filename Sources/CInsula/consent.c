// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"

static const char *const words[] = {"not-determined", "restricted", "denied", "authorized"};

// What the word for a state means; -1 for none that is known here.
static int state_of(json consent) {
  char *word = json_string(json_member(consent, "state"));
  int state = -1;
  for (int i = 0; word && i < 4; i++)
    if (!strcmp(word, words[i])) state = i;
  free(word);
  return state;
}

// The state of a service among those of a reply; -1 if it is not there.
static int state_in(json reply, const char *service) {
  json consents = json_member(reply, "consents");
  for (json consent = json_first(consents); consent.start; consent = json_next(consents, consent)) {
    char *name = json_string(json_member(consent, "service"));
    int is_it = name && !strcmp(name, service);
    free(name);
    if (is_it) return state_of(consent);
  }
  return -1;
}

int insula_consent_status(insula *app, const char *service) {
  char *text;
  app->error[0] = 0;
  json reply = insula_ask(app, "{\"verb\":\"consent\",\"consent\":{\"list\":{}}}", &text);
  if (!reply.start) return -1;
  int state = state_in(reply, service);
  free(text);
  return state >= 0 ? state : insula_failed(app, EINVAL, "the app can't ask for a service of that name");
}

int insula_request_consent(insula *app, const char *service) {
  char request[most_request] = "{\"verb\":\"request-consent\",\"service\":", *text;
  app->error[0] = 0;
  if (!json_quote(request, sizeof request - 2, service))
    return insula_failed(app, EINVAL, "the name of the service is too long");
  strcat(request, "}");
  json reply = insula_ask(app, request, &text);
  if (!reply.start) return -1;
  int state = state_in(reply, service);
  free(text);
  return state >= 0 ? state : insula_failed(app, EBADMSG, "the reply can't be understood");
}

// What a thread needs that asks.
struct asking {
  char *service;
  insula_consent_callback *done;
  void *context;
};

static void *ask_later(void *argument) {
  struct asking *asking = argument;
  insula *app = insula_open();
  int state = app ? insula_request_consent(app, asking->service) : -1;
  int error = state < 0 ? errno : 0;
  asking->done(asking->context, state, error, app ? insula_error(app) : "Insula can't be reached");
  insula_close(app);
  free(asking->service);
  free(asking);
  return NULL;
}

int insula_request_consent_later(const char *service, insula_consent_callback *done, void *context) {
  struct asking *asking = malloc(sizeof *asking);
  char *copy = strdup(service);
  pthread_t thread;
  int error = ENOMEM;
  if (asking && copy) {
    *asking = (struct asking){copy, done, context};
    error = pthread_create(&thread, NULL, ask_later, asking);
    if (!error) return pthread_detach(thread), 0;
  }
  free(copy);
  free(asking);
  errno = error;
  return -1;
}

// Appends a list of texts that are separated by commas; 0 if it does not fit.
static int add_types(char *request, size_t room, const char *types) {
  for (int is_first = 1; types && *types; is_first = 0) {
    size_t length = strcspn(types, ",");
    char type[256];
    if (length >= sizeof type || strlen(request) + 2 >= room) return 0;
    memcpy(type, types, length);
    type[length] = 0;
    if (!is_first) strcat(request, ",");
    if (!json_quote(request, room, type)) return 0;
    types += length + (types[length] == ',');
  }
  return 1;
}

char *insula_open_panel(insula *app, insula_panel kind, const char *name, const char *types) {
  static const char *const kinds[] = {"file", "folder", "save"};
  const insula_information *own = insula_info(app);
  if (!own) return NULL;
  char request[most_request], *text;
  if ((unsigned)kind > insula_panel_save) kind = insula_panel_file;
  snprintf(request, sizeof request, "{\"verb\":\"open-panel\",\"panel\":{\"kind\":\"%s\"", kinds[kind]);
  int fits = 1;
  if (name) {
    strcat(request, ",\"name\":");
    fits = json_quote(request, sizeof request - 64, name);
  }
  if (fits) strcat(request, ",\"types\":[");
  if (!fits || !add_types(request, sizeof request - 16, types)) {
    insula_failed(app, EINVAL, "the name or the types are too long");
    return NULL;
  }
  strcat(request, "]}}");
  json reply = insula_ask(app, request, &text);
  if (!reply.start) return NULL;
  char *path = insula_absolute(own->root, json_member(json_first(json_member(reply, "grants")), "path"));
  free(text);
  if (!path) insula_failed(app, EBADMSG, "the reply can't be understood");
  return path;
}
