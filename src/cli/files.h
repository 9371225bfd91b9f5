/* Small input files, and output files that appear whole or not at all. */
#ifndef PLUMB_CLI_FILES_H
#define PLUMB_CLI_FILES_H

#include "plumb.h"

#include <stdio.h>
#include <sys/types.h>

enum { CLI_MOST_INPUT_BYTES = 1 << 28 };

/* The bytes of a file ("-": standard input), at most CLI_MOST_INPUT_BYTES, with a NUL after them
 * that `size` does not count.  Freed with free(). */
PLUMB_MUST_CHECK plumb_status cli_read_file(const char *path, char **bytes, size_t *size,
                                            plumb_error *err);

/* What errors call the file: its path, or "standard input". */
const char *cli_input_name(const char *path);

/* Texts have no names where they are checked: a fault found in what was read of a file gets its name.
 * `path` may be NULL: the text was no file's. */
PLUMB_MUST_CHECK plumb_status cli_name_input(plumb_status status, const char *path,
                                             plumb_error *err);

/* Token ids written in decimal, separated by white space; each must be in 0..vocab_size-1.
 * text[size] must be NUL; `source` names the text in errors.  Appends to `tokens`. */
PLUMB_MUST_CHECK plumb_status cli_parse_ids(const char *text, size_t size, const char *source,
                                            int64_t vocab_size, plumb_tokens *tokens,
                                            plumb_error *err);

/* Makes the folders that lead to a file, as far as they are missing and can be made; what cannot be will
 * show when the file is opened.  `path` is not empty and the same afterwards. */
void cli_make_parents(char *path, mode_t mode);
/* A copy of a path that people type, with `home`, if it is not NULL, in place of a leading ~.  Freed with
 * free(); NULL: no memory. */
char *cli_expand_home(const char *path, const char *home);

/* A file being written under a temporary name beside its own. */
typedef struct cli_new_file {
    FILE *stream;
    char *path, *temporary;
} cli_new_file;

/* Refuses a path that cannot be meant; commands ask before their work, which may take hours.  What
 * exists and is not a regular file: the final rename would replace a device.  The file that standard
 * output goes to: what is printed would be lost with it. */
PLUMB_MUST_CHECK plumb_status cli_new_file_check(const char *path, plumb_error *err);
/* Refuses an output that is also read: it would be replaced by what is made of it.  `input` may be "-"
 * for standard input, or NULL for none. */
PLUMB_MUST_CHECK plumb_status cli_new_file_check_input(const char *path, const char *input,
                                                       plumb_error *err);
/* Checks what cli_new_file_check does.  A symbolic link is followed, so that it stays and its file is replaced. */
PLUMB_MUST_CHECK plumb_status cli_new_file_open(const char *path, cli_new_file *file,
                                                plumb_error *err);
/* The same for what nobody else may read, whatever the old file's mode was. */
PLUMB_MUST_CHECK plumb_status cli_new_file_open_private(const char *path, cli_new_file *file,
                                                        plumb_error *err);
/* Makes the file appear under its name; on failure nothing is left behind. */
PLUMB_MUST_CHECK plumb_status cli_new_file_commit(cli_new_file *file, plumb_error *err);
/* Removes what was written; does nothing after a commit. */
void cli_new_file_abandon(cli_new_file *file);

#endif
