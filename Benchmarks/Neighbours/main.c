// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

#include "neighbour.h"

#include <sys/resource.h>

int main(int count, char **words) {
  // Whoever abuses takes all that the system gives one process.
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  if (count == 4 && strcmp(words[1], "victim") == 0) return victim(words[2], atof(words[3]));
  if (count == 6 && strcmp(words[1], "abuse") == 0)
    return abuse(words[2], words[3], words[4], atof(words[5]));
  if (count == 3 && strcmp(words[1], "serve") == 0) return serve(words[2]);
  fprintf(stderr, "usage: neighbour victim PLACE SECONDS | neighbour abuse KIND PLACE OTHER SECONDS |\n"
                  "       neighbour serve SOCKET\n");
  return 2;
}
