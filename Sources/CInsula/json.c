// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
#include "json.h"

#include <stdlib.h>
#include <string.h>

static const json nothing = {NULL, NULL};
enum { most_depth = 32 };

static const char *skip_space(const char *at, const char *end) {
  while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')) at++;
  return at;
}

static const char *skip_string(const char *at, const char *end) {
  for (at++; at < end; at++) {
    if ((unsigned char)*at < 0x20) return NULL;
    if (*at == '"') return at + 1;
    if (*at == '\\' && ++at >= end) return NULL;
  }
  return NULL;
}

static const char *skip_value(const char *at, const char *end, int depth);

// What stands between brackets: values with commas between them, each with a key before it in an object.
static const char *skip_list(const char *at, const char *end, int depth) {
  char closing = *at == '{' ? '}' : ']';
  if (depth >= most_depth) return NULL;
  at = skip_space(at + 1, end);
  if (at < end && *at == closing) return at + 1;
  while (at < end) {
    if (closing == '}') {
      if (*at != '"' || !(at = skip_string(at, end))) return NULL;
      at = skip_space(at, end);
      if (at >= end || *at != ':') return NULL;
      at = skip_space(at + 1, end);
    }
    if (!(at = skip_value(at, end, depth + 1))) return NULL;
    at = skip_space(at, end);
    if (at >= end) return NULL;
    if (*at == closing) return at + 1;
    if (*at != ',') return NULL;
    at = skip_space(at + 1, end);
  }
  return NULL;
}

static const char *skip_value(const char *at, const char *end, int depth) {
  if (at >= end) return NULL;
  if (*at == '{' || *at == '[') return skip_list(at, end, depth);
  if (*at == '"') return skip_string(at, end);
  const char *start = at;
  while (at < end && !strchr(",]} \t\n\r", *at)) at++;
  return at > start ? at : NULL;
}

json json_text(const char *text, size_t length) {
  const char *end = text + length;
  const char *start = skip_space(text, end);
  const char *after = skip_value(start, end, 0);
  if (!after || skip_space(after, end) != end) return nothing;
  return (json){start, after};
}

json json_member(json object, const char *key) {
  if (!object.start || *object.start != '{') return nothing;
  size_t length = strlen(key);
  const char *at = skip_space(object.start + 1, object.end);
  while (at && at < object.end && *at == '"') {
    const char *name = at + 1;
    if (!(at = skip_string(at, object.end))) return nothing;
    int is_found = (size_t)(at - 1 - name) == length && !memcmp(name, key, length);
    at = skip_space(at, object.end);
    if (at >= object.end || *at != ':') return nothing;
    at = skip_space(at + 1, object.end);
    const char *after = skip_value(at, object.end, 1);
    if (!after) return nothing;
    if (is_found) return (json){at, after};
    at = skip_space(after, object.end);
    if (at >= object.end || *at != ',') return nothing;
    at = skip_space(at + 1, object.end);
  }
  return nothing;
}

static json element(const char *at, json array) {
  at = skip_space(at, array.end);
  if (at >= array.end || *at == ']') return nothing;
  const char *after = skip_value(at, array.end, 1);
  return after ? (json){at, after} : nothing;
}

json json_first(json array) {
  return array.start && *array.start == '[' ? element(array.start + 1, array) : nothing;
}

json json_next(json array, json before) {
  const char *at = skip_space(before.end, array.end);
  return at < array.end && *at == ',' ? element(at + 1, array) : nothing;
}

int json_is_true(json value) {
  return value.start && value.end - value.start == 4 && !memcmp(value.start, "true", 4);
}

long long json_number(json value, long long most) {
  long long number = 0;
  if (!value.start) return -1;
  for (const char *at = value.start; at < value.end; at++) {
    if (*at < '0' || *at > '9' || number > (most - (*at - '0')) / 10) return -1;
    number = number * 10 + (*at - '0');
  }
  return number;
}

// Four hexadecimal digits; -1 if they are not.
static long read_unit(const char *at, const char *end) {
  long unit = 0;
  if (end - at < 4) return -1;
  for (int i = 0; i < 4; i++) {
    char c = at[i];
    int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

// Writes a character in UTF-8; the place after it.
static char *write_character(char *to, unsigned long code) {
  if (code < 0x80) {
    *to++ = (char)code;
  } else if (code < 0x800) {
    *to++ = (char)(0xc0 | code >> 6);
    *to++ = (char)(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    *to++ = (char)(0xe0 | code >> 12);
    *to++ = (char)(0x80 | (code >> 6 & 0x3f));
    *to++ = (char)(0x80 | (code & 0x3f));
  } else {
    *to++ = (char)(0xf0 | code >> 18);
    *to++ = (char)(0x80 | (code >> 12 & 0x3f));
    *to++ = (char)(0x80 | (code >> 6 & 0x3f));
    *to++ = (char)(0x80 | (code & 0x3f));
  }
  return to;
}

// Writes what an escape stands for, which begins after the backslash; the place after the escape.
static const char *write_escape(const char *at, const char *end, char **to) {
  static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
  const char *found = *at ? strchr(names, *at) : NULL;
  if (found) {
    *(*to)++ = values[found - names];
    return at + 1;
  }
  long unit = *at == 'u' ? read_unit(at + 1, end) : -1;
  if (unit <= 0 || (unit >= 0xdc00 && unit < 0xe000)) return NULL;
  at += 5;
  unsigned long code = (unsigned long)unit;
  if (unit >= 0xd800 && unit < 0xdc00) {
    long low = end - at >= 6 && at[0] == '\\' && at[1] == 'u' ? read_unit(at + 2, end) : -1;
    if (low < 0xdc00 || low >= 0xe000) return NULL;
    code = 0x10000 + (((unsigned long)unit - 0xd800) << 10) + ((unsigned long)low - 0xdc00);
    at += 6;
  }
  *to = write_character(*to, code);
  return at;
}

char *json_string(json value) {
  if (!value.start || *value.start != '"') return NULL;
  const char *at = value.start + 1, *end = value.end - 1;
  // No escape is shorter than what it stands for.
  char *text = malloc((size_t)(end - at) + 1), *to = text;
  while (text && at < end) {
    if (!*at) {
      at = NULL;
    } else if (*at == '\\') {
      at = write_escape(at + 1, end, &to);
    } else {
      *to++ = *at++;
    }
    if (at) continue;
    free(text);
    return NULL;
  }
  if (text) *to = 0;
  return text;
}

int json_quote(char *buffer, size_t room, const char *text) {
  static const char digits[] = "0123456789abcdef";
  size_t used = strlen(buffer);
  if (used + 3 > room) return 0;
  buffer[used++] = '"';
  for (; *text; text++) {
    unsigned char c = (unsigned char)*text;
    if (used + 9 > room) return 0;
    if (c == '"' || c == '\\') {
      buffer[used++] = '\\';
      buffer[used++] = (char)c;
    } else if (c < 0x20) {
      memcpy(buffer + used, "\\u00", 4);
      buffer[used + 4] = digits[c >> 4];
      buffer[used + 5] = digits[c & 15];
      used += 6;
    } else {
      buffer[used++] = (char)c;
    }
  }
  buffer[used++] = '"';
  buffer[used] = 0;
  return 1;
}
