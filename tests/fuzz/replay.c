/* Stands in for libFuzzer where it is not built: runs a fuzz target over every file of the folders
 * (or single files) given, so that seeds and past findings are a regression test everywhere. */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Copies the file into a block of exactly its size, so that a checker sees reads past the end. */
static int run_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return 1;
    }
    struct stat status;
    size_t size = fstat(fileno(file), &status) == 0 ? (size_t)status.st_size : 0;
    uint8_t *data = malloc(size ? size : 1);
    int failed = !data || fread(data, 1, size, file) != size;
    (void)fclose(file);
    if (failed) fprintf(stderr, "%s: cannot read\n", path);
    else (void)LLVMFuzzerTestOneInput(data, size);
    free(data);
    return failed;
}

/* Returns the number of failures and counts the inputs run. */
static int run_path(const char *path, int *inputs) {
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode)) {
        ++*inputs;
        return run_file(path);
    }
    DIR *folder = opendir(path);
    if (!folder) return 1;
    int failures = 0;
    for (const struct dirent *entry; (entry = readdir(folder));) {
        char inner[4096];
        int length = snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] == '.') continue;
        if (length < 0 || (size_t)length >= sizeof inner) failures++;
        else failures += run_path(inner, inputs);
    }
    (void)closedir(folder);
    return failures;
}

int main(int argc, char **argv) {
    int inputs = 0, failures = 0;
    for (int i = 1; i < argc; i++) failures += run_path(argv[i], &inputs);
    printf("%d inputs, %d unreadable\n", inputs, failures);
    return failures || inputs == 0;
}
