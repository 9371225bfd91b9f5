/* config.json: what loads, what is refused, and that each refusal names its field.  The configs in
 * tests/data/config are the release's published values and the oracle's own files. */
#include "fixture.h"
#include "format/model_config_fields.h"
#include "t.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

static char last_log[512];
static int log_count;

static void keep_log(void *user, plumb_log_level level, const char *line) {
    (void)user;
    (void)level;
    log_count++;
    (void)snprintf(last_log, sizeof last_log, "%s", line);
}

static json_t *load_json(const char *name) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/config/%s.json", TEST_DATA, name);
    size_t size;
    char *text = fixture_load(path, &size);
    json_t *root = json_loadb(text, size, 0, NULL);
    free(text);
    return root;
}

/* Parses the JSON value as config.json; reports what was logged in last_log. */
static plumb_status parse(const json_t *root, plumb_model_config *config, plumb_error *err) {
    char *text = json_dumps(root, 0);
    log_count = 0;
    last_log[0] = 0;
    plumb_status status =
        plumb__config_parse(text, strlen(text), "config.json", keep_log, NULL, config, err);
    free(text);
    return status;
}

/* The object that holds the last part of a dotted name, and that part in *key. */
static json_t *parent_of(json_t *root, const char *dotted, const char **key) {
    json_t *at = root;
    for (const char *dot; (dot = strchr(dotted, '.')); dotted = dot + 1) {
        char part[64];
        (void)snprintf(part, sizeof part, "%.*s", (int)(dot - dotted), dotted);
        at = json_object_get(at, part);
    }
    *key = dotted;
    return at;
}

/* `value` is JSON text; NULL removes the field. */
static void set(json_t *root, const char *dotted, const char *value) {
    const char *key;
    json_t *parent = parent_of(root, dotted, &key);
    if (value) json_object_set_new(parent, key, json_loads(value, JSON_DECODE_ANY, NULL));
    else json_object_del(parent, key);
}

static void name_of(const plumb_config_field *field, char name[160]) {
    const char *section = plumb__config_section_names[field->section];
    (void)snprintf(name, 160, "%s%s%s", section, *section ? "." : "", field->key);
}

/* ---- What loads ------------------------------------------------------------------------------ */

static void released(void) {
    plumb_model_config c;
    plumb_error err;
    json_t *root = load_json("released");
    T_CHECK(parse(root, &c, &err) == PLUMB_OK, "%s: %s", err.field, err.found);
    T_CHECK(log_count == 0, "%s", last_log);
    json_decref(root);
    T_TRUE(c.bos_id == 0 && c.eos_id == 1 && c.pad_id == 2 && c.image_id == 129264);
    T_TRUE(c.vocab == 129280 && c.hidden == 5120 && c.layers == 40 && c.draft_stages == 3);
    T_TRUE(c.heads == 64 && c.head_dim == 512 && c.rope_dim == 64 && c.q_rank == 1280);
    T_TRUE(c.o_rank == 1024 && c.o_groups == 8 && c.window == 128);
    T_TRUE(c.index_heads == 32 && c.index_dim == 128 && c.index_topk == 512);
    T_TRUE(c.candidate_source == 20 && c.candidate_blocks == 2048 && c.candidate_block_size == 8);
    T_TRUE(c.rope_theta == 10000 && c.compress_rope_theta == 160000);
    T_TRUE(c.yarn.factor == 16 && c.yarn.beta_fast == 32 && c.yarn.beta_slow == 1);
    T_TRUE(c.yarn.original_positions == 65536 && c.max_positions == 1048576);
    T_TRUE(c.inter == 2304 && c.experts == 384 && c.experts_per_token == 6);
    T_TRUE(c.route_scale == 1.5f && c.swiglu_limit == 10.0f && c.norm_eps == 1e-20f);
    T_TRUE(c.hc_eps == 1e-6f && c.sinkhorn_iterations == 20);
    T_TRUE(c.engram_layers == 2 && c.engram_layer[0] == 1 && c.engram_layer[1] == 14);
    T_TRUE(c.engram_rows[0] == 384006168 && c.engram_rows[1] == 384016682);
    T_TRUE(c.engram_ngram == 4 && c.engram_heads == 8 && c.engram_dim == 256);
    T_TRUE(c.engram_vocab == 16000000 && c.engram_folded_vocab == 99092 && c.engram_pad_id == 2);
    T_TRUE(plumb__config_engram_index(&c, 1) == 0 && plumb__config_engram_index(&c, 14) == 1);
    T_TRUE(plumb__config_engram_index(&c, 0) == -1);
    T_TRUE(c.draft_block == 5 && c.draft_noise_id == 128799 && c.draft_rank == 256);
    T_TRUE(c.draft_experts == 128 && c.draft_experts_per_token == 3 && c.draft_taps == 3);
    T_TRUE(c.draft_tap[0] == 37 && c.draft_tap[1] == 38 && c.draft_tap[2] == 39);
    T_TRUE(c.vision.layers == 32 && c.vision.hidden == 1024 && c.vision.heads == 16);
    T_TRUE(c.vision.intermediate == 2816 && c.vision.patch == 14 && c.vision.downsample == 3);
    T_TRUE(c.vision.max_tokens == 1024 && c.vision.min_pixels == 295936);
    T_TRUE(c.vision.rope_theta == 10000 && c.vision.max_wh_ratio == 0);
}

/* The layer schedule as model.md section 1.4 prints it. */
static void schedule(void) {
    static const struct {
        int first, last, ratio, kv, index;
    } rows[] = {{0, 1, 0, -1, -1},    {2, 7, 2, 2, 2},      {8, 13, 2, 8, 8},
                {14, 19, 2, 14, 14},  {20, 23, 1, 20, 20},  {24, 27, 1, 20, 24},
                {28, 31, 1, 20, 28},  {32, 35, 1, 20, 32},  {36, 39, 1, 20, 36},
                {40, 42, 0, -1, -1}};
    plumb_model_config c;
    plumb_error err;
    json_t *root = load_json("released");
    T_TRUE(parse(root, &c, &err) == PLUMB_OK);
    json_decref(root);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int layer = rows[i].first; layer <= rows[i].last; layer++) {
            T_CHECK(c.ratio[layer] == rows[i].ratio, "layer %d", layer);
            T_CHECK(c.kv_source[layer] == rows[i].kv, "layer %d", layer);
            T_CHECK(c.index_source[layer] == rows[i].index, "layer %d", layer);
            T_CHECK(c.is_kv_source[layer] == (rows[i].kv == layer), "layer %d", layer);
            T_CHECK(c.is_index_source[layer] == (rows[i].index == layer), "layer %d", layer);
        }
}

/* The moduli that model.md section 5.3 lists. */
static void engram_primes(void) {
    static const int ends[48] = { /* above 16000000 */
        57,  79,  81,  97,  121, 129, 133, 183, 189, 207, 211, 253, 277, 289, 307, 321,
        339, 381, 393, 399, 403, 409, 447, 463, 477, 487, 499, 507, 511, 573, 609, 627,
        667, 669, 693, 697, 711, 729, 759, 769, 781, 799, 813, 819, 841, 877, 879, 889};
    plumb_model_config c;
    plumb_error err;
    int64_t primes[48] = {0};
    json_t *root = load_json("released");
    T_TRUE(parse(root, &c, &err) == PLUMB_OK);
    json_decref(root);
    plumb__config_engram_primes(&c, primes);
    for (int i = 0; i < 48; i++)
        T_CHECK(primes[i] == 16000000 + ends[i], "%d: %lld", i, (long long)primes[i]);
}

static void others_load(void) {
    static const char *const names[] = {"config/tiny.json",   "config/deep40.json",
                                        "config/dspark.json", "config/vision.json",
                                        "config/small.json",  "../../data/demo-model/config.json"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[512];
        (void)snprintf(path, sizeof path, "%s/%s", TEST_DATA, names[i]);
        plumb_model_config c;
        plumb_error err = {0};
        log_count = 0;
        T_CHECK(plumb__config_load(path, keep_log, NULL, &c, &err) == PLUMB_OK, "%s: %s: %s", path,
                err.field, err.found);
        T_CHECK(log_count == 0, "%s: %s", path, last_log);
    }
}

static void accepted_variations(void) {
    static const struct {
        const char *field, *value, *logged;
    } cases[] = {
        {"text_config.engram_pad_id", "2", "engram"}, /* with the other name removed */
        {"text_config.use_cache", NULL, ""},
        {"text_config.attention_dropout", "0.1", ""},
        {"transformers_version", "[9]", ""},
        {"text_config.gate_temp", "1.0", ""},
        {"text_config.rope_theta", "10000.0", ""},
        {"text_config.swiglu_limit", "7", ""},
        {"text_config.max_position_embeddings", "128", ""}, /* as long as the window */
        {"text_config.candidate_source_layer_id", "-1", ""},
        {"vision_config.max_wh_ratio", "3.5", ""},
        {"vision_config.max_wh_ratio", NULL, ""},
        {"vision_config.num_hidden_layers", "0", ""},
        {"text_config.new_thing", "1", "text_config.new_thing"},
        {"quantization_config.x\\n", "1", "quantization_config.x"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *root = load_json("released");
        bool alias = i == 0;
        if (alias) set(root, "text_config.engram_pad_token_id", NULL);
        set(root, cases[i].field, cases[i].value);
        plumb_model_config c;
        plumb_error err = {0};
        T_CHECK(parse(root, &c, &err) == PLUMB_OK, "%s: %s", err.field, err.found);
        bool expected = *cases[i].logged && !alias;
        T_CHECK(log_count == expected, "%s: %d lines", cases[i].field, log_count);
        if (expected) T_CHECK(strstr(last_log, cases[i].logged) != NULL, "%s", last_log);
        if (alias) T_TRUE(c.engram_pad_id == 2);
        json_decref(root);
    }
}

/* However many keys are unknown, a few are named and the rest counted. */
static void many_unknown_keys(void) {
    static const struct {
        int keys, lines;
        const char *last;
    } cases[] = {{8, 8, "unknown key"}, {9, 9, ": 1 more unknown"}, {3000, 9, ": 2992 more"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *root = load_json("released");
        for (int key = 0; key < cases[i].keys; key++) {
            char name[64];
            (void)snprintf(name, sizeof name, "%skey%d", key % 2 ? "text_config." : "", key);
            set(root, name, "1");
        }
        plumb_model_config c;
        plumb_error err = {0};
        T_CHECK(parse(root, &c, &err) == PLUMB_OK, "%s: %s", err.field, err.found);
        T_CHECK(log_count == cases[i].lines, "%d keys: %d lines", cases[i].keys, log_count);
        T_CHECK(strstr(last_log, cases[i].last), "%s", last_log);
        json_decref(root);
    }
}

/* ---- Every field of the table ---------------------------------------------------------------- */

/* The released config with one field changed must be refused in that field's name. */
static void refused(const char *field, const char *value, const char *expected_field) {
    json_t *root = load_json("released");
    set(root, field, value);
    plumb_model_config c;
    plumb_error err = {0};
    plumb_status status = parse(root, &c, &err);
    char what[256];
    (void)snprintf(what, sizeof what, "%s = %s", field, value ? value : "absent");
    T_CHECK(status == PLUMB_ERROR_CONFIG, "%s", what);
    T_ERROR(&err, PLUMB_ERROR_CONFIG, "config.json", expected_field, what);
    T_CHECK(!strcmp(err.field, expected_field), "%s: %s", what, err.field);
    json_decref(root);
}

static bool may_be_absent(const plumb_config_field *field) {
    return field->kind == PLUMB_CONFIG_OPTIONAL || field->kind == PLUMB_CONFIG_UNUSED ||
           field->kind == PLUMB_CONFIG_IS_NUMBER_OR_ABSENT;
}

static void every_field_absent(void) {
    for (int i = 0; i < plumb__config_field_count; i++) {
        char name[160];
        name_of(&plumb__config_fields[i], name);
        if (!may_be_absent(&plumb__config_fields[i])) refused(name, NULL, name);
    }
}

static void every_field_of_wrong_type(void) {
    static const char *const values[] = {"{\"a\": 1}", "[[]]", "\"text\"", "null", "1e99", "-7"};
    for (int i = 0; i < plumb__config_field_count; i++) {
        const plumb_config_field *field = &plumb__config_fields[i];
        char name[160];
        name_of(field, name);
        for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
            bool fits = field->kind == PLUMB_CONFIG_UNUSED ||
                        (field->kind == PLUMB_CONFIG_OBJECT && values[v][0] == '{') ||
                        (field->kind == PLUMB_CONFIG_OPTIONAL && values[v][0] == 'n');
            /* An object that passes as a section is refused for what it lacks, elsewhere. */
            if (!fits) refused(name, values[v], name);
        }
    }
}

static void every_range(void) {
    for (int i = 0; i < plumb__config_field_count; i++) {
        const plumb_config_field *field = &plumb__config_fields[i];
        char name[160], value[64];
        name_of(field, name);
        switch (field->kind) {
        case PLUMB_CONFIG_INTEGER:
            (void)snprintf(value, sizeof value, "%.0f", field->low - (double)field->multiple);
            refused(name, value, name);
            (void)snprintf(value, sizeof value, "%.0f", field->high + (double)field->multiple);
            refused(name, value, name);
            (void)snprintf(value, sizeof value, "%.1f", field->low);
            refused(name, value, name);
            (void)snprintf(value, sizeof value, "%.0f", field->low + 1);
            if (field->multiple > 1) refused(name, value, name);
            break;
        case PLUMB_CONFIG_DOUBLE:
        case PLUMB_CONFIG_FLOAT:
        case PLUMB_CONFIG_OPTIONAL:
            (void)snprintf(value, sizeof value, "%.17g", field->low / 2);
            refused(name, value, name);
            (void)snprintf(value, sizeof value, "%.17g", field->high * 2);
            refused(name, value, name);
            break;
        case PLUMB_CONFIG_INTEGERS:
            (void)snprintf(value, sizeof value, "[%.0f]", field->low - 1);
            refused(name, value, name);
            (void)snprintf(value, sizeof value, "[%.0f]", field->high + 1);
            refused(name, value, name);
            refused(name, "[1, 2.5]", name);
            break;
        case PLUMB_CONFIG_IS_NUMBER:
        case PLUMB_CONFIG_IS_NUMBER_OR_ABSENT: refused(name, "2", name); break;
        case PLUMB_CONFIG_IS_TRUE: refused(name, "false", name); break;
        case PLUMB_CONFIG_IS_FALSE: refused(name, "true", name); break;
        case PLUMB_CONFIG_IS_TEXTS: refused(name, "[\"Other\"]", name); break;
        case PLUMB_CONFIG_IS_NUMBERS:
            refused(name, "[32, 128]", name);
            refused(name, "[32]", name);
            break;
        case PLUMB_CONFIG_IS_TEXT:
        case PLUMB_CONFIG_OBJECT:
        case PLUMB_CONFIG_UNUSED: break;
        }
    }
}

static void lists_have_limits(void) {
    char list[8192] = "[0";
    for (int i = 1; i <= PLUMB_MAX_LAYERS; i++) strcat(list, ", 0");
    strcat(list, "]");
    for (int i = 0; i < plumb__config_field_count; i++) {
        char name[160];
        name_of(&plumb__config_fields[i], name);
        if (plumb__config_fields[i].kind == PLUMB_CONFIG_INTEGERS) refused(name, list, name);
    }
}

/* ---- Rules between fields -------------------------------------------------------------------- */

#define T "text_config."
static void rules(void) {
    static const struct {
        const char *field, *value, *refused; /* NULL: the same field */
    } cases[] = {
        {"bos_token_id", "129280", NULL},
        {"eos_token_id", "129280", NULL},
        {"pad_token_id", "129280", NULL},
        {"image_token_id", "129280", NULL},
        {T "engram_pad_token_id", "129280", NULL},
        {T "dspark_noise_token_id", "129280", NULL},
        {T "engram_compressed_vocab_size", "129281", NULL},
        {T "engram_pad_id", "2", T "engram_pad_token_id"}, /* both names at once */
        {T "num_nextn_predict_layers", "217", NULL},
        {T "qk_rope_head_dim", "512", NULL},
        {T "index_head_dim", "32", NULL},
        {T "o_groups", "7", NULL},
        {T "o_lora_rank", "1", NULL},
        {T "max_position_embeddings", "127", T "sliding_window"},
        {T "num_experts_per_tok", "385", NULL},
        {T "compress_ratios", "[0, 0]", NULL},
        {T "num_hidden_layers", "41", T "compress_ratios"},
        {T "kv_source_layer_ids", "[2, 8, 14, 40]", NULL},
        {T "kv_source_layer_ids", "[2, 14, 8, 20]", NULL},
        {T "kv_source_layer_ids", "[2, 2, 8, 14, 20]", NULL},
        {T "kv_source_layer_ids", "[1, 2, 8, 14, 20]", NULL},       /* ratio 0 */
        {T "kv_source_layer_ids", "[8, 14, 20]", T "compress_ratios"}, /* layer 2 has none */
        {T "kv_source_layer_ids", "[2, 8, 14]", T "compress_ratios"},  /* layer 20 finds ratio 2 */
        {T "kv_source_layer_ids", "[]", T "compress_ratios"},
        {T "kv_source_layer_ids", "[2, 3, 8, 14, 20]", T "index_source_layer_ids"},
        {T "index_source_layer_ids", "[0, 2, 8, 14, 20, 24, 28, 32, 36]", NULL},
        {T "index_source_layer_ids", "[2, 8, 14, 20, 36, 24]", NULL},
        {T "index_source_layer_ids", "[2, 8, 14, 24]", NULL},
        {T "candidate_source_layer_id", "21", NULL},
        {T "candidate_source_layer_id", "40", NULL},
        {T "candidate_source_layer_id", "14", NULL}, /* later index sources read another cache */
        {T "candidate_topk_blocks", "64", NULL},     /* 63 * 8 + 1 = 505 < 512 */
        {T "rope_scaling.beta_fast", "1", NULL},
        {T "rope_scaling.beta_fast", "20000", NULL},             /* corner below 0 */
        {T "rope_scaling.original_max_position_embeddings", "2", T "rope_scaling.beta_fast"},
        {T "compress_rope_theta", "100", T "rope_scaling.beta_slow"}, /* corner above 63 */
        {T "engram_layer_ids", "[14, 1]", NULL},
        {T "engram_layer_ids", "[1, 40]", NULL},
        {T "engram_layer_ids", "[1]", T "engram_num_embeddings"},
        {T "engram_num_embeddings", "[384006168, 384016683]", NULL},
        {T "engram_vocab_size", "16000058", T "engram_num_embeddings"},
        {T "engram_n_heads", "64", NULL},
        {T "dspark_target_layer_ids", "[37, 38, 40]", NULL},
        {T "dspark_target_layer_ids", "[38, 37]", NULL},
        {T "dspark_target_layer_ids", "[]", NULL},
        {T "dspark_block_size", "0", NULL},
        {T "dspark_markov_rank", "0", NULL},
        {T "dspark_n_routed_experts", "0", NULL},
        {T "dspark_num_experts_per_tok", "0", NULL},
        {T "dspark_num_experts_per_tok", "129", NULL},
        {"vision_config.num_attention_heads", "3", NULL},
        {"vision_config.num_attention_heads", "512", NULL}, /* head_dim 2 */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refused(cases[i].field, cases[i].value,
                cases[i].refused ? cases[i].refused : cases[i].field);
    /* The largest index_topk that 65 blocks allow is 64 * 8 + 1. */
    json_t *root = load_json("released");
    set(root, T "candidate_topk_blocks", "65");
    plumb_model_config c;
    set(root, T "index_topk", "513");
    T_TRUE(parse(root, &c, NULL) == PLUMB_OK);
    set(root, T "index_topk", "514");
    T_TRUE(parse(root, &c, NULL) == PLUMB_ERROR_CONFIG);
    json_decref(root);
}

static void draft_stage_with_ratio(void) {
    json_t *root = load_json("released");
    json_t *ratios = json_object_get(json_object_get(root, "text_config"), "compress_ratios");
    json_array_set_new(ratios, 42, json_integer(1));
    plumb_model_config c;
    plumb_error err = {0};
    T_TRUE(parse(root, &c, &err) == PLUMB_ERROR_CONFIG);
    T_ERROR(&err, PLUMB_ERROR_CONFIG, "config.json", "compress_ratios", "ratio of a stage");
    T_CHECK(err.offset == 42, "%lld", (long long)err.offset);
    json_decref(root);
}

/* A corner exactly at 25, where floor and ceiling hang on the last bit of a logarithm. */
static void yarn_corner_at_integer(void) {
    const double beta = 65536 / 6.283185307179586 / pow(160000, 2 * 25.0 / 64);
    const struct {
        double beta;
        plumb_status status;
    } cases[] = {{beta, PLUMB_ERROR_CONFIG},
                 {beta * (1 + 1e-11), PLUMB_ERROR_CONFIG},
                 {beta * (1 + 1e-8), PLUMB_OK}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *root = load_json("released");
        char value[64];
        (void)snprintf(value, sizeof value, "%.17g", cases[i].beta);
        set(root, T "rope_scaling.beta_slow", value);
        plumb_model_config c;
        plumb_error err = {0};
        T_CHECK(parse(root, &c, &err) == cases[i].status, "%s", value);
        if (cases[i].status) T_ERROR(&err, PLUMB_ERROR_CONFIG, "config.json", "beta_slow", value);
        json_decref(root);
    }
}

/* ---- Damaged files --------------------------------------------------------------------------- */

static void damaged_text(void) {
    size_t size;
    char *text = fixture_load(TEST_DATA "/config/small.json", &size);
    plumb_model_config c;
    for (size_t n = 0; n + 1 < size; n++) { /* the last byte is a newline */
        plumb_error err = {0};
        T_TRUE(plumb__config_parse(text, n, "config.json", NULL, NULL, &c, &err) != PLUMB_OK);
        T_ERROR(&err, PLUMB_ERROR_FORMAT, "config.json", "JSON", "truncated");
        T_TRUE(err.offset >= 0 && err.offset <= (int64_t)n);
    }
    free(text);
    static const char *const texts[] = {
        "[]", "null", "{} {}", "{\"dtype\": \"bfloat16\", \"dtype\": \"bfloat16\"}", "\xFF\xFE",
        "{\"a\": 99999999999999999999}", "{\"a\": 1e999}", "\xEF\xBB\xBF{}", "{'a': 1}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        plumb_error err = {0};
        T_TRUE(plumb__config_parse(texts[i], strlen(texts[i]), "config.json", NULL, NULL, &c,
                                    &err) != PLUMB_OK);
        T_ERROR(&err, PLUMB_ERROR_FORMAT, "config.json", "JSON", texts[i]);
    }
    static const struct {
        const char *text, *found;
    } faults[] = {{"", "nothing"},
                  {" \n\t", "nothing"},
                  {"\xEF\xBB\xBF{}", "a byte order mark"},
                  {"\xFF\xFE{", "a byte order mark"},
                  {"\xFE\xFF", "a byte order mark"},
                  {"{'a': 1}", "faulty JSON ("}};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        plumb_error err = {0};
        T_TRUE(plumb__config_parse(faults[i].text, strlen(faults[i].text), "config.json", NULL,
                                    NULL, &c, &err) == PLUMB_ERROR_FORMAT);
        T_CHECK(!strncmp(err.found, faults[i].found, strlen(faults[i].found)), "%zu: %s", i,
                err.found);
        T_CHECK(!strncmp(err.expected, "one JSON object", 15), "%zu: %s", i, err.expected);
    }
    T_CHECK(plumb__config_parse("{", 1, "config.json", NULL, NULL, &c, NULL) != PLUMB_OK,
            "no error struct");
}

static void unreadable_files(void) {
    plumb_model_config c;
    plumb_error err = {0};
    T_TRUE(plumb__config_load(TEST_DATA "/config", NULL, NULL, &c, &err) == PLUMB_ERROR_IO);
    T_ERROR(&err, PLUMB_ERROR_IO, "config", "open", "a folder");
    T_TRUE(plumb__config_load(TEST_DATA "/none.json", NULL, NULL, &c, &err) == PLUMB_ERROR_IO);
    T_ERROR(&err, PLUMB_ERROR_IO, "none.json", "open", "absent");
    char folder[256], path[512];
    fixture_folder("config", folder);
    static char large[(4 << 20) + 1];
    memset(large, ' ', sizeof large);
    fixture_write(folder, "config.json", large, sizeof large);
    (void)snprintf(path, sizeof path, "%s/config.json", folder);
    T_TRUE(plumb__config_load(path, NULL, NULL, &c, &err) == PLUMB_ERROR_FORMAT);
    T_ERROR(&err, PLUMB_ERROR_FORMAT, "config.json", "file size", "too large");
}

T_MAIN({"released", released}, {"schedule", schedule}, {"engram_primes", engram_primes},
       {"others_load", others_load}, {"accepted_variations", accepted_variations},
       {"many_unknown_keys", many_unknown_keys},
       {"every_field_absent", every_field_absent},
       {"every_field_of_wrong_type", every_field_of_wrong_type}, {"every_range", every_range},
       {"lists_have_limits", lists_have_limits}, {"rules", rules},
       {"draft_stage_with_ratio", draft_stage_with_ratio},
       {"yarn_corner_at_integer", yarn_corner_at_integer}, {"damaged_text", damaged_text},
       {"unreadable_files", unreadable_files})
