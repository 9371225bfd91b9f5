/* What every_position_test and the processes that it starts agree on: which positions of which specimen,
 * in which setting each is restored, and where files are. */
#ifndef PLUMB_TESTS_SNAPSHOT_POSITIONS_H
#define PLUMB_TESTS_SNAPSHOT_POSITIONS_H

#include "stream/reader_kinds.h"

#include <stdbool.h>
#include <stdint.h>

/* Other threads, another chunk, other kernels, another way to stream: one process each. */
typedef struct position_setting {
    const char *name;
    int threads;
    int64_t chunk;
    const char *level; /* NULL: the best */
    bool streaming, layer_buffers;
    int64_t slots;
    plumb_reader_kind reader;
} position_setting;
extern const position_setting position_settings[];
extern const int position_setting_count;

/* The setting that restores a snapshot of this length. */
int position_setting_of(int64_t length);
/* Whether everything that follows is evaluated, not one token only. */
bool position_is_boundary(int64_t length);

const char *position_snapshot(const char *model, int64_t length); /* one of the last few */
const char *position_rows(const char *model); /* float32 rows, one for each position */

#endif
