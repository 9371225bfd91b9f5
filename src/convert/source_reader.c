#include "convert/source_reader.h"

#include "base/error.h"

#include <stdlib.h>

enum { MOST = 4 << 20 }; /* bytes of one read */

plumb_status plumb__source_files_open(const plumb_checkpoint *checkpoint, plumb_source_files *files,
                                      plumb_error *err) {
    int64_t n = plumb__checkpoint_shards(checkpoint);
    *files = (plumb_source_files){.shard = malloc((size_t)n * sizeof *files->shard)};
    if (!files->shard) return plumb__fail_memory(err, "shards", (size_t)n * sizeof *files->shard);
    for (int64_t i = 0; i < n; i++) files->shard[i] = plumb__checkpoint_shard(checkpoint, i);
    plumb_status status = plumb__payload_files_open(files->shard, n, &files->files, err);
    if (status != PLUMB_OK) plumb__source_files_close(files);
    return status;
}

void plumb__source_files_close(plumb_source_files *files) {
    plumb__payload_files_close(&files->files);
    free(files->shard);
    *files = (plumb_source_files){0};
}

int64_t plumb__source_units_most(const plumb_stored_units *units) {
    int64_t largest = units->codes > units->stored ? units->codes : units->stored;
    return largest < MOST ? MOST / largest : 1;
}

plumb_status plumb__source_reader_open(const plumb_checkpoint *checkpoint,
                                       const plumb_source_files *files, plumb_source_reader *reader,
                                       plumb_error *err) {
    *reader = (plumb_source_reader){.checkpoint = checkpoint};
    plumb_status status = plumb__payload_reader_open(&files->files, MOST, &reader->code_reader, err);
    if (status == PLUMB_OK)
        status = plumb__payload_reader_open(&files->files, MOST, &reader->scale_reader, err);
    if (status != PLUMB_OK) plumb__source_reader_close(reader);
    return status;
}

void plumb__source_reader_close(plumb_source_reader *reader) {
    plumb__payload_reader_close(&reader->code_reader);
    plumb__payload_reader_close(&reader->scale_reader);
    free(reader->all_tiles);
    *reader = (plumb_source_reader){0};
}

static plumb_status read_tiles(plumb_source_reader *reader, const plumb_tensor *tiles,
                               plumb_error *err) {
    if (reader->tiles_read == tiles) return PLUMB_OK;
    free(reader->all_tiles);
    reader->tiles_read = NULL;
    reader->all_tiles = malloc((size_t)tiles->bytes);
    if (!reader->all_tiles) return plumb__fail_memory(err, tiles->name, (size_t)tiles->bytes);
    plumb_status status = plumb__checkpoint_read(reader->checkpoint, tiles, 0, tiles->bytes,
                                                 reader->all_tiles, err);
    if (status == PLUMB_OK) reader->tiles_read = tiles;
    return status;
}

static plumb_status read_range(plumb_source_reader *reader, plumb_payload_reader *payload,
                               const plumb_tensor *tensor, int64_t begin, int64_t size,
                               const uint8_t **bytes, plumb_error *err) {
    plumb_status status = plumb__payload_read(payload, tensor->shard, tensor->offset + begin, size,
                                              tensor->name, bytes, err);
    if (status != PLUMB_OK) return status;
    return plumb__checkpoint_check_values(reader->checkpoint, tensor, begin, size, *bytes, err);
}

plumb_status plumb__source_units_read(plumb_source_reader *reader,
                                      const plumb_stored_tensor *tensor,
                                      const plumb_stored_units *units, const plumb_stored_part *part,
                                      int64_t first, int64_t n, plumb_error *err) {
    reader->scales = reader->tiles = NULL;
    plumb_status status = read_range(reader, &reader->code_reader, part->codes,
                                     first * units->codes, n * units->codes, &reader->codes, err);
    if (status == PLUMB_OK && units->scales > 0)
        status = read_range(reader, &reader->scale_reader, part->scales, first * units->scales,
                            n * units->scales, &reader->scales, err);
    if (status == PLUMB_OK && units->tiles) {
        status = read_tiles(reader, tensor->tiles, err);
        if (status == PLUMB_OK)
            reader->tiles = reader->all_tiles + plumb__stored_tiles_begin(units, first);
    }
    return status;
}
