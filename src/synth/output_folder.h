/* A folder of files that appear together or not at all.
 *
 * Files are written under temporary names and renamed once the last one is complete, the config
 * last: whatever interrupts the work before that, nothing is left that opens as a checkpoint.  One
 * output at a time writes to a folder: others, of this process or another, are refused. */
#ifndef PLUMB_SYNTH_OUTPUT_FOLDER_H
#define PLUMB_SYNTH_OUTPUT_FOLDER_H

#include "plumb.h"

typedef struct plumb__output_file {
    char *temporary, *path;
} plumb__output_file;

typedef struct plumb__output {
    const char *folder; /* borrowed */
    bool made_folder;
    int folder_fd; /* holds the lock, or -1 */
    plumb__output_file *files;
    int64_t count, capacity;
    int fd; /* of the file being written, or -1 */
} plumb__output;

/* Makes the folder, and its parents; refuses one with files in it unless `force`, and one that is
 * being written to.  Temporary files that a killed run left there are removed.  A refused output is
 * closed. */
PLUMB_MUST_CHECK plumb_status plumb__output_open(plumb__output *output, const char *folder,
                                                 bool force, plumb_error *err);
/* Refuses when the file system has less than `bytes` free. */
PLUMB_MUST_CHECK plumb_status plumb__output_check_room(const plumb__output *output, int64_t bytes,
                                                       plumb_error *err);
/* Begins the file that will be `name`. */
PLUMB_MUST_CHECK plumb_status plumb__output_create(plumb__output *output, const char *name,
                                                   plumb_error *err);
/* Into the current file.  Ranges that are never written are holes. */
PLUMB_MUST_CHECK plumb_status plumb__output_write(plumb__output *output, int64_t offset,
                                                  const void *bytes, int64_t size,
                                                  plumb_error *err);
PLUMB_MUST_CHECK plumb_status plumb__output_set_size(plumb__output *output, int64_t size,
                                                     plumb_error *err);
/* Ends the current file, its bytes on the disk. */
PLUMB_MUST_CHECK plumb_status plumb__output_finish(plumb__output *output, plumb_error *err);
/* Gives all files their names, in the order of their creation.  Old files go only once nothing is
 * known to stand in the way. */
PLUMB_MUST_CHECK plumb_status plumb__output_commit(plumb__output *output, plumb_error *err);
/* Removes what was not committed, the folder too if it was made here, and frees everything. */
void plumb__output_close(plumb__output *output);

#endif
