// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
// A program that runs as an app and asks Insula, through the library: app-calls WORD [ARGUMENT]

#include <errno.h>
#include <insula.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int tell_failure(const insula *app) {
  int error = errno;
  printf("failed %d %s\n", error, insula_error(app));
  return 1;
}

static int show_information(insula *app) {
  const insula_information *own = insula_info(app);
  if (!own) return tell_failure(app);
  printf("%s\n%s\n%s\n%s\n%s\n%u\n", own->identifier, own->name, own->root, own->bundle, own->home,
         own->user);
  for (const char *const *group = own->groups; *group; group++) printf("group %s\n", *group);
  return insula_info(app) == own ? 0 : 1;
}

static int show_path(insula *app, const char *place) {
  char *path = insula_path(app, place);
  if (!path) return tell_failure(app);
  puts(path);
  free(path);
  return 0;
}

static int show_grants(insula *app, char **version) {
  insula_grant *grants;
  size_t count;
  if (insula_grants(app, &grants, &count, version) != 0) return tell_failure(app);
  for (size_t i = 0; i < count; i++)
    printf("%s%s %s\n", grants[i].is_writable ? "write" : "read", grants[i].is_directory ? " folder" : "",
           grants[i].path);
  printf("%zu grants\n", count);
  fflush(stdout);
  insula_free_grants(grants, count);
  return 0;
}

static int await_grants(insula *app) {
  char *version;
  if (show_grants(app, &version) != 0) return 1;
  if (insula_await_grants(app, version) != 0) return tell_failure(app);
  free(version);
  return show_grants(app, NULL);
}

static int show_items(insula *app, const char *kind) {
  char *next = NULL;
  do {
    char *after = next, *items = insula_items(app, kind, after, &next);
    free(after);
    if (!items) return tell_failure(app);
    puts(items);
    free(items);
  } while (next);
  return 0;
}

static int add_photo(insula *app, const char *path) {
  if (insula_add_photo(app, path) != 0) return tell_failure(app);
  puts("added");
  return 0;
}

static int compare(const void *one, const void *other) {
  double a = *(const double *)one, b = *(const double *)other;
  return (a > b) - (a < b);
}

/// The median of so many calls, in microseconds, and the worst of a hundred.
static int measure(insula *app, int count) {
  double *times = calloc((size_t)count, sizeof *times);
  if (!times || !insula_info(app)) return tell_failure(app);
  for (int i = 0; i < count; i++) {
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    char *path = insula_path(app, "documents");
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (!path) return tell_failure(app);
    free(path);
    times[i] = (double)(end.tv_sec - begin.tv_sec) * 1e6 + (double)(end.tv_nsec - begin.tv_nsec) / 1e3;
  }
  qsort(times, (size_t)count, sizeof *times, compare);
  printf("%.1f %.1f\n", times[count / 2], times[count * 99 / 100]);
  free(times);
  return 0;
}

/// The error of passing on a descriptor.
static int pass_descriptor(insula *app) {
  union { char bytes[CMSG_SPACE(sizeof(int))]; struct cmsghdr aligned; } control = {{0}};
  struct iovec vector = {"\n", 1};
  struct msghdr message = {
      .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
  struct cmsghdr *part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int));
  int standard = STDIN_FILENO;
  memcpy(CMSG_DATA(part), &standard, sizeof standard);
  printf("%d\n", sendmsg(insula_descriptor(app), &message, MSG_NOSIGNAL) < 0 ? errno : 0);
  return 0;
}

int main(int count, char **words) {
  const char *word = count > 1 ? words[1] : "", *argument = count > 2 ? words[2] : "";
  insula *app = insula_open();
  int status = 2;
  if (!app) {
    printf("no app %d\n", errno);
    return 3;
  }
  if (!strcmp(word, "info")) status = show_information(app);
  if (!strcmp(word, "path")) status = show_path(app, argument);
  if (!strcmp(word, "grants")) status = show_grants(app, NULL);
  if (!strcmp(word, "items")) status = show_items(app, argument);
  if (!strcmp(word, "add-photo")) status = add_photo(app, argument);
  if (!strcmp(word, "await")) status = await_grants(app);
  if (!strcmp(word, "time")) status = measure(app, atoi(argument));
  if (!strcmp(word, "pass")) status = pass_descriptor(app);
  if (!strcmp(word, "call")) {
    char *reply = insula_call(app, argument);
    status = reply ? 0 : tell_failure(app);
    if (reply) puts(reply);
    free(reply);
  }
  insula_close(app);
  return status;
}
