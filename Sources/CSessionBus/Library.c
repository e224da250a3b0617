// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
#include "CSessionBus.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libsystemd.so.0"

struct functions {
#define FUNCTION(result, name, parameters, arguments) result(*name) parameters;
#include "Functions.h"
#undef FUNCTION
};

static const struct {
  const char *name;
  size_t place;
} names[] = {
#define FUNCTION(result, name, parameters, arguments) {#name, offsetof(struct functions, name)},
#include "Functions.h"
#undef FUNCTION
};

static struct functions table;
// Set when the whole table is filled.
static _Atomic(const struct functions *) loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;
// Why it can't be filled.
static char failure[512];

static void fail(void) {
  const char *reason = dlerror();
  snprintf(failure, sizeof failure, "%s; install libsystemd (on Debian the package libsystemd0)",
           reason ? reason : LIBRARY);
}

static void load(void) {
  // It stays until the process ends, as if it had been linked.
  void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!library) return fail();
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    void *function = dlsym(library, names[i].name);
    if (!function) return fail();
    memcpy((char *)&table + names[i].place, &function, sizeof function);
  }
  atomic_store_explicit(&loaded, &table, memory_order_release);
}

const char *csessionbus_load(void) {
  pthread_once(&once, load);
  return atomic_load_explicit(&loaded, memory_order_acquire) ? NULL : failure;
}

// Whoever has not asked whether the library is there ends.
static const struct functions *library(void) {
  const char *reason = csessionbus_load();
  if (reason) {
    dprintf(STDERR_FILENO, "insula: can't load libsystemd: %s\n", reason);
    _exit(1);
  }
  return atomic_load_explicit(&loaded, memory_order_acquire);
}

// Hidden, so that the library calls its own functions and not these.
#define FUNCTION(result, name, parameters, arguments) \
  __attribute__((visibility("hidden"))) result name parameters { return library()->name arguments; }
#include "Functions.h"
