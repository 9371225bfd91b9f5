/* Which name was meant by one that was misspelt. */
#ifndef PLUMB_CLI_NAMES_H
#define PLUMB_CLI_NAMES_H

#include <stdbool.h>

enum { CLI_NAME_LIMIT = 32 }; /* longer than any name in the tables */

/* How far `typed` is from `name`, at most CLI_NAME_LIMIT; a typed beginning of a name counts as near. */
int cli_name_distance(const char *typed, const char *name);
/* Whether a name so far away is worth proposing. */
bool cli_name_is_near(const char *typed, int distance);

#endif
