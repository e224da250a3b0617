// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors
// The functions of SQLite that are called. What is missing here does not link, and what differs from SQLite's
// declaration does not compile. For FUNCTION(result, name, parameters, arguments), Library.c defines one that
// calls SQLite's; C can't do that for VARIADIC.

FUNCTION(int, sqlite3_backup_finish, (sqlite3_backup *a), (a))
FUNCTION(sqlite3_backup *, sqlite3_backup_init, (sqlite3 *a, const char *b, sqlite3 *c, const char *d),
         (a, b, c, d))
FUNCTION(int, sqlite3_backup_step, (sqlite3_backup *a, int b), (a, b))
FUNCTION(int, sqlite3_bind_blob64,
         (sqlite3_stmt *a, int b, const void *c, sqlite3_uint64 d, void (*e)(void *)), (a, b, c, d, e))
FUNCTION(int, sqlite3_bind_int64, (sqlite3_stmt *a, int b, sqlite3_int64 c), (a, b, c))
FUNCTION(int, sqlite3_bind_null, (sqlite3_stmt *a, int b), (a, b))
FUNCTION(int, sqlite3_bind_text64,
         (sqlite3_stmt *a, int b, const char *c, sqlite3_uint64 d, void (*e)(void *), unsigned char f),
         (a, b, c, d, e, f))
FUNCTION(int, sqlite3_bind_zeroblob, (sqlite3_stmt *a, int b, int c), (a, b, c))
FUNCTION(int, sqlite3_busy_timeout, (sqlite3 *a, int b), (a, b))
FUNCTION(sqlite3_int64, sqlite3_changes64, (sqlite3 *a), (a))
FUNCTION(int, sqlite3_close_v2, (sqlite3 *a), (a))
FUNCTION(const void *, sqlite3_column_blob, (sqlite3_stmt *a, int b), (a, b))
FUNCTION(int, sqlite3_column_bytes, (sqlite3_stmt *a, int b), (a, b))
FUNCTION(sqlite3_int64, sqlite3_column_int64, (sqlite3_stmt *a, int b), (a, b))
FUNCTION(const unsigned char *, sqlite3_column_text, (sqlite3_stmt *a, int b), (a, b))
FUNCTION(int, sqlite3_column_type, (sqlite3_stmt *a, int b), (a, b))
VARIADIC(int, sqlite3_db_config, (sqlite3 *a, int b, ...))
FUNCTION(const char *, sqlite3_errmsg, (sqlite3 *a), (a))
FUNCTION(int, sqlite3_file_control, (sqlite3 *a, const char *b, int c, void *d), (a, b, c, d))
FUNCTION(int, sqlite3_finalize, (sqlite3_stmt *a), (a))
FUNCTION(int, sqlite3_get_autocommit, (sqlite3 *a), (a))
FUNCTION(sqlite3_int64, sqlite3_last_insert_rowid, (sqlite3 *a), (a))
FUNCTION(int, sqlite3_limit, (sqlite3 *a, int b, int c), (a, b, c))
FUNCTION(int, sqlite3_open_v2, (const char *a, sqlite3 **b, int c, const char *d), (a, b, c, d))
FUNCTION(int, sqlite3_prepare_v3,
         (sqlite3 *a, const char *b, int c, unsigned int d, sqlite3_stmt **e, const char **f),
         (a, b, c, d, e, f))
FUNCTION(void, sqlite3_progress_handler, (sqlite3 *a, int b, int (*c)(void *), void *d), (a, b, c, d))
FUNCTION(int, sqlite3_step, (sqlite3_stmt *a), (a))
FUNCTION(int, sqlite3_system_errno, (sqlite3 *a), (a))
FUNCTION(sqlite3_vfs *, sqlite3_vfs_find, (const char *a), (a))
FUNCTION(int, sqlite3_vfs_register, (sqlite3_vfs *a, int b), (a, b))
FUNCTION(int, sqlite3_vfs_unregister, (sqlite3_vfs *a), (a))
