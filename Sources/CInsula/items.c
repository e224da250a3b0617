// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"

char *insula_items(insula *app, const char *kind, const char *after, char **next) {
  char request[most_request] = "{\"verb\":\"items\",\"kind\":", *text;
  app->error[0] = 0;
  *next = NULL;
  int fits = json_quote(request, sizeof request - 64, kind);
  if (fits && after) {
    strcat(request, ",\"after\":");
    fits = json_quote(request, sizeof request - 2, after);
  }
  if (!fits) {
    insula_failed(app, EINVAL, "the kind, or where it is to go on, is too long");
    return NULL;
  }
  strcat(request, "}");
  json reply = insula_ask(app, request, &text);
  if (!reply.start) return NULL;
  json array = json_member(reply, "items");
  char *items = array.start ? strndup(array.start, (size_t)(array.end - array.start)) : NULL;
  json cursor = json_member(reply, "next");
  if (cursor.start) *next = json_string(cursor);
  free(text);
  if (items && (!cursor.start || *next)) return items;
  free(items);
  free(*next);
  *next = NULL;
  insula_failed(app, EBADMSG, "the reply can't be understood");
  return NULL;
}
