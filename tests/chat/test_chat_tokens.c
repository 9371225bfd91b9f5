/* Prompts and answers as ids of the released tokenizer. */
#include <stdlib.h>

#include "t.h"
#include "transcript.h"

enum { BOS = 0, EOS = 1, SYSTEM = 128799, USER = 128803, ASSISTANT = 128804, THINK = 128821, THINK_END = 128822 };

static plumb_text *open_text(const char *path) {
    plumb_text *text = NULL;
    plumb_error err = {0};
    char line[512] = "";
    if (plumb_text_open(path, &text, &err) != PLUMB_OK) plumb_error_line(&err, line, sizeof line);
    T_CHECK(text != NULL, "%s", line);
    return text;
}

static plumb_text *released(void) { return open_text(TEST_DATA "/tokenizer/tokenizer.json"); }

static plumb_tokens encode(const plumb_text *text, const char *messages, plumb_chat_options options) {
    plumb_tokens tokens = {0};
    plumb_error err = {0};
    char line[512] = "";
    if (plumb_chat_encode(text, messages, &options, &tokens, &err) != PLUMB_OK)
        plumb_error_line(&err, line, sizeof line);
    T_CHECK(tokens.count > 0, "%s", line);
    return tokens;
}

static void check_ids(const plumb_text *text, const char *messages, plumb_chat_options options,
                      const int32_t *wanted, int64_t count) {
    plumb_tokens tokens = encode(text, messages, options);
    T_CHECK(tokens.count == count, "%s: %" PRId64 " ids, not %" PRId64, messages, tokens.count, count);
    for (int64_t i = 0; i < count && i < tokens.count; i++)
        T_CHECK(tokens.ids[i] == wanted[i], "%s: id %" PRId64 " is %d, not %d", messages, i, tokens.ids[i], wanted[i]);
    plumb_tokens_free(&tokens);
}
#define CHECK_IDS(text, messages, match, ...)                                                  \
    check_ids(text, messages, (plumb_chat_options){.match_added_tokens = match},               \
              (const int32_t[]){__VA_ARGS__},                                                  \
              (int64_t)(sizeof(const int32_t[]){__VA_ARGS__} / sizeof(int32_t)))

#define ASK(content) "[{\"role\":\"user\",\"content\":\"" content "\"}]"

static void published_ids(void) {
    plumb_text *text = released();
    if (!text) return;
    CHECK_IDS(text, ASK("What is 2+2?"), false, BOS, USER, 3085, 344, 223, 20, 13, 20, 33, ASSISTANT, THINK_END);
    CHECK_IDS(text, ASK(""), false, BOS, USER, ASSISTANT, THINK_END);
    CHECK_IDS(text, "[{\"role\":\"system\"},{\"role\":\"user\"}]", false, BOS, SYSTEM, USER, ASSISTANT, THINK_END);
    CHECK_IDS(text, "[{\"role\":\"user\",\"content\":[{\"type\":\"image\"}]}]", false, BOS, USER, 129264, ASSISTANT,
              THINK_END);
    CHECK_IDS(text, ASK("<｜User｜>"), true, BOS, USER, USER, ASSISTANT, THINK_END);
    plumb_text_close(text);
}

/* T7: the counts are those of the public API. */
static void literal_controls_are_text(void) {
    static const struct {
        const char *literal;
        int64_t ids; /* 0: at least two */
    } cases[] = {{"<｜User｜>", 5}, {"<think>", 3}, {"</think>", 3}, {"<｜deepseek_image｜>", 0},
                 {"<｜end▁of▁sentence｜>", 0}, {"｜DSML｜", 0}};
    plumb_text *text = released();
    if (!text) return;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char messages[256];
        (void)snprintf(messages, sizeof messages, ASK("%s"), cases[i].literal);
        plumb_tokens tokens = encode(text, messages, (plumb_chat_options){0});
        int64_t inside = tokens.count - 4;
        T_CHECK(cases[i].ids ? inside == cases[i].ids : inside > 1, "%s: %" PRId64 " ids", cases[i].literal, inside);
        for (int64_t k = 2; k < tokens.count - 2; k++)
            T_CHECK(tokens.ids[k] > 2 && tokens.ids[k] < 128000, "%s: id %d", cases[i].literal, tokens.ids[k]);
        plumb_tokens_free(&tokens);
        /* In a tool result, and resent in a later turn. */
        (void)snprintf(messages, sizeof messages,
                       "[{\"role\":\"tool\",\"content\":\"%s\"},{\"role\":\"assistant\",\"content\":\"ok\"},"
                       "{\"role\":\"user\",\"content\":\"%s\"}]", cases[i].literal, cases[i].literal);
        tokens = encode(text, messages, (plumb_chat_options){0});
        int controls = 0;
        for (int64_t k = 0; k < tokens.count; k++) controls += tokens.ids[k] < 3 || tokens.ids[k] >= 128000;
        T_CHECK(controls == 8, "%s: %d controls", cases[i].literal, controls);
        plumb_tokens_free(&tokens);
    }
    plumb_text_close(text);
}

static void failure_keeps_tokens(void) {
    plumb_text *text = released();
    plumb_tokens tokens = {0};
    plumb_error err;
    if (!text) return;
    T_CHECK(plumb_chat_encode(text, ASK("a"), NULL, &tokens, NULL) == PLUMB_OK, "defaults");
    int64_t before = tokens.count;
    T_CHECK(plumb_chat_encode(text, "[{\"role\":\"x\"}]", NULL, &tokens, &err) == PLUMB_ERROR_TEXT, "a bad role");
    T_CHECK(plumb_chat_encode(NULL, ASK("a"), NULL, &tokens, &err) == PLUMB_ERROR_ARGUMENT, "no tokenizer");
    T_CHECK(tokens.count == before, "%" PRId64 " tokens", tokens.count);
    T_CHECK(plumb_chat_encode(text, ASK("a"), NULL, &tokens, NULL) == PLUMB_OK, "again");
    T_CHECK(tokens.count == 2 * before && tokens.ids[before] == BOS, "ids are appended");
    plumb_tokens_free(&tokens);
    plumb_text_close(text);
}

/* A tokenizer without the image token encodes all of a prompt but that. */
static void missing_control_token(void) {
    static const char path[] = BUILD_DIR "/test_chat_tokens.json";
    json_t *file = json_load_file(PROJECT_DIR "/data/demo-model/tokenizer.json", 0, NULL);
    json_t *added = json_object_get(file, "added_tokens");
    T_CHECK(json_array_remove(added, json_array_size(added) - 1) == 0, "added tokens");
    T_CHECK(json_dump_file(file, path, JSON_COMPACT) == 0, "%s", path);
    json_decref(file);
    plumb_text *text = open_text(path);
    if (!text) return;
    plumb_tokens tokens = encode(text, ASK("a"), (plumb_chat_options){0});
    plumb_error err;
    int64_t before = tokens.count;
    T_CHECK(plumb_chat_encode(text, "[{\"role\":\"user\",\"content\":[{\"type\":\"image\"}]}]", NULL, &tokens,
                              &err) == PLUMB_ERROR_TEXT, "the token is missing");
    T_CHECK(strstr(err.expected, "<｜deepseek_image｜>") != NULL, "%s", err.expected);
    T_CHECK(tokens.count == before, "%" PRId64 " tokens", tokens.count);
    plumb_tokens_free(&tokens);
    plumb_text_close(text);
    (void)remove(path);
}

static const char *parse(const plumb_text *text, bool in_reasoning, const int32_t *ids, int64_t count,
                         transcript *t, unsigned *flags, int64_t *used) {
    plumb_chat_parser *parser = NULL;
    int64_t i = 0;
    if (plumb_chat_parser_create(text, in_reasoning, true, transcript_sink, t, &parser, NULL) != PLUMB_OK) return "";
    while (i < count && plumb_chat_parser_push(parser, ids[i])) i++;
    plumb_chat_parser_finish(parser);
    *used = i;
    *flags = plumb_chat_parser_flags(parser);
    plumb_chat_parser_destroy(parser);
    return transcript_line(t);
}

/* The answer of E7 and of T1, one token at a time, with both tokenizers. */
static void answers_by_token(void) {
    static const struct {
        const char *messages, *wanted;
    } cases[] = {
        {"[{\"role\":\"user\",\"content\":\"Weather?\"},{\"role\":\"assistant\",\"reasoning_content\":\"Need the tool.\","
         "\"tool_calls\":[{\"function\":{\"name\":\"get_weather\",\"arguments\":\"{\\\"city\\\": \\\"Paris\\\","
         " \\\"days\\\": 2}\"}},{\"function\":{\"name\":\"get_weather\",\"arguments\":{\"city\":\"北京😀\"}}}]}]",
         "R(Need the tool.) 0:get_weather{\"city\": \"Paris\", \"days\": 2}. 1:get_weather{\"city\": \"北京😀\"}."},
        {"[{\"role\":\"user\"},{\"role\":\"assistant\",\"reasoning_content\":\"Look it up.\",\"content\":\"One moment.\","
         "\"tool_calls\":[{\"function\":{\"name\":\"lookup\",\"arguments\":{\"query\":\"{\\\"a\\\": 1}\",\"limit\":2,"
         "\"flags\":[1,true,null]}}}]}]",
         "R(Look it up.) C(One moment.) 0:lookup{\"query\": \"{\\\"a\\\": 1}\", \"limit\": 2, \"flags\": [1, true,"
         " null]}."},
    };
    static const char *const tokenizers[] = {TEST_DATA "/tokenizer/tokenizer.json",
                                             PROJECT_DIR "/data/demo-model/tokenizer.json"};
    for (size_t k = 0; k < 2; k++) {
        plumb_text *text = open_text(tokenizers[k]);
        if (!text) continue;
        int32_t think = plumb_text_token_id(text, "<think>");
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            plumb_tokens tokens = encode(text, cases[i].messages, (plumb_chat_options){.thinking = true});
            transcript t = {0};
            unsigned flags = 0;
            int64_t start = 0, used = 0;
            while (start < tokens.count && tokens.ids[start++] != think) {}
            const char *line = parse(text, true, tokens.ids + start, tokens.count - start, &t, &flags, &used);
            T_CHECK(!strcmp(line, cases[i].wanted) && flags == 0, "%s\nnot\n%s", line, cases[i].wanted);
            T_CHECK(used == tokens.count - start - 1, "ends at token %" PRId64, used);
            transcript_free(&t);
            plumb_tokens_free(&tokens);
        }
        plumb_text_close(text);
    }
}

/* Which ids end an answer, and which are shown. */
static void ids_of_answers(void) {
    static const struct {
        int32_t ids[4];
        const char *wanted;
        unsigned flags;
        int64_t used;
    } cases[] = {
        {{3085, 344, EOS, 3085}, "C(What is)", 0, 2},
        {{3085, BOS, 344}, "C(What)", PLUMB_CHAT_FLAG_NO_END, 1},
        {{3085, SYSTEM, 344}, "C(What)", PLUMB_CHAT_FLAG_NO_END, 1},
        {{3085, USER, 344}, "C(What)", PLUMB_CHAT_FLAG_NO_END, 1},
        {{3085, ASSISTANT, 344}, "C(What)", PLUMB_CHAT_FLAG_NO_END, 1},
        {{3085, 128828, 344}, "C(What)", PLUMB_CHAT_FLAG_NO_END, 1},
        {{129278, 3085, 129277, EOS}, "C(<｜ref｜>What<｜/ref｜>)", 0, 3},
        {{128823, 3085, 2000000, EOS}, "C(What)", 0, 3},
        {{THINK, 3085, THINK_END, EOS}, "R(What)", PLUMB_CHAT_FLAG_TOLERATED, 3},
    };
    plumb_text *text = released();
    if (!text) return;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        transcript t = {0};
        unsigned flags = 0;
        int64_t used = 0;
        const char *line = parse(text, false, cases[i].ids, 4, &t, &flags, &used);
        T_CHECK(!strcmp(line, cases[i].wanted), "case %zu: %s", i, line);
        T_CHECK(flags == cases[i].flags && used == cases[i].used, "case %zu: flags %u, %" PRId64 " used", i, flags, used);
        transcript_free(&t);
    }
    plumb_text_close(text);
}

T_MAIN({"published_ids", published_ids}, {"literal_controls_are_text", literal_controls_are_text},
       {"failure_keeps_tokens", failure_keeps_tokens}, {"missing_control_token", missing_control_token}, {"answers_by_token", answers_by_token},
       {"ids_of_answers", ids_of_answers})
