/* Prints one line that every build of the library must print alike (compilers.sh, processors.sh):
 *
 *     fingerprint CHECKPOINTS ROWS [LEVEL]  ->  tiny 96 rows HASH, deep40 ROWS rows HASH
 *
 * The hash is over the logits' bytes.  All kernel levels of this machine are run, or LEVEL alone; the
 * program fails when two of them disagree, or when the machine has no LEVEL. */
#include "equal/specimen.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t hash_at_level(const specimen *s, int64_t rows, const char *level) {
    plumb_model *model = specimen_model(s, 2, level);
    plumb_session *session = specimen_session(model, 0);
    float *logits = specimen_logits(s);
    specimen_advance(s, session, rows, logits);
    uint64_t hash = specimen_hash(s, logits, rows);
    free(logits);
    plumb_session_destroy(session);
    plumb_model_close(model);
    return hash;
}

/* Prints the hash all levels agree on; false when they do not.  `only`: NULL, or the level to run. */
static bool print_hash(const char *checkpoints, const char *name, int64_t most, const char *only,
                       const char *end) {
    specimen s = specimen_open(checkpoints, name);
    int64_t rows = most < s.count ? most : s.count;
    specimen_level levels[SPECIMEN_LEVELS];
    specimen_levels(levels);
    uint64_t first = 0;
    bool any = false, equal = true;
    for (int i = 0; i < SPECIMEN_LEVELS; i++) {
        if (only ? strcmp(only, levels[i].name) != 0 : !levels[i].present) continue;
        uint64_t hash = hash_at_level(&s, rows, levels[i].name);
        if (any && hash != first) equal = false;
        if (!any) first = hash;
        any = true;
    }
    printf("%s %" PRId64 " rows %016" PRIx64 "%s", name, rows, first, end);
    if (!equal) fprintf(stderr, "%s: kernel levels differ\n", name);
    if (!any) fprintf(stderr, "no level %s\n", only);
    specimen_close(&s);
    return equal && any;
}

int main(int argc, char **argv) {
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: fingerprint CHECKPOINTS ROWS [LEVEL]\n");
        return 2;
    }
    bool equal = print_hash(argv[1], "tiny", INT64_MAX, argv[3], ", ");
    equal &= print_hash(argv[1], "deep40", atoll(argv[2]), argv[3], "\n");
    return equal ? 0 : 1;
}
