// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
// Loads a library when the first of its functions is called, and defines these: included once, by the source
// file that says which library that is.
//
//   LIBRARY    its file
//   NEWER      the file of a later version that has the same functions, if there is one
//   TITLE      what a message calls it
//   ADVICE     what to do where it is missing
//   LOAD       the function that loads it: NULL, or why that can't be done
//   FUNCTIONS  the list of its functions, from this directory: FUNCTION(result, name, parameters, arguments),
//              or VARIADIC(result, name, parameters) for those that C can't pass on

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// What Swift is to know of parameters says nothing about these pointers, of which none is seen outside.
#pragma clang diagnostic ignored "-Wnullability-completeness"

struct functions {
#define FUNCTION(result, name, parameters, arguments) result(*name) parameters;
#define VARIADIC(result, name, parameters) result(*name) parameters;
#include FUNCTIONS
#undef FUNCTION
#undef VARIADIC
};

static const struct {
  const char *name;
  size_t place;
} names[] = {
#define FUNCTION(result, name, parameters, arguments) {#name, offsetof(struct functions, name)},
#define VARIADIC(result, name, parameters) {#name, offsetof(struct functions, name)},
#include FUNCTIONS
#undef FUNCTION
#undef VARIADIC
};

static struct functions table;
// Set when the whole table is filled.
static _Atomic(const struct functions *) loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;
// Why it can't be filled.
static char failure[512];

static void fail(void) {
  const char *reason = dlerror();
  snprintf(failure, sizeof failure, "%s; " ADVICE, reason ? reason : LIBRARY);
}

static void load(void) {
  // It stays until the process ends, as if it had been linked.
  void *library = NULL;
#ifdef NEWER
  library = dlopen(NEWER, RTLD_NOW | RTLD_LOCAL);
#endif
  if (!library) library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!library) return fail();
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    void *function = dlsym(library, names[i].name);
    if (!function) return fail();
    memcpy((char *)&table + names[i].place, &function, sizeof function);
  }
  atomic_store_explicit(&loaded, &table, memory_order_release);
}

const char *LOAD(void) {
  pthread_once(&once, load);
  return atomic_load_explicit(&loaded, memory_order_acquire) ? NULL : failure;
}

// Whoever has not asked whether the library is there is ended where it is not.
static const struct functions *library(void) {
  const struct functions *functions = atomic_load_explicit(&loaded, memory_order_acquire);
  if (functions) return functions;
  const char *reason = LOAD();
  if (reason) {
    dprintf(STDERR_FILENO, "insula: can't load " TITLE ": %s\n", reason);
    _exit(1);
  }
  return atomic_load_explicit(&loaded, memory_order_acquire);
}

// Hidden, so that the library calls its own functions and not these.
#define FUNCTION(result, name, parameters, arguments) \
  __attribute__((visibility("hidden"))) result name parameters { return library()->name arguments; }
#define VARIADIC(result, name, parameters)
#include FUNCTIONS
