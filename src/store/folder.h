/* The folder of a store as the file system has it: making and locking it, what lies there, how much
 * room there is. */
#ifndef PLUMB_STORE_FOLDER_H
#define PLUMB_STORE_FOLDER_H

#include "store/prefix.h"

/* Makes the folder, for its owner alone, if it is not there. */
PLUMB_MUST_CHECK plumb_status plumb__store_folder_make(const char *folder, plumb_error *err);
/* FOLDER/NAME; free() it. */
PLUMB_MUST_CHECK plumb_status plumb__store_path(const char *folder, const char *name, char **path,
                                                plumb_error *err);

/* One process at a time changes what is in the folder; reading needs no lock.  The lock goes with
 * the process that holds it.  That one may be stopped, so a signal ends the wait:
 * PLUMB_ERROR_CANCELLED. */
PLUMB_MUST_CHECK plumb_status plumb__store_lock(const char *folder, int *lock, plumb_error *err);
void plumb__store_unlock(int lock);

/* A file whose name is that of an entry. */
typedef struct plumb_store_file {
    plumb_prefix_id id;
    int64_t bytes;
    int64_t modified; /* nanoseconds since 1970 */
} plumb_store_file;

/* All of them; free() the list. */
PLUMB_MUST_CHECK plumb_status plumb__store_list(const char *folder, plumb_store_file **files,
                                                int64_t *count, plumb_error *err);
/* Removes unfinished entries.  Under the lock no entry is being written, so that whoever began them
 * has ended; by name and first bytes they are ours. */
void plumb__store_remove_parts(const char *folder);

/* May an entry be written as `path`?  Over another one; what else has its name is somebody's, and a
 * link leads to what is. */
PLUMB_MUST_CHECK plumb_status plumb__store_check_place(const char *path, plumb_error *err);

/* Removes an entry; one that is gone already is fine. */
PLUMB_MUST_CHECK plumb_status plumb__store_remove(const char *folder, plumb_prefix_id id,
                                                  plumb_error *err);

/* Bytes that may be written before less than `share` of the file system is free; may be negative. */
PLUMB_MUST_CHECK plumb_status plumb__store_room(const char *folder, double share, int64_t *bytes,
                                                plumb_error *err);

#endif
