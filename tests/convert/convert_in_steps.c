/* `plumb convert` and `plumb pack` with notes of what is there after so many bytes: models of tests are
 * smaller than what goes unnoted otherwise.
 *
 *     convert_in_steps convert|pack SOURCE TARGET NOTE_BYTES [unnamed]
 *
 * unnamed: ends just before the check, leaving a part that holds everything. */
#include "convert/convert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    if (argc < 5) return 2;
    const plumb_convert_options options = {.note_bytes = atoll(argv[4]), .jobs = 2,
                                           .no_audit = argc > 5};
    plumb_convert_result result;
    plumb_error err;
    plumb_status status = strcmp(argv[1], "pack") == 0
                              ? plumb__pack(argv[2], argv[3], &options, &result, &err)
                              : plumb__convert(argv[2], argv[3], &options, &result, &err);
    if (status != PLUMB_OK) {
        char line[1024];
        plumb_error_line(&err, line, sizeof line);
        fprintf(stderr, "%s\n", line);
        return 1;
    }
    printf("%lld of %lld bytes were there\n", (long long)result.resumed_bytes,
           (long long)result.file_bytes);
    return 0;
}
