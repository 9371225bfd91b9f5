/* The map from token ids to folded ids that Engram hashes over, for models without a tokenizer. */
#ifndef PLUMB_SYNTH_FOLD_MAP_H
#define PLUMB_SYNTH_FOLD_MAP_H

#include "synth/json_text.h"

/* Fills map (vocab); folded ids are in order of first use.  Returns how many there are.  With
 * `folded` 0 about every third id shares an earlier one's, else exactly vocab - folded ids do. */
int64_t plumb__fold_map_make(uint64_t seed, int64_t vocab, int64_t folded, int32_t *map);
/* engram_token_map.json. */
void plumb__fold_map_write(const int32_t *map, int64_t vocab, int64_t folded,
                           plumb__json_text *text);

#endif
