// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
// Reads replies: finds values in JSON text, without a copy of it. Every function takes text that may be
// anything, and gives nothing for what is not well formed.
#ifndef INSULA_JSON_H
#define INSULA_JSON_H

#include <stddef.h>

// A value in a text, or nothing (start is NULL).
typedef struct {
  const char *start, *end;
} json;

// The value that a whole text is.
json json_text(const char *text, size_t length);
// A member of an object.
json json_member(json object, const char *key);
// The first element of an array, and the one after another one.
json json_first(json array);
json json_next(json array, json element);
// 1 for true, 0 for anything else.
int json_is_true(json value);
// A whole number from 0 to `most`; -1 for anything else.
long long json_number(json value, long long most);
// The text of a string in UTF-8, for free(); NULL for anything else, for one with a zero in it, and without
// memory.
char *json_string(json value);
// Appends a string, quoted, to what has room for it; 0 if it does not fit.
int json_quote(char *buffer, size_t room, const char *text);

#endif
