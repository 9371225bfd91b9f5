/* What the tests of src/text share: handles, a random source, text of many scripts. */
#ifndef PLUMB_TESTS_TEXT_TEXT_TEST_H
#define PLUMB_TESTS_TEXT_TEXT_TEST_H

#include <jansson.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "t.h"
#include "text/tokenizer.h"

#define RELEASE_TOKENIZER TEST_DATA "/tokenizer/tokenizer.json"
#define DEMO_MODEL PROJECT_DIR "/data/demo-model"

/* Opens a tokenizer that must open. */
static inline plumb_text *open_text(const char *path) {
    plumb_text *text = NULL;
    plumb_error err;
    char line[1024] = "";
    plumb_status status = plumb_text_open(path, &text, &err);
    if (status != PLUMB_OK) plumb_error_line(&err, line, sizeof line);
    T_CHECK(status == PLUMB_OK, "%s", line);
    return text;
}

/* Opens a changed tokenizer.json, which must open.  Takes `file`. */
static inline plumb_text *open_json(json_t *file) {
    char *bytes = json_dumps(file, 0);
    plumb_text *text = NULL;
    plumb_error err = {0};
    T_CHECK(plumb__text_open_bytes("changed", bytes, strlen(bytes), &text, &err) == PLUMB_OK,
            "%s: %s", err.field, err.found);
    free(bytes);
    json_decref(file);
    return text;
}

/* splitmix64 */
static inline uint64_t random_next(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static inline uint32_t random_below(uint64_t *state, uint32_t bound) {
    return (uint32_t)((random_next(state) >> 32) * bound >> 32);
}

/* Ranges of code points with something for every class of the pre-tokenizer. */
static const uint32_t script_ranges[][2] = {
    {0x20, 0x20},     {'a', 'z'},         {'A', 'Z'},         {'0', '9'},         {0x21, 0x2F},
    {0x3A, 0x40},     {0x09, 0x0D},       {'\n', '\n'},       {'\r', '\r'},       {0x00, 0x1F},
    {0x7F, 0xBF},     {0xC0, 0x17F},      {0x300, 0x36F},     {0x370, 0x3FF},     {0x400, 0x45F},
    {0x5D0, 0x5EA},   {0x620, 0x669},     {0x900, 0x97F},     {0xE00, 0xE5B},     {0x1100, 0x11FF},
    {0x1680, 0x1680}, {0x180E, 0x180E},   {0x2000, 0x206F},   {0x20D0, 0x20F0},   {0x2150, 0x218B},
    {0x2190, 0x22FF}, {0x2600, 0x26FF},   {0x3000, 0x303F},   {0x3040, 0x30FF},   {0x4E00, 0x9FA5},
    {0x9FA6, 0x9FFF}, {0xAC00, 0xD7A3},   {0xE000, 0xE010},   {0xFE00, 0xFE0F},   {0xFF00, 0xFFEF},
    {0xFFFD, 0xFFFD}, {0x10000, 0x100FA}, {0x1D400, 0x1D7FF}, {0x1F300, 0x1FAFF},
};
#define N_SCRIPT_RANGES ((uint32_t)(sizeof script_ranges / sizeof script_ranges[0]))

/* Runs of one to twelve characters, each of one range.  `text` has room for size + 64 bytes. */
static inline size_t random_text(uint64_t *state, char *text, size_t size) {
    size_t n = 0;
    while (n < size) {
        const uint32_t *range = script_ranges[random_below(state, N_SCRIPT_RANGES)];
        uint32_t run =
            random_below(state, 3) ? 1 + random_below(state, 3) : 1 + random_below(state, 12);
        for (uint32_t i = 0; i < run; i++)
            n += plumb__utf8_write(text + n,
                                   range[0] + random_below(state, range[1] - range[0] + 1));
    }
    return n;
}

/* The bytes of the tokens, one behind the other; *size of them.  Free with free(). */
static inline char *bytes_of(const plumb_text *text, const plumb_tokens *tokens, size_t *size) {
    *size = 0;
    for (int64_t i = 0; i < tokens->count; i++)
        *size += plumb__token(&text->vocabulary, tokens->ids[i]).size;
    char *bytes = malloc(*size + 1);
    size_t at = 0;
    for (int64_t i = 0; bytes && i < tokens->count; i++) {
        plumb__slice token = plumb__token(&text->vocabulary, tokens->ids[i]);
        memcpy(bytes + at, token.bytes, token.size);
        at += token.size;
    }
    return bytes;
}

static inline bool same_tokens(const plumb_tokens *a, const plumb_tokens *b) {
    return a->count == b->count &&
           (a->count == 0 || memcmp(a->ids, b->ids, (size_t)a->count * sizeof *a->ids) == 0);
}

#endif
