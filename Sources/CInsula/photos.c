// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "call.h"

// Where a file lies below the app's home, for free(); NULL if it does not.
static char *below_home(insula *app, const char *path) {
  const insula_information *own = insula_info(app);
  if (!own) return NULL;
  char *home = realpath(own->home, NULL), *file = home ? realpath(path, NULL) : NULL, *below = NULL;
  int error = file ? EINVAL : errno;
  const char *message = file ? "the file is not in the app's home; copy it to there first" : strerror(error);
  size_t length = home ? strlen(home) : 0;
  if (file && !strncmp(file, home, length) && file[length] == '/') below = strdup(file + length + 1);
  free(file);
  free(home);
  if (!below) insula_failed(app, error, message);
  return below;
}

int insula_add_photo(insula *app, const char *path) {
  char request[most_request] = "{\"verb\":\"add-photo\",\"file\":", *text;
  app->error[0] = 0;
  char *file = below_home(app, path);
  if (!file) return -1;
  int fits = json_quote(request, sizeof request - 64, file);
  free(file);
  if (!fits) return insula_failed(app, EINVAL, "the path is too long");
  // The line is sent again when the daemon is replaced; by the token it is known to be the same call.
  unsigned long long token[2];
  if (getrandom(token, sizeof token, 0) != sizeof token)
    return insula_failed(app, errno, "there are no random numbers");
  size_t used = strlen(request);
  snprintf(request + used, sizeof request - used, ",\"token\":\"%016llx%016llx\"}", token[0], token[1]);
  json reply = insula_ask(app, request, &text);
  if (!reply.start) return -1;
  free(text);
  return 0;
}
