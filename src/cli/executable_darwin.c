/* The running program's folder on macOS. */
#include "cli/executable.h"

#include <limits.h>
#include <mach-o/dyld.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool cli_executable_folder(char *folder, size_t size) {
    char path[PATH_MAX], real[PATH_MAX];
    uint32_t path_size = sizeof path;
    if (_NSGetExecutablePath(path, &path_size) != 0 || realpath(path, real) == NULL) return false;
    char *slash = strrchr(real, '/');
    if (slash == NULL || (size_t)(slash - real) >= size) return false;
    *slash = '\0';
    memcpy(folder, real, (size_t)(slash - real) + 1);
    return true;
}
