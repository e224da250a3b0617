// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
// What is measured from inside an app: app ROUNDS SECONDS FILE ... opens and closes each file for so long in
// each round, by turns, and asks Insula who it is. Prints a line of rates for each round, in the order of the
// files, the calls last.
#include <fcntl.h>
#include <insula.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void opened(const char *path) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || close(fd) < 0) {
    perror(path);
    exit(1);
  }
}

static void called(insula *app) {
  char *reply = insula_call(app, "{\"own\":{}}");
  if (!reply) {
    fprintf(stderr, "app: %s\n", insula_error(app));
    exit(1);
  }
  free(reply);
}

int main(int count, char **words) {
  if (count < 4) {
    fprintf(stderr, "usage: app ROUNDS SECONDS FILE ...\n");
    return 2;
  }
  int rounds = atoi(words[1]), contenders = count - 2;
  double seconds = atof(words[2]);
  insula *app = insula_open();
  double *rates = calloc((size_t)contenders, sizeof *rates);
  if (!app || !rates) {
    perror("app: can't reach Insula");
    return 1;
  }
  for (int round = 0; round < rounds; round++) {
    for (int turn = 0; turn < contenders; turn++) {
      int one = round % 2 ? contenders - 1 - turn : turn;
      long done = 0;
      double begin = now(), end = begin;
      while (end - begin < seconds) {
        for (int i = 0; i < 50; i++) {
          if (one == contenders - 1) called(app);
          else opened(words[3 + one]);
        }
        done += 50;
        end = now();
      }
      rates[one] = (double)done / (end - begin);
    }
    for (int one = 0; one < contenders; one++) printf("%.1f ", rates[one]);
    printf("\n");
  }
  free(rates);
  insula_close(app);
  return 0;
}
