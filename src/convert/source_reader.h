/* Released bytes of a folder's tensors, unit by unit as a converted file stores them. */
#ifndef PLUMB_CONVERT_SOURCE_READER_H
#define PLUMB_CONVERT_SOURCE_READER_H

#include "convert/converted_file.h"
#include "convert/payload_reader.h"

/* Uncached descriptors of all shards; shared by threads. */
typedef struct plumb_source_files {
    const plumb_shard_file **shard;
    plumb_payload_files files;
} plumb_source_files;

PLUMB_MUST_CHECK plumb_status plumb__source_files_open(const plumb_checkpoint *checkpoint,
                                                       plumb_source_files *files, plumb_error *err);
void plumb__source_files_close(plumb_source_files *files);

/* One thread's buffers, and what the last read put there. */
typedef struct plumb_source_reader {
    const plumb_checkpoint *checkpoint;
    plumb_payload_reader code_reader, scale_reader;
    const plumb_tensor *tiles_read;
    uint8_t *all_tiles;
    const uint8_t *codes, *scales, *tiles; /* as plumb__stored_encode takes them */
} plumb_source_reader;

PLUMB_MUST_CHECK plumb_status plumb__source_reader_open(const plumb_checkpoint *checkpoint,
                                                        const plumb_source_files *files,
                                                        plumb_source_reader *reader,
                                                        plumb_error *err);
void plumb__source_reader_close(plumb_source_reader *reader);
/* Most units of this kind that one read may take, at least 1. */
int64_t plumb__source_units_most(const plumb_stored_units *units);
/* Units [first, first + n) of a part; refuses NaN. */
PLUMB_MUST_CHECK plumb_status plumb__source_units_read(plumb_source_reader *reader,
                                                       const plumb_stored_tensor *tensor,
                                                       const plumb_stored_units *units,
                                                       const plumb_stored_part *part, int64_t first,
                                                       int64_t n, plumb_error *err);

#endif
