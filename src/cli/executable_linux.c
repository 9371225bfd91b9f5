/* The running program's folder on Linux. */
#include "cli/executable.h"

#include <string.h>
#include <sys/types.h>
#include <unistd.h>

bool cli_executable_folder(char *folder, size_t size) {
    ssize_t length = readlink("/proc/self/exe", folder, size);
    if (length <= 0 || (size_t)length >= size) return false;
    folder[length] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash == NULL) return false;
    *slash = '\0';
    return true;
}
