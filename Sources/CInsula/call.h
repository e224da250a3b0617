// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
// Calls of Insula through the connection of an app.
#ifndef INSULA_CALL_H
#define INSULA_CALL_H

#include "insula.h"
#include "json.h"

enum { most_request = 8192 };

struct insula {
  int socket;
  char error[512];
  insula_information information;
  int is_informed;
};

// Notes why a call has failed; -1.
int insula_failed(insula *app, int error, const char *message);
// Asks something that must be done; the reply's text is `*text`, for free(). Nothing if it was not done.
json insula_ask(insula *app, const char *request, char **text);
// The path below the root of the tree, made absolute; for free().
char *insula_absolute(const char *root, json value);

#endif
