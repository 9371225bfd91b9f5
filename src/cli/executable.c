/* The running program's folder, on any system. */
#include "cli/executable.h"

#include <string.h>

bool cli_executable_folder(char *folder, size_t size) {
    if (!cli_executable_path(folder, size)) return false;
    char *slash = strrchr(folder, '/');
    if (slash == NULL) return false;
    *slash = '\0';
    return true;
}
