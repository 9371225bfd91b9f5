/* An id is either the first of its fold or joins the fold of an earlier id drawn at random. */
#include "synth/fold_map.h"

#include "synth/number_stream.h"

/* Folds opened by the first n ids when `folded` of `vocab` ids open one, evenly spread. */
static int64_t opened_by(int64_t n, int64_t vocab, int64_t folded) {
    return (n * folded + vocab - 1) / vocab;
}

int64_t plumb__fold_map_make(uint64_t seed, int64_t vocab, int64_t folded, int32_t *map) {
    enum { FREE_IDS = 9 }; /* control tokens keep folds of their own */
    plumb__number_stream pick = plumb__number_stream_of(seed, "token_map.pick");
    plumb__number_stream which = plumb__number_stream_of(seed, "token_map.which");
    int64_t count = 0;
    for (int64_t id = 0; id < vocab; id++) {
        bool joins = folded > 0 ? opened_by(id + 1, vocab, folded) == opened_by(id, vocab, folded)
                                : id >= FREE_IDS && plumb__stream_below(pick, id, 3) == 0;
        if (joins)
            map[id] = map[plumb__stream_below(which, id, INT64_C(1) << 30) % id];
        else
            map[id] = (int32_t)count++;
    }
    return count;
}

void plumb__fold_map_write(const int32_t *map, int64_t vocab, int64_t folded,
                           plumb__json_text *text) {
    plumb__put_begin(text, '{');
    plumb__put_key(text, "vocab_size");
    plumb__put_integer(text, vocab);
    plumb__put_key(text, "compressed_vocab_size");
    plumb__put_integer(text, folded);
    plumb__put_key(text, "map");
    plumb__put_begin(text, '[');
    for (int64_t id = 0; id < vocab; id++) plumb__put_integer(text, map[id]);
    plumb__put_end(text, ']');
    plumb__put_end(text, '}');
    plumb__put_raw(text, "\n", 1);
}
