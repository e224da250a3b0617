// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
#include "CSQLite.h"

// Without its registry a store would look like one that has no apps.
#define LIBRARY "libsqlite3.so.0"
#define TITLE "SQLite"
#define ADVICE "install SQLite 3 (on Debian the package libsqlite3-0)"
#define LOAD csqlite_load
#define FUNCTIONS "../CSQLite/Functions.h"
#include "../CLinux/LoadedLibrary.h"

int csqlite_set_option(sqlite3 *database, int option, int value) {
  return library()->sqlite3_db_config(database, option, value, (int *)0);
}
