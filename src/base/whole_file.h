/* A file that appears under its name whole or not at all.
 *
 * It is written as PATH.part, locked against other writers, and renamed over PATH once it is on the
 * disk; nothing but that rename ever touches PATH.  A part that a killed process left is written over;
 * it is known by its first bytes, so that nobody's own file of that name is lost. */
#ifndef PLUMB_BASE_WHOLE_FILE_H
#define PLUMB_BASE_WHOLE_FILE_H

#include "plumb.h"

enum { PLUMB_WHOLE_FILE_MARK = 8 };
#define PLUMB_WHOLE_FILE_SUFFIX ".part"

typedef struct plumb_whole_file {
    char *path; /* where it will be: a symbolic link stays and its file is replaced */
    char *part; /* where it is written */
    int fd;
} plumb_whole_file;

/* May a file be written as `path`?  Refused: an empty name, a name that ends in "/" or ".part", and what
 * is there and no regular file (a rename would replace a device). */
PLUMB_MUST_CHECK plumb_status plumb__whole_file_check(const char *path, plumb_error *err);
/* Checks, makes the part, locks it and writes `mark` as its first bytes; `magic` are the first bytes
 * of a finished file, which whoever writes puts there last. */
PLUMB_MUST_CHECK plumb_status plumb__whole_file_open(const char *path,
                                                     const char mark[PLUMB_WHOLE_FILE_MARK],
                                                     const char magic[PLUMB_WHOLE_FILE_MARK],
                                                     plumb_whole_file *file, plumb_error *err);
/* Is an open part what a killed writer left?  Empty, or it begins as one of the two, or with zeros,
 * which machines leave that stopped. */
bool plumb__whole_file_is_left_over(int fd, const char mark[PLUMB_WHOLE_FILE_MARK],
                                    const char magic[PLUMB_WHOLE_FILE_MARK]);
/* Gives it its name; on failure PATH is as it was and nothing else is left.  (Except when the folder
 * cannot be synced: then the file is there, but may be lost with the next loss of power.) */
PLUMB_MUST_CHECK plumb_status plumb__whole_file_commit(plumb_whole_file *file, plumb_error *err);
/* Removes the part; does nothing after a commit. */
void plumb__whole_file_abandon(plumb_whole_file *file);

#endif
