/* Distances between names; see names.h. */
#include "cli/names.h"

#include <string.h>

/* Edits (insert, delete, replace) between two names; CLI_NAME_LIMIT when one is too long. */
static int edit_distance(const char *a, const char *b) {
    int n = (int)strnlen(a, CLI_NAME_LIMIT), m = (int)strnlen(b, CLI_NAME_LIMIT);
    if (n == CLI_NAME_LIMIT || m == CLI_NAME_LIMIT) return CLI_NAME_LIMIT;
    int row[CLI_NAME_LIMIT + 1];
    for (int j = 0; j <= m; j++) row[j] = j;
    for (int i = 1; i <= n; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            int best = diagonal + (a[i - 1] != b[j - 1]);
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[m];
}

int cli_name_distance(const char *typed, const char *name) {
    size_t size = strlen(typed);
    if (size >= 2 && strncmp(typed, name, size) == 0) return 1;
    return edit_distance(typed, name);
}

bool cli_name_is_near(const char *typed, int distance) {
    return distance <= 1 + (int)strnlen(typed, CLI_NAME_LIMIT) / 3;
}
