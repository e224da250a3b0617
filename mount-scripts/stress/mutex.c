// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
//
// Tells the thread sanitizer what Swift's Mutex does. Where a Mutex is contended, the kernel hands it over (a
// futex with priority inheritance), inside a library that the sanitizer has not seen; without a word of it,
// all that the Mutex protects is reported. Preloaded, in any process: cc -shared -fPIC -o mutex.so mutex.c
// (clang, for Swift's calling convention).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>

extern void __tsan_acquire(void *address) __attribute__((weak));
extern void __tsan_release(void *address) __attribute__((weak));

#define SELF __attribute__((swift_context)) void *self
typedef __attribute__((swiftcall)) void (*lock_function)(uint32_t, SELF);
typedef __attribute__((swiftcall)) void (*unlock_function)(SELF);

// Synchronization._MutexHandle._lockSlow(Swift.UInt32) -> ()
__attribute__((swiftcall)) void
lock_slow(uint32_t thread, SELF) __asm__("$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF");
__attribute__((swiftcall)) void lock_slow(uint32_t thread, SELF) {
  static lock_function next;
  if (!next)
    next = (lock_function)dlsym(RTLD_NEXT, "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF");
  next(thread, self);
  if (__tsan_acquire) __tsan_acquire(self);
}

// Synchronization._MutexHandle._unlockSlow() -> ()
__attribute__((swiftcall)) void
    unlock_slow(SELF) __asm__("$s15Synchronization12_MutexHandleV11_unlockSlowyyF");
__attribute__((swiftcall)) void unlock_slow(SELF) {
  static unlock_function next;
  if (!next) next = (unlock_function)dlsym(RTLD_NEXT, "$s15Synchronization12_MutexHandleV11_unlockSlowyyF");
  if (__tsan_release) __tsan_release(self);
  next(self);
}
