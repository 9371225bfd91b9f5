/* Engram rows against the published code's own numbers: numpy's generator, the released primes,
 * offsets and multipliers, and hashes with dead tokens (oracle/units), and the page's vectors. */
#include "model/engram_hash.h"

#include "goldens.h"
#include "model/numpy_integers.h"
#include "t.h"

/* The released shape; the vocabulary sizes of the test models with `folded`. */
static plumb_model_config config_of(int64_t folded, int64_t layers, int64_t first, int64_t second) {
    plumb_model_config config = {.engram_layers = layers,
                                 .engram_layer = {first, second},
                                 .engram_rows = {384006168, 384016682},
                                 .engram_ngram = 4,
                                 .engram_heads = 8,
                                 .engram_vocab = 16000000,
                                 .engram_folded_vocab = folded};
    return config;
}

static plumb_engram_hash hash_of(const plumb_model_config *config, int64_t index, int32_t pad) {
    plumb_engram_hash hash = {0};
    plumb_error err = {0};
    plumb_status status = plumb__engram_hash_init(config, index, pad, &hash, &err);
    T_CHECK(status == PLUMB_OK, "%s: %s", err.field, err.expected);
    return hash;
}

static void integers_are_numpys(void) {
    /* numpy.random.default_rng(seed).integers(0, bound, count), numpy 1.24.2.  Bounds up to 2^32
     * take 32-bit draws; 3 * 2^30 + 1 and the bounds near 2^62 are redrawn often. */
    static const struct {
        uint32_t seed;
        int64_t bound;
        int count;
        int64_t draws[8];
    } cases[] = {
        {10007, INT64_C(46539438283891), 4,
         {INT64_C(38316048023122), INT64_C(2419938046656), INT64_C(17979836159674),
          INT64_C(36993668729195)}},
        {7, INT64_C(100), 6, {94, 62, 68, 89, 57, 77}},
        {7, INT64_C(2147483648), 3, {2029167941, 1342382292, 1469265226}},
        {7, INT64_C(4294967295), 3, {INT64_C(4058335882), INT64_C(2684764584), INT64_C(2938530452)}},
        {7, INT64_C(4294967296), 3, {INT64_C(4058335883), INT64_C(2684764585), INT64_C(2938530453)}},
        {7, INT64_C(4294967297), 4,
         {INT64_C(2684764586), INT64_C(3853503933), INT64_C(3331544672), INT64_C(967257516)}},
        {7, INT64_C(4611686018427400249), 6,
         {INT64_C(2882744023523094727), INT64_C(4137668341471495657), INT64_C(3577218852397966272),
          INT64_C(1038584849328936108), INT64_C(1384272659328393930), INT64_C(3787247614991051089)}},
        {7, INT64_C(9223372036854775807), 4,
         {INT64_C(5765488047046174020), INT64_C(8275336682942969161), INT64_C(7154437704795913392),
          INT64_C(2077169698657866656)}},
        {123, INT64_C(3221225473), 8,
         {49737561, INT64_C(2198009203), 1910018522, 173369636, INT64_C(2928373745), 709828834,
          593903172, 1074653344}},
        {4294967295, INT64_C(6917529027641081857), 5,
         {INT64_C(1742826945278730011), INT64_C(1515394004777638656), INT64_C(4281821127836922344),
          INT64_C(6467974665005737909), INT64_C(2047358098223804035)}},
        {0, INT64_C(1000), 4, {850, 636, 511, 269}},
        {9, INT64_C(1), 3, {0, 0, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t draws[8];
        plumb__numpy_integers(cases[i].seed, cases[i].bound, cases[i].count, draws);
        for (int k = 0; k < cases[i].count; k++)
            T_CHECK(draws[k] == cases[i].draws[k], "case %zu draw %d: %" PRId64, i, k, draws[k]);
    }
}

static void multipliers_are_the_published(void) {
    static const struct {
        const char *golden;
        int64_t folded, layers;
    } cases[] = {{"engram.multipliers", 99092, 2},
                 {"engram.multipliers.small694", 694, 2},
                 {"engram.multipliers.one350", 350, 1}};
    goldens *g = goldens_open("oracle/units.safetensors");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        golden expected = goldens_get(g, cases[i].golden, "I64");
        plumb_model_config config = config_of(cases[i].folded, 2, 1, 14);
        T_CHECK(expected.count == 4 * cases[i].layers, "%s", cases[i].golden);
        for (int64_t layer = 0; layer < cases[i].layers; layer++) {
            plumb_engram_hash hash = hash_of(&config, layer, 2);
            for (int n = 0; n < 4; n++)
                T_CHECK(hash.multiplier[n] == (uint64_t)expected.i64[4 * layer + n],
                        "%s layer %" PRId64 " n %d: %" PRIu64, cases[i].golden, layer, n,
                        hash.multiplier[n]);
        }
    }
    goldens_close(g);
}

static void primes_and_offsets_are_the_released(void) {
    goldens *g = goldens_open("oracle/units.safetensors");
    golden primes = goldens_get(g, "engram.primes", "I64");
    golden offsets = goldens_get(g, "engram.offsets", "I64");
    plumb_model_config config = config_of(99092, 2, 1, 14);
    for (int layer = 0; layer < 2; layer++) {
        plumb_engram_hash hash = hash_of(&config, layer, 2);
        T_CHECK(hash.columns == 24, "%d", hash.columns);
        for (int c = 0; c < 24; c++) {
            T_CHECK(hash.prime[c] == (uint64_t)primes.i64[24 * layer + c], "%d %d", layer, c);
            T_CHECK(hash.offset[c] == offsets.i64[24 * layer + c], "%d %d", layer, c);
        }
    }
    goldens_close(g);
}

/* The folded history of position p, newest last. */
static void history_of(const int32_t *folded, int64_t p, int32_t history[4]) {
    for (int i = 0; i < 4; i++) history[3 - i] = p - i < 0 ? PLUMB_ENGRAM_DEAD : folded[p - i];
}

static void hashes_are_the_published(void) {
    goldens *g = goldens_open("oracle/units.safetensors");
    golden ids = goldens_get(g, "engram.ids", "I32");
    golden live = goldens_get(g, "engram.live", "U8");
    golden map = goldens_get(g, "engram.token_map", "I32");
    golden expected = goldens_get(g, "engram.hash", "I64"); /* (position, layer, column) */
    int32_t folded[64];
    for (int64_t p = 0; p < ids.count; p++)
        folded[p] = live.u8[p] ? map.i32[ids.i32[p]] : PLUMB_ENGRAM_DEAD;
    plumb_model_config config = config_of(99092, 2, 1, 14);
    for (int layer = 0; layer < 2; layer++) {
        plumb_engram_hash hash = hash_of(&config, layer, map.i32[2]);
        for (int64_t p = 0; p < ids.count; p++) {
            int32_t history[4];
            int64_t rows[24];
            history_of(folded, p, history);
            plumb__engram_hash_rows(&hash, history, rows);
            for (int c = 0; c < 24; c++)
                T_CHECK(rows[c] == expected.i64[(2 * p + layer) * 24 + c],
                        "position %" PRId64 " layer %d column %d: %" PRId64, p, layer, c, rows[c]);
        }
    }
    goldens_close(g);
}

/* The printed vectors of model.md section 5.4; a history of pads where dead. */
static void hashes_are_the_printed(void) {
    static const struct {
        int layer;
        int32_t history[4];
        int count;
        int64_t rows[24];
    } cases[] = {
        {0, {40, 30, 20, 10}, 24,
         {10250667,  16051853,  42761335,  48437066,  64953759,  91793642,  97213675,  124972355,
          130904169, 147647512, 174479789, 176217609, 193213014, 209711443, 226459680, 248375762,
          266647502, 284737834, 292200621, 319934002, 327756510, 339491046, 365830131, 381142068}},
        {1, {40, 30, 20, 10}, 24,
         {13402985,  31185432,  33324312,  50751051,  67464774,  94528317,  100959033, 120176944,
          128818944, 152218109, 160998468, 191796781, 195587060, 214176773, 229162919, 250160180,
          260141385, 283855289, 300526134, 319101158, 333879786, 349356468, 360884307, 370522085}},
        {0, {2, 2, 2, 0}, 4, {5702652, 24393184, 39183301, 61503783}},
        {0, {-1, -1, -1, 0}, 4, {5702652, 24393184, 39183301, 61503783}},
        {0, {40, 30, -1, 0}, 4, {5702652, 24393184, 39183301, 61503783}},
    };
    plumb_model_config config = config_of(99092, 2, 1, 14);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        plumb_engram_hash hash = hash_of(&config, cases[i].layer, 2);
        int64_t rows[24];
        plumb__engram_hash_rows(&hash, cases[i].history, rows);
        for (int c = 0; c < cases[i].count; c++)
            T_CHECK(rows[c] == cases[i].rows[c], "case %zu column %d: %" PRId64, i, c, rows[c]);
    }
}

static void a_dead_position_hashes_pads(void) {
    plumb_model_config config = config_of(99092, 2, 1, 14);
    plumb_engram_hash hash = hash_of(&config, 0, 2);
    static const int32_t dead[4] = {40, 30, 20, -1}, pads[4] = {2, 2, 2, 2};
    int64_t a[24], b[24];
    plumb__engram_hash_rows(&hash, dead, a);
    plumb__engram_hash_rows(&hash, pads, b);
    T_CHECK(!memcmp(a, b, sizeof a), "rows of a dead position");
}

static void refusals_name_the_field(void) {
    static const struct {
        int64_t index;
        int32_t pad;
        int64_t more_rows; /* than the primes' sum, in the second table */
        plumb_status status;
        const char *field;
    } cases[] = {
        {2, 2, 0, PLUMB_ERROR_ARGUMENT, "engram index"},
        {-1, 2, 0, PLUMB_ERROR_ARGUMENT, "engram index"},
        {0, 99092, 0, PLUMB_ERROR_CONFIG, "engram_pad_token_id"},
        {0, -1, 0, PLUMB_ERROR_CONFIG, "engram_pad_token_id"},
        {1, 2, 1, PLUMB_ERROR_CONFIG, "engram_num_embeddings"},
        {0, 2, 1, PLUMB_OK, ""},
        {1, 99091, 0, PLUMB_OK, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        plumb_engram_hash hash;
        plumb_error err = {0};
        plumb_model_config config = config_of(99092, 2, 1, 14);
        config.engram_rows[1] += cases[i].more_rows;
        plumb_status status =
            plumb__engram_hash_init(&config, cases[i].index, cases[i].pad, &hash, &err);
        T_CHECK(status == cases[i].status && !strcmp(err.field, cases[i].field), "case %zu: %s %s", i,
                plumb_status_name(status), err.field);
    }
}

T_MAIN({"integers_are_numpys", integers_are_numpys},
       {"multipliers_are_the_published", multipliers_are_the_published},
       {"primes_and_offsets_are_the_released", primes_and_offsets_are_the_released},
       {"hashes_are_the_published", hashes_are_the_published},
       {"hashes_are_the_printed", hashes_are_the_printed},
       {"a_dead_position_hashes_pads", a_dead_position_hashes_pads},
       {"refusals_name_the_field", refusals_name_the_field})
