// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
#include <errno.h>
#include <stdlib.h>

#include "call.h"

static int add_paths(const char *root, json array, char ***paths, size_t *count) {
  if (!array.start) return -1;
  for (json item = json_first(array); item.start; item = json_next(array, item)) {
    char **more = realloc(*paths, (*count + 1) * sizeof *more);
    if (!more) return -1;
    *paths = more;
    if (!(more[*count] = insula_absolute(root, item))) return -1;
    ++*count;
  }
  return 0;
}

int insula_await_opened(insula *app, char ***paths, size_t *count) {
  *paths = NULL;
  *count = 0;
  const insula_information *own = insula_info(app);
  if (!own) return -1;
  char *text;
  json reply = insula_ask(app, "{\"verb\":\"await-opened\"}", &text);
  if (!reply.start) return -1;
  int result = add_paths(own->root, json_member(reply, "opened"), paths, count);
  free(text);
  if (result == 0) return 0;
  insula_free_opened(*paths, *count);
  *paths = NULL;
  *count = 0;
  return insula_failed(app, EBADMSG, "the reply can't be understood");
}

void insula_free_opened(char **paths, size_t count) {
  for (size_t i = 0; i < count; i++) free(paths[i]);
  free(paths);
}
