/* The running program on Linux. */
#include "cli/executable.h"

#include <sys/types.h>
#include <unistd.h>

bool cli_executable_path(char *path, size_t size) {
    ssize_t length = readlink("/proc/self/exe", path, size);
    if (length <= 0 || (size_t)length >= size) return false;
    path[length] = '\0';
    return true;
}
