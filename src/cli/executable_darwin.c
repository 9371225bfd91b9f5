/* The running program on macOS. */
#include "cli/executable.h"

#include <limits.h>
#include <mach-o/dyld.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool cli_executable_path(char *path, size_t size) {
    char given[PATH_MAX], real[PATH_MAX];
    uint32_t given_size = sizeof given;
    if (_NSGetExecutablePath(given, &given_size) != 0 || realpath(given, real) == NULL) return false;
    size_t length = strlen(real);
    if (length >= size) return false;
    memcpy(path, real, length + 1);
    return true;
}
