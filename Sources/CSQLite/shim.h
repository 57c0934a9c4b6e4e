#pragma once
#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/statfs.h>

// SQLITE_TRANSIENT is a cast that Swift cannot import: SQLite copies the bytes before these return.
static inline int freshet_sqlite3_bind_text(sqlite3_stmt *statement, int index, const char *text, int length) {
    return sqlite3_bind_text(statement, index, text, length, SQLITE_TRANSIENT);
}

static inline int freshet_sqlite3_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, int length) {
    return sqlite3_bind_blob(statement, index, bytes, length, SQLITE_TRANSIENT);
}

// Makes SQLite not count its memory, in the whole process. Has to be called before any other function of SQLite.
static inline int freshet_sqlite3_omit_memory_statistics(void) { return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

// The errno of the last failed call for a file of the database: its log or journal, or itself; 0: none. Unlike
// sqlite3_system_errno, it is also known if COMMIT fails.
static inline int freshet_sqlite3_file_errno(sqlite3 *database) {
    int number = 0;
    sqlite3_file *file = NULL;
    if (sqlite3_file_control(database, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file) == SQLITE_OK && file && file->pMethods)
        file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &number);
    if (number == 0) sqlite3_file_control(database, "main", SQLITE_FCNTL_LAST_ERRNO, &number);
    return number;
}

// Whether the file of an open database has another path now, or none: it was renamed, removed or replaced.
static inline bool freshet_sqlite3_has_moved(sqlite3 *database) {
    int moved = 0;
    return sqlite3_file_control(database, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved != 0;
}

// Whether the file system of a file may need space to change bytes that are there already: btrfs, bcachefs, ZFS.
static inline bool freshet_is_copied_on_write(const char *path) {
    struct statfs status;
    if (statfs(path, &status) != 0) return false;
    unsigned long type = (unsigned long)status.f_type & 0xffffffff;
    return type == 0x9123683e || type == 0xca451a4e || type == 0x2fc12fc1;
}
