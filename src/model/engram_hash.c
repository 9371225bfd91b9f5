#include "model/engram_hash.h"

#include "base/error.h"
#include "model/numpy_integers.h"

/* The published code bounds its multipliers so that an id times a multiplier stays below 2^63. */
static void draw_multipliers(const plumb_model_config *config, int64_t layer,
                             plumb_engram_hash *hash) {
    int64_t draws[PLUMB_MAX_NGRAM];
    int64_t bound = INT64_MAX / config->engram_folded_vocab / 2;
    plumb__numpy_integers((uint32_t)(10007 * layer), bound, hash->ngram, draws);
    for (int n = 0; n < hash->ngram; n++) hash->multiplier[n] = 2 * (uint64_t)draws[n] + 1;
}

plumb_status plumb__engram_hash_init(const plumb_model_config *config, int64_t engram_index,
                                     int32_t folded_pad, plumb_engram_hash *hash,
                                     plumb_error *err) {
    if (engram_index < 0 || engram_index >= config->engram_layers)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "engram index", -1,
                           plumb__format("%lld", (long long)engram_index).s, "below %lld",
                           (long long)config->engram_layers);
    if (folded_pad < 0 || folded_pad >= config->engram_folded_vocab)
        return plumb__fail(err, PLUMB_ERROR_CONFIG, NULL, "engram_pad_token_id", -1,
                           plumb__format("folded id %ld", (long)folded_pad).s, "0 to %lld",
                           (long long)config->engram_folded_vocab - 1);
    int64_t primes[PLUMB_MAX_ENGRAM_LAYERS * PLUMB_MAX_ENGRAM_COLUMNS];
    plumb__config_engram_primes(config, primes);

    plumb_engram_hash made = {.ngram = (int32_t)config->engram_ngram,
                              .heads = (int32_t)config->engram_heads,
                              .folded_pad = folded_pad};
    made.columns = (made.ngram - 1) * made.heads;
    draw_multipliers(config, config->engram_layer[engram_index], &made);
    int64_t rows = 0;
    for (int c = 0; c < made.columns; c++) {
        int64_t prime = primes[engram_index * made.columns + c];
        made.prime[c] = (uint64_t)prime;
        made.offset[c] = rows;
        rows += prime;
    }
    if (rows != config->engram_rows[engram_index])
        return plumb__fail(err, PLUMB_ERROR_CONFIG, NULL, "engram_num_embeddings", engram_index,
                           plumb__format("%lld", (long long)config->engram_rows[engram_index]).s,
                           "%lld, the sum of the layer's primes", (long long)rows);
    *hash = made;
    return PLUMB_OK;
}

void plumb__engram_hash_rows(const plumb_engram_hash *hash, const int32_t *history, int64_t *rows) {
    const int32_t *newest = history + hash->ngram - 1;
    bool dead = false;
    uint64_t joined = 0;
    for (int n = 0; n < hash->ngram; n++) {
        int32_t id = newest[-n];
        dead = dead || id < 0;
        if (dead) id = hash->folded_pad;
        joined ^= (uint64_t)id * hash->multiplier[n];
        if (n == 0) continue; /* the shortest n-gram has two ids */
        for (int head = 0; head < hash->heads; head++) {
            int c = (n - 1) * hash->heads + head;
            rows[c] = (int64_t)(joined % hash->prime[c]) + hash->offset[c];
        }
    }
}
