/* Snapshots that tests make, read whole, and bend.
 *
 * What these helpers need to go on is not what is tested: when it fails the program ends. */
#ifndef PLUMB_TESTS_SNAPSHOT_FILES_H
#define PLUMB_TESTS_SNAPSHOT_FILES_H

#include "equal/specimen.h"

typedef struct file_bytes {
    uint8_t *bytes;
    size_t size;
} file_bytes;

/* BUILD_DIR/snapshots/NAME; the folder is made.  One of the last eight names asked for. */
const char *snapshot_path(const char *name);

void snapshot_save(const plumb_session *session, const char *path,
                   const plumb_snapshot_extra *extra);
plumb_snapshot *snapshot_open(const char *path);
/* Opens, restores and closes. */
void snapshot_restore(plumb_session *session, const char *path);
/* The same, and says how it went. */
plumb_status snapshot_try(plumb_session *session, const char *path, plumb_error *err);

file_bytes file_load(const char *path); /* free its bytes */
void file_store(const char *path, const void *bytes, size_t size);
bool files_same(const char *a, const char *b);
bool file_exists(const char *path);
void file_must(bool condition, const char *what); /* else ends the program, with errno's text */

#endif
