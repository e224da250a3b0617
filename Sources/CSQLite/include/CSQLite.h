// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
// SQLite for Swift, and thin calls for what Swift does not import of it. The library is loaded when the first
// of its functions is called, not when the program starts: most commands need none, and it would be a sixth
// of their time.
#ifndef CSQLITE_H
#define CSQLITE_H

#include <sqlite3.h>

// Loads SQLite unless that is done; NULL, or why it can't be loaded. Who calls a function of a library that
// is not there has not asked, and is ended with that message.
const char *_Nullable csqlite_load(void);

// SQLITE_TRANSIENT is a macro with a cast: the library makes its own copy of what is bound.
static inline int csqlite_bind_text(sqlite3_stmt *_Nonnull statement, int index, const char *_Nonnull text,
                                    sqlite3_uint64 count) {
  return sqlite3_bind_text64(statement, index, text, count, SQLITE_TRANSIENT, SQLITE_UTF8);
}
static inline int csqlite_bind_blob(sqlite3_stmt *_Nonnull statement, int index, const void *_Nonnull bytes,
                                    sqlite3_uint64 count) {
  return sqlite3_bind_blob64(statement, index, bytes, count, SQLITE_TRANSIENT);
}

// sqlite3_db_config is variadic.
int csqlite_set_option(sqlite3 *_Nonnull database, int option, int value);

#endif
