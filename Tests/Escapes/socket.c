// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// By the sockets through which apps ask Insula. APP_SOCKET is the app's own inside, and outside that of the
// other app, which its user can reach there.

#include "escape.h"
#include <glob.h>

/// Asks something at a socket; whether the reply, which is printed to standard error, says both words.
static int is_told(const char *path, const char *request, const char *one, const char *other) {
  struct sockaddr_un name = {.sun_family = AF_UNIX};
  struct timeval patience = {2, 0};
  char reply[65536];
  size_t used = 0;
  if (strlen(path) >= sizeof name.sun_path) return 0;
  strcpy(name.sun_path, path);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (connect(fd, (struct sockaddr *)&name, sizeof name) == 0
      && write(fd, request, strlen(request)) == (ssize_t)strlen(request)) {
    ssize_t size;
    while (used < sizeof reply - 1 && (size = read(fd, reply + used, sizeof reply - 1 - used)) > 0) {
      used += (size_t)size;
      if (reply[used - 1] == '\n') break;
    }
  }
  close(fd);
  reply[used] = 0;
  fprintf(stderr, "%s: %s", path, reply);
  return strstr(reply, one) && strstr(reply, other);
}

static const char other[] = "org.example.other", done[] = "\"ok\":true";
static const char own_name[] = "{\"verb\":\"self\"}\n";

ATTEMPT(socket_of_another_app_by_its_process, USER) {
  char path[64];
  for (long pid = 1; pid < 64; pid++) {
    snprintf(path, sizeof path, "/proc/%ld/root/run/insula/app.sock", pid);
    succeed_if(is_told(path, own_name, done, other));
  }
  snprintf(path, sizeof path, "/proc/%ld/root/run/insula/app.sock", number("OTHER_APP"));
  succeed_if(is_told(path, own_name, done, other));
}

ATTEMPT(socket_of_another_app_by_the_link_of_its_root, USER) {
  char path[96];
  snprintf(path, sizeof path, "/proc/%ld/cwd/../../../../../../../../../run/insula/app.sock",
           number("OTHER_APP"));
  succeed_if(is_told(path, own_name, done, other));
  snprintf(path, sizeof path, "/proc/%ld/task/%ld/root/run/insula/app.sock", number("OTHER_APP"),
           number("OTHER_APP"));
  succeed_if(is_told(path, own_name, done, other));
}

ATTEMPT(path_of_another_app_by_its_name, USER) {
  const char *request = "{\"verb\":\"path\",\"place\":\"documents\",\"identifier\":\"org.example.other\"}\n";
  succeed_if(is_told(say("APP_SOCKET"), request, done, other));
}

ATTEMPT(another_app_by_its_name, USER) {
  const char *request = "{\"verb\":\"app\",\"identifier\":\"org.example.other\"}\n";
  succeed_if(is_told(say("APP_SOCKET"), request, done, other));
}

ATTEMPT(another_app_that_one_says_to_be, USER) {
  const char *request = "{\"verb\":\"self\",\"identifier\":\"org.example.other\",\"view\":2,\"pid\":1}\n";
  succeed_if(is_told(say("APP_SOCKET"), request, done, other));
}

/// What the control socket answers, at every socket that there is.
static void ask_all(const char *request, const char *word) {
  char pattern[PATH_MAX];
  glob_t found = {0};
  const char *control = say("CONTROL");
  snprintf(pattern, sizeof pattern, "%.*s/*", (int)(strrchr(control, '/') - control), control);
  glob("/run/insula/*", 0, NULL, &found);
  glob(pattern, GLOB_APPEND, NULL, &found);
  glob("/run/insula/*/*", GLOB_APPEND, NULL, &found);
  glob("/run/user/*/insula/*", GLOB_APPEND, NULL, &found);
  for (size_t i = 0; i < found.gl_pathc; i++) {
    struct stat status;
    if (stat(found.gl_pathv[i], &status) == 0 && S_ISSOCK(status.st_mode))
      succeed_if(is_told(found.gl_pathv[i], request, done, word));
  }
  globfree(&found);
}

ATTEMPT(control_socket_by_guessing, USER) { ask_all("{\"verb\":\"status\"}\n", "mountPoint"); }
ATTEMPT(apps_of_the_store, USER) { ask_all("{\"verb\":\"apps\"}\n", other); }
ATTEMPT(apps_that_run, USER) { ask_all("{\"verb\":\"running\"}\n", other); }
ATTEMPT(passing_a_descriptor_to_the_daemon, USER) {
  ask_all("{\"verb\":\"pass\"}\n", "awaitsDescriptor");
}
ATTEMPT(grants_of_another_app, USER) {
  ask_all("{\"verb\":\"grants\",\"identifier\":\"org.example.other\",\"after\":0}\n", "\"grants\":[");
}
