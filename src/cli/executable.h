/* Where the running program is: the one question whose answer differs by system. */
#ifndef PLUMB_CLI_EXECUTABLE_H
#define PLUMB_CLI_EXECUTABLE_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the path of the running program. */
bool cli_executable_path(char *path, size_t size);
/* Writes its folder, without a final slash. */
bool cli_executable_folder(char *folder, size_t size);

#endif
