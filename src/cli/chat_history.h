/* What was typed in chats, kept in a file for later runs.
 *
 * Text: a first line that names the format, then one entry a line, oldest first, with \n for a line break
 * and \\ for a backslash.  Only its owner may read it.  Bounded in entries and bytes: the oldest give way.
 * Each entry is added by writing a new file that replaces the old one, so that a chat which is killed
 * leaves a whole file; what other chats have added meanwhile is kept.  Of two that add at the same
 * instant one may lose its entry. */
#ifndef PLUMB_CLI_CHAT_HISTORY_H
#define PLUMB_CLI_CHAT_HISTORY_H

#include "cli/options.h"

enum {
    CLI_HISTORY_ENTRIES = 1000,
    CLI_HISTORY_BYTES = 1 << 20,       /* of the file */
    CLI_HISTORY_ENTRY_BYTES = 1 << 16  /* longer ones are not kept */
};

/* The file that the options ask for, freed with free(); NULL: none, or no memory. */
char *cli_history_path(const cli_options *options);

/* Gives the entries to `take`, oldest first; none of a file that is not there.  A file that is no history is
 * an error. */
PLUMB_MUST_CHECK plumb_status cli_history_read(const char *path,
                                               void (*take)(void *user, const char *entry), void *user,
                                               plumb_error *err);
/* Adds an entry, unless it is empty, longer than may be, or the newest one already.  Makes the folders that
 * are missing.  A file that is no history stays as it is. */
PLUMB_MUST_CHECK plumb_status cli_history_add(char *path, const char *entry, plumb_error *err);

#endif
