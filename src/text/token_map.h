/* The folded vocabulary that Engram hashes over (spec: model.md section 5.1).
 *
 * With a tokenizer the map is computed from it; a checkpoint without one (the random test models)
 * brings it as engram_token_map.i32, little-endian int32 per id. */
#ifndef PLUMB_TEXT_TOKEN_MAP_H
#define PLUMB_TEXT_TOKEN_MAP_H

#include "plumb.h"

/* Computes the map of every id of `text`; *map has plumb_text_vocab_size entries, freed with free().
 * *folded is the number of distinct folded ids. */
PLUMB_MUST_CHECK plumb_status plumb__token_map_build(const plumb_text *text, int32_t **map,
                                                     int64_t *folded, plumb_error *err);
/* Of a model, a folder or a converted file: from tokenizer.json if there is one, else from
 * engram_token_map.i32.
 * Checks that it has `vocab` entries and exactly `folded` distinct ids, in order of first use, and
 * that the tokenizer, if there is one, calls token `image_id` <｜deepseek_image｜>. */
PLUMB_MUST_CHECK plumb_status plumb__token_map_load(const char *model, int64_t vocab, int64_t folded,
                                                    int64_t image_id, int32_t **map,
                                                    plumb_error *err);

#endif
