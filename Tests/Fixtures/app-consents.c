// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
// A program that runs as an app and asks for what is private, through the library. Its words are done in
// turn: "status SERVICE", "request SERVICE", "later SERVICE", "panel NAME TYPES" and "save NAME TYPES". A
// dash stands for none.

#include <errno.h>
#include <insula.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void tell(int state, int error, const char *message) {
  static const char *const names[] = {"not determined", "restricted", "denied", "authorized"};
  if (state < 0) printf("failed %s: %s\n", strerrorname_np(error), message);
  else printf("%s\n", names[state]);
  fflush(stdout);
}

struct answer {
  pthread_mutex_t lock;
  pthread_cond_t is_there;
  pthread_t thread;
  int is_given;
};

static void given(void *context, int state, int error, const char *message) {
  struct answer *answer = context;
  tell(state, error, message);
  pthread_mutex_lock(&answer->lock);
  answer->thread = pthread_self();
  answer->is_given = 1;
  pthread_cond_signal(&answer->is_there);
  pthread_mutex_unlock(&answer->lock);
}

static void ask_later(const char *service) {
  struct answer answer = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, pthread_self(), 0};
  if (insula_request_consent_later(service, given, &answer) != 0) return tell(-1, errno, "no thread");
  printf("goes on\n");
  fflush(stdout);
  pthread_mutex_lock(&answer.lock);
  while (!answer.is_given) pthread_cond_wait(&answer.is_there, &answer.lock);
  pthread_mutex_unlock(&answer.lock);
  if (pthread_equal(answer.thread, pthread_self())) printf("on the same thread\n");
}

static void choose(insula *app, insula_panel kind, const char *name, const char *types) {
  if (!strcmp(name, "-")) name = NULL;
  if (!strcmp(types, "-")) types = NULL;
  char *path = insula_open_panel(app, kind, name, types);
  if (!path) return tell(-1, errno, insula_error(app));
  FILE *file = fopen(path, "r");
  char line[100] = "";
  if (file && !fgets(line, sizeof line, file)) line[0] = 0;
  printf("%s: %s\n", path, line);
  if (file) fclose(file);
  free(path);
}

int main(int count, char **words) {
  insula *app = insula_open();
  if (!app) {
    perror("can't reach Insula");
    return 1;
  }
  for (int i = 1; i + 1 < count; i += 2) {
    const char *word = words[i], *argument = words[i + 1];
    if (!strcmp(word, "status")) {
      int state = insula_consent_status(app, argument);
      tell(state, errno, insula_error(app));
    } else if (!strcmp(word, "request")) {
      int state = insula_request_consent(app, argument);
      tell(state, errno, insula_error(app));
    } else if (!strcmp(word, "later")) {
      ask_later(argument);
    } else if (i + 2 < count) {
      choose(app, strcmp(word, "save") ? insula_panel_file : insula_panel_save, argument, words[++i + 1]);
    }
    fflush(stdout);
  }
  insula_close(app);
  return 0;
}
