#include "snapshot/positions.h"

#include "snapshot/files.h"

#include <stdio.h>

const position_setting position_settings[] = {
    {"in memory", 1, 7, NULL, false, false, 0, PLUMB_READER_BEST},
    {"a cache of 19 experts", 2, 128, NULL, true, false, 19, PLUMB_READER_BEST},
    {"layer buffers", 1, 520, NULL, true, true, 0, PLUMB_READER_PREAD},
    {"a cache of 40 experts, pread", 2, 1, NULL, true, false, 40, PLUMB_READER_PREAD},
    {"one slot", 1, 64, NULL, true, false, 1, PLUMB_READER_BEST},
    {"portable kernels", 2, 33, "portable", false, false, 0, PLUMB_READER_BEST},
};
const int position_setting_count = sizeof position_settings / sizeof position_settings[0];

/* Around windows, pairs, blocks and chunks. */
static const int64_t boundaries[] = {0,   1,   2,   15,  16,  17,  31,  32,  33, 127,
                                     128, 129, 255, 256, 257, 511, 512, 513, 519};

static int boundary_of(int64_t length) {
    for (int i = 0; i < (int)(sizeof boundaries / sizeof boundaries[0]); i++)
        if (boundaries[i] == length) return i;
    return -1;
}

bool position_is_boundary(int64_t length) { return boundary_of(length) >= 0; }

/* Each setting sees odd and even lengths, and all places in a window.  The last one is slow. */
int position_setting_of(int64_t length) {
    int boundary = boundary_of(length);
    if (boundary >= 0) return boundary % (position_setting_count - 1);
    return (int)((length + length / position_setting_count) % position_setting_count);
}

const char *position_snapshot(const char *model, int64_t length) {
    char name[64];
    (void)snprintf(name, sizeof name, "%s.at-%lld", model, (long long)length);
    return snapshot_path(name);
}

const char *position_rows(const char *model) {
    char name[64];
    (void)snprintf(name, sizeof name, "%s.rows", model);
    return snapshot_path(name);
}
