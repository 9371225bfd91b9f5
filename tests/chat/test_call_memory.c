/* History that comes back with its tool calls spelt differently: the prompt holds what was sampled,
 * so that only what follows is new to the session.
 *
 * The sampled turn is written by hand, in tokens that no encoder would choose: extra white space in an
 * argument, a word cut into two tokens.  Whether it was used shows in the ids. */
#include <stdlib.h>

#include "t.h"
#include "transcript.h"

#define D "｜DSML｜"
#define SYSTEM_TOOLS \
    "{\"role\":\"system\",\"content\":\"S\",\"tools\":[{\"function\":{\"name\":\"lookup\"}}]},"
#define QUESTION "{\"role\":\"user\",\"content\":\"Weather?\"}"
#define RESULT ",{\"role\":\"tool\",\"tool_call_id\":\"call_7\",\"content\":\"rain\"}"
#define CALL(id, arguments) \
    "{\"id\":\"" id "\",\"function\":{\"name\":\"lookup\",\"arguments\":" arguments "}}"
#define ANSWER(reasoning, content, calls) \
    "{\"role\":\"assistant\"," reasoning "\"content\":" content ",\"tool_calls\":[" calls "]}"
#define THOUGHT "\"reasoning_content\":\"Look it up.\","
#define ARGUMENTS "\"{\\\"city\\\": \\\"Paris\\\", \\\"grid\\\": {\\\"b\\\": 1.0, \\\"a\\\": [1, 2]}}\""
#define GIVEN ANSWER(THOUGHT, "\"One moment.\"", CALL("call_7", ARGUMENTS))

static plumb_text *text;

static void set_up(void) {
    plumb_error err = {0};
    if (!text && plumb_text_open(PROJECT_DIR "/data/demo-model/tokenizer.json", &text, &err) != PLUMB_OK)
        T_CHECK(false, "%s", err.file);
}

static void append(plumb_tokens *tokens, const char *bytes) {
    T_CHECK(plumb_text_encode(text, bytes, strlen(bytes), true, tokens, NULL) == PLUMB_OK, "%s", bytes);
}

/* The turn as the model might write it, without the token that ended it. */
static plumb_tokens sampled(bool thinking) {
    plumb_tokens tokens = {0};
    if (thinking) append(&tokens, "Look it up.</think>");
    append(&tokens, "One mo");
    append(&tokens, "ment.\n\n<" D " calls>\n<" D " invoke name=\"lookup\">\n"
                    "<" D " parameter name=\"city\" string=\"true\">Paris</" D " parameter>\n"
                    "<" D " parameter name=\"grid\" string=\"false\">{\"b\":  1.0,\"a\":[1,2]}</" D " parameter>\n"
                    "</" D " invoke>\n</" D " calls>");
    return tokens;
}

static plumb_call_memory *new_memory(int64_t most_bytes) {
    plumb_call_memory *memory = NULL;
    T_CHECK(plumb_call_memory_create(plumb_text_vocab_size(text), most_bytes, &memory, NULL) == PLUMB_OK, "create");
    return memory;
}

static void add(plumb_call_memory *memory, const char *message, bool thinking) {
    plumb_tokens tokens = sampled(thinking);
    plumb_error err = {0};
    T_CHECK(plumb_call_memory_add(memory, message, thinking, tokens.ids, tokens.count, &err) == PLUMB_OK,
            "%s: %s", err.field, err.found);
    plumb_tokens_free(&tokens);
}

static plumb_tokens encode(const char *messages, plumb_chat_options options) {
    plumb_tokens tokens = {0};
    plumb_error err = {0};
    T_CHECK(plumb_chat_encode(text, messages, &options, &tokens, &err) == PLUMB_OK, "%s: %s", err.field, err.found);
    return tokens;
}

static int64_t shared(const plumb_tokens *a, const plumb_tokens *b) {
    int64_t n = 0;
    while (n < a->count && n < b->count && a->ids[n] == b->ids[n]) n++;
    return n;
}

/* The prompt and the sampled turn after it: what a session holds when the history comes back. */
static plumb_tokens held(bool thinking) {
    plumb_tokens tokens = encode("[" SYSTEM_TOOLS QUESTION "]", (plumb_chat_options){.thinking = thinking});
    plumb_tokens turn = sampled(thinking);
    int64_t total = tokens.count + turn.count;
    int32_t *grown = realloc(tokens.ids, (size_t)total * sizeof *grown);
    memcpy(grown + tokens.count, turn.ids, (size_t)turn.count * sizeof *grown);
    plumb_tokens_free(&turn);
    return (plumb_tokens){.ids = grown, .count = total, .capacity = total};
}

/* The turn gives what the client was told: the parser agrees with GIVEN. */
static void the_turn_is_the_message(void) {
    plumb_chat_parser *parser = NULL;
    transcript t = {0};
    set_up();
    plumb_tokens tokens = sampled(true);
    T_CHECK(plumb_chat_parser_create(text, true, true, transcript_sink, &t, &parser, NULL) == PLUMB_OK, "parser");
    for (int64_t i = 0; i < tokens.count; i++) (void)plumb_chat_parser_push(parser, tokens.ids[i]);
    plumb_chat_parser_finish(parser);
    const char *line = transcript_line(&t);
    T_CHECK(!strcmp(line, "R(Look it up.) C(One moment.) 0:lookup{\"city\": \"Paris\", "
                          "\"grid\": {\"b\":  1.0,\"a\":[1,2]}}."), "%s", line);
    plumb_chat_parser_destroy(parser);
    transcript_free(&t);
    plumb_tokens_free(&tokens);
}

/* What comes back, and whether the sampled tokens stand for it.  Remembered: GIVEN, and the same as an
 * answer without thinking. */
static void what_is_recognised(void) {
    static const struct {
        const char *name, *answer;
        bool used;
    } cases[] = {
        {"as it was given", GIVEN, true},
        {"keys reordered, white space, an object instead of its text",
         ANSWER(THOUGHT, "\"One moment.\"",
                CALL("call_7", "{\"grid\":{\"a\":[1,2],\"b\":1.0},\"city\":\"Paris\"}")), true},
        {"white space and escapes in the text",
         ANSWER(THOUGHT, "\"One moment.\"",
                CALL("call_7", "\"{ \\\"grid\\\":{\\\"a\\\":[1,\\n2],\\\"b\\\":1e0},\\\"city\\\":\\\"P\\\\u0061ris\\\"}\"")),
         true},
        {"encoded twice",
         ANSWER(THOUGHT, "\"One moment.\"",
                CALL("call_7", "\"\\\"{\\\\\\\"grid\\\\\\\":{\\\\\\\"a\\\\\\\":[1,2],\\\\\\\"b\\\\\\\":1.0},"
                               "\\\\\\\"city\\\\\\\":\\\\\\\"Paris\\\\\\\"}\\\"\"")), true},
        {"reasoning left out", ANSWER("", "\"One moment.\"", CALL("call_7", ARGUMENTS)), true},
        {"empty reasoning", ANSWER("\"reasoning_content\":\"\",", "\"One moment.\"", CALL("call_7", ARGUMENTS)), true},
        {"content as a block", ANSWER(THOUGHT, "[{\"type\":\"text\",\"text\":\"One moment.\"}]",
                                      CALL("call_7", ARGUMENTS)), true},
        {"other reasoning", ANSWER("\"reasoning_content\":\"No.\",", "\"One moment.\"", CALL("call_7", ARGUMENTS)), false},
        {"another id", ANSWER(THOUGHT, "\"One moment.\"", CALL("call_8", ARGUMENTS)), false},
        {"no id", ANSWER(THOUGHT, "\"One moment.\"", "{\"function\":{\"name\":\"lookup\",\"arguments\":" ARGUMENTS "}}"),
         false},
        {"another function", ANSWER(THOUGHT, "\"One moment.\"",
                                    "{\"id\":\"call_7\",\"function\":{\"name\":\"look\",\"arguments\":" ARGUMENTS "}}"), false},
        {"an edited argument", ANSWER(THOUGHT, "\"One moment.\"",
                                      CALL("call_7", "{\"city\":\"Rome\",\"grid\":{\"a\":[1,2],\"b\":1.0}}")), false},
        {"an argument more", ANSWER(THOUGHT, "\"One moment.\"",
                                    CALL("call_7", "{\"city\":\"Paris\",\"grid\":{\"a\":[1,2],\"b\":1.0},\"x\":0}")), false},
        {"elements reordered", ANSWER(THOUGHT, "\"One moment.\"",
                                      CALL("call_7", "{\"city\":\"Paris\",\"grid\":{\"a\":[2,1],\"b\":1.0}}")), false},
        {"an integer instead of a float", ANSWER(THOUGHT, "\"One moment.\"",
                                                 CALL("call_7", "{\"city\":\"Paris\",\"grid\":{\"a\":[1,2],\"b\":1}}")), false},
        {"a string instead of an object",
         ANSWER(THOUGHT, "\"One moment.\"",
                CALL("call_7", "{\"city\":\"Paris\",\"grid\":\"{\\\"b\\\": 1.0, \\\"a\\\": [1, 2]}\"}")), false},
        {"other content", ANSWER(THOUGHT, "\"One moment!\"", CALL("call_7", ARGUMENTS)), false},
        {"no content", ANSWER(THOUGHT, "null", CALL("call_7", ARGUMENTS)), false},
        {"a call more", ANSWER(THOUGHT, "\"One moment.\"", CALL("call_7", ARGUMENTS) "," CALL("call_8", ARGUMENTS)), false},
        {"the call twice", ANSWER(THOUGHT, "\"One moment.\"", CALL("call_7", ARGUMENTS) "," CALL("call_7", ARGUMENTS)), false},
        {"no calls", "{\"role\":\"assistant\"," THOUGHT "\"content\":\"One moment.\"}", false},
    };
    set_up();
    plumb_call_memory *memory = new_memory(0);
    add(memory, GIVEN, true);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char messages[2048];
        (void)snprintf(messages, sizeof messages, "[" SYSTEM_TOOLS QUESTION ",%s" RESULT "]", cases[i].answer);
        plumb_tokens before = held(true);
        plumb_tokens plain = encode(messages, (plumb_chat_options){.thinking = true});
        plumb_tokens with = encode(messages, (plumb_chat_options){.thinking = true, .calls = memory});
        T_CHECK(shared(&before, &plain) < before.count, "%s: the canonical form would do", cases[i].name);
        if (cases[i].used)
            T_CHECK(shared(&before, &with) == before.count && with.count > before.count &&
                        with.ids[before.count] == plumb_text_token_id(text, "<｜end▁of▁sentence｜>"),
                    "%s: only %" PRId64 " of %" PRId64 " shared", cases[i].name, shared(&before, &with), before.count);
        else
            T_CHECK(with.count == plain.count && shared(&with, &plain) == plain.count, "%s: not canonical", cases[i].name);
        plumb_tokens_free(&before);
        plumb_tokens_free(&plain);
        plumb_tokens_free(&with);
    }
    plumb_call_memory_destroy(memory);
}

/* Reasoning is part of the tokens, so they serve only where reasoning stands in the prompt, and the
 * tokens of an answer without it only where it does not. */
static void only_where_reasoning_is_as_it_was(void) {
    static const char later[] = "[" QUESTION "," GIVEN RESULT ",{\"role\":\"assistant\",\"content\":\"Rain.\"},"
                                "{\"role\":\"user\",\"content\":\"And?\"}]";
    static const char tools[] = "[" SYSTEM_TOOLS QUESTION "," GIVEN RESULT "]";
    static const char unfinished[] = "[" QUESTION ",{\"role\":\"assistant\",\"wo_eos\":true,"
                                     "\"content\":\"One moment.\",\"tool_calls\":[" CALL("call_7", ARGUMENTS) "]}]";
    static const struct {
        const char *name, *messages;
        plumb_chat_options options;
        bool thought; /* when it was sampled */
        bool used;
    } cases[] = {
        {"dropped", later, {.thinking = true}, true, false},
        {"dropped, sampled without", later, {.thinking = true}, false, true},
        {"kept by option", later, {.thinking = true, .keep_reasoning = true}, true, true},
        {"kept by option, sampled without", later, {.thinking = true, .keep_reasoning = true}, false, false},
        {"kept by tools", tools, {.thinking = true}, true, true},
        {"chat mode", tools, {.thinking = false}, true, false},
        {"chat mode, sampled in it", tools, {.thinking = false}, false, true},
        {"an answer to go on with", unfinished, {.thinking = false}, false, true},
    };
    set_up();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        plumb_call_memory *memory = new_memory(0);
        add(memory, GIVEN, cases[i].thought);
        plumb_chat_options options = cases[i].options;
        plumb_tokens plain = encode(cases[i].messages, options);
        options.calls = memory;
        plumb_tokens with = encode(cases[i].messages, options);
        bool same = plain.count == with.count && shared(&plain, &with) == plain.count;
        T_CHECK(same != cases[i].used, "%s", cases[i].name);
        if (i + 1 == sizeof cases / sizeof cases[0]) {
            plumb_tokens turn = sampled(false);
            T_CHECK(with.count > turn.count && !memcmp(with.ids + with.count - turn.count, turn.ids,
                                                       (size_t)turn.count * sizeof *turn.ids), "no end behind it");
            plumb_tokens_free(&turn);
        }
        plumb_tokens_free(&plain);
        plumb_tokens_free(&with);
        plumb_call_memory_destroy(memory);
    }
}

/* The newest of equal turns; of two that differ in reasoning, the one that was sent. */
static void equal_turns(void) {
    static const char bare[] = "[" SYSTEM_TOOLS QUESTION "," ANSWER("", "\"\"", CALL("c", "{}")) "]";
    static const char first[] =
        "[" SYSTEM_TOOLS QUESTION "," ANSWER("\"reasoning_content\":\"1\",", "\"\"", CALL("c", "{}")) "]";
    const int32_t one[] = {300, 301}, two[] = {302, 303};
    set_up();
    plumb_call_memory *memory = new_memory(0);
    T_CHECK(plumb_call_memory_add(memory, ANSWER("\"reasoning_content\":\"1\",", "null", CALL("c", "{}")), true, one, 2,
                                  NULL) == PLUMB_OK, "first");
    T_CHECK(plumb_call_memory_add(memory, ANSWER("\"reasoning_content\":\"2\",", "null", CALL("c", "{}")), true, two, 2,
                                  NULL) == PLUMB_OK, "second");
    plumb_tokens newest = encode(bare, (plumb_chat_options){.thinking = true, .calls = memory});
    plumb_tokens named = encode(first, (plumb_chat_options){.thinking = true, .calls = memory});
    T_CHECK(newest.count > 3 && newest.ids[newest.count - 3] == 302, "the newest");
    T_CHECK(named.count > 3 && named.ids[named.count - 3] == 300, "the one with that reasoning");
    plumb_tokens_free(&newest);
    plumb_tokens_free(&named);
    plumb_call_memory_destroy(memory);
}

static void refusals(void) {
    static const struct {
        const char *message;
        plumb_status status;
        const char *field;
    } cases[] = {
        {"{", PLUMB_ERROR_TEXT, "messages"},
        {"{\"role\":\"user\"}", PLUMB_ERROR_TEXT, "message"},
        {"{\"role\":\"assistant\",\"content\":\"a\"}", PLUMB_ERROR_TEXT, "message"},
        {GIVEN "," GIVEN, PLUMB_ERROR_TEXT, "message"},
        {ANSWER("", "\"\"", "{\"function\":{\"name\":\"f\",\"arguments\":{}}}"), PLUMB_ERROR_TEXT, "message.tool_calls"},
        {ANSWER("", "\"\"", CALL("", "{}")), PLUMB_ERROR_TEXT, "message.tool_calls"},
        {ANSWER("", "\"\"", "{\"id\":1,\"function\":{\"name\":\"f\",\"arguments\":{}}}"), PLUMB_ERROR_TEXT,
         "messages.tool_calls[0].id"},
    };
    const int32_t good[] = {5}, low[] = {5, -1}, high[] = {5, 4096};
    plumb_error err;
    set_up();
    plumb_call_memory *memory = new_memory(0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        plumb_status status = plumb_call_memory_add(memory, cases[i].message, true, good, 1, &err);
        T_CHECK(status == cases[i].status && !strcmp(err.field, cases[i].field), "%s: %s", cases[i].message, err.field);
    }
    T_CHECK(plumb_call_memory_add(memory, GIVEN, true, low, 2, &err) == PLUMB_ERROR_ARGUMENT && err.offset == 1, "-1");
    T_CHECK(plumb_call_memory_add(memory, GIVEN, true, high, 2, &err) == PLUMB_ERROR_ARGUMENT && err.offset == 1, "4096");
    T_CHECK(plumb_call_memory_add(memory, GIVEN, true, good, 0, &err) == PLUMB_ERROR_ARGUMENT, "no tokens");
    T_CHECK(plumb_call_memory_turns(memory) == 0, "nothing was kept");
    plumb_call_memory_destroy(memory);
    T_CHECK(plumb_call_memory_create(0, 0, &memory, &err) == PLUMB_ERROR_ARGUMENT, "no vocabulary");
}

/* Thousands of turns in little memory: the oldest are gone, the newest are there. */
static void bounded(void) {
    enum { TURNS = 4096, LIMIT = 256 << 10 };
    char message[256], messages[512];
    set_up();
    plumb_call_memory *memory = new_memory(LIMIT);
    for (int32_t i = 0; i < TURNS; i++) {
        (void)snprintf(message, sizeof message, ANSWER("", "\"\"", CALL("c%d", "{}")), (int)i);
        const int32_t tokens[] = {300 + i % 1000, 7};
        T_CHECK(plumb_call_memory_add(memory, message, false, tokens, 2, NULL) == PLUMB_OK, "%d", (int)i);
    }
    int64_t kept = plumb_call_memory_turns(memory);
    T_CHECK(kept > 100 && kept < TURNS, "%" PRId64 " turns", kept);
    for (int32_t i = 0; i < TURNS; i++) {
        (void)snprintf(messages, sizeof messages, "[" QUESTION "," ANSWER("", "\"\"", CALL("c%d", "{}")) "]", (int)i);
        plumb_tokens tokens = encode(messages, (plumb_chat_options){.calls = memory});
        bool used = tokens.count > 3 && tokens.ids[tokens.count - 3] == 300 + i % 1000 &&
                    tokens.ids[tokens.count - 2] == 7;
        T_CHECK(used == (i >= TURNS - kept), "turn %d", (int)i);
        plumb_tokens_free(&tokens);
    }
    plumb_call_memory_destroy(memory);
    memory = new_memory(64);
    add(memory, GIVEN, true);
    T_CHECK(plumb_call_memory_turns(memory) == 0, "larger than the memory");
    plumb_call_memory_destroy(memory);
}

/* Arguments nested as deep as can be read survive being written. */
static void written_and_read(void) {
    enum { DEEP = 500 };
    static char deep[3 * DEEP + 512];
    set_up();
    plumb_call_memory *memory = new_memory(0), *copy = new_memory(0);
    size_t n = (size_t)snprintf(deep, sizeof deep, "{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"d\",\"function\":"
                                                   "{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":");
    for (int i = 0; i < DEEP; i++) deep[n++] = '[';
    for (int i = 0; i < DEEP; i++) deep[n++] = ']';
    (void)snprintf(deep + n, sizeof deep - n, "}\"}}]}");
    add(memory, deep, false);
    add(memory, GIVEN, true);
    char *bytes = NULL, *again = NULL;
    size_t size = 0, again_size = 0;
    plumb_error err = {0};
    T_CHECK(plumb_call_memory_write(memory, &bytes, &size, &err) == PLUMB_OK, "write");
    T_CHECK(plumb_call_memory_read(copy, bytes, size, &err) == PLUMB_OK, "%s: %s", err.field, err.found);
    T_CHECK(plumb_call_memory_turns(copy) == 2, "%" PRId64 " turns", plumb_call_memory_turns(copy));
    T_CHECK(plumb_call_memory_write(copy, &again, &again_size, &err) == PLUMB_OK, "write again");
    T_CHECK(again_size == size && !memcmp(bytes, again, size), "the same bytes");
    plumb_tokens before = held(true);
    plumb_tokens with = encode("[" SYSTEM_TOOLS QUESTION "," ANSWER("", "\"One moment.\"", CALL("call_7", ARGUMENTS)) RESULT "]",
                               (plumb_chat_options){.thinking = true, .calls = copy});
    T_CHECK(shared(&before, &with) == before.count, "used after reading");
    plumb_tokens_free(&before);
    plumb_tokens_free(&with);
    /* Cut anywhere it is refused, and nothing of it is kept; the last byte is a line feed. */
    plumb_call_memory *empty = new_memory(0);
    for (size_t cut = 0; cut + 1 < size; cut++)
        T_CHECK(plumb_call_memory_read(empty, bytes, cut, &err) == PLUMB_ERROR_TEXT &&
                    plumb_call_memory_turns(empty) == 0, "cut at %zu", cut);
    char *token = strstr(bytes, "\"tokens\": [");
    if (token) memcpy(token + 11, "99999,", 6);
    T_CHECK(plumb_call_memory_read(empty, bytes, size, &err) != PLUMB_OK && plumb_call_memory_turns(empty) == 0,
            "a token beyond the vocabulary");
    free(bytes);
    free(again);
    plumb_call_memory_destroy(empty);
    plumb_call_memory_destroy(copy);
    plumb_call_memory_destroy(memory);
}

/* ---- With a session ------------------------------------------------------------------------------- */

#define BACK "[" SYSTEM_TOOLS QUESTION "," ANSWER("", "\"One moment.\"", \
    CALL("call_7", "{\"grid\":{\"a\":[1,2],\"b\":1.0},\"city\":\"Paris\"}")) RESULT "]"

static void must(plumb_status status, const plumb_error *err, const char *what) {
    if (status == PLUMB_OK) return;
    fprintf(stderr, "%s: %s: %s\n", what, err->field, err->found);
    exit(1);
}

static plumb_session *session_of(plumb_model *model) {
    plumb_session *session = NULL;
    plumb_error err;
    must(plumb_session_create(model, NULL, &session, &err), &err, "session");
    return session;
}

/* Brings the session to the tokens, which must give a fresh session's bits. */
static plumb_sync_report go_on(plumb_model *model, plumb_session *session, const plumb_tokens *tokens) {
    plumb_session *fresh = session_of(model);
    const float *logits = NULL, *wanted = NULL;
    plumb_sync_report report;
    plumb_error err;
    must(plumb_session_sync(session, tokens->ids, tokens->count, &logits, &report, &err), &err, "sync");
    must(plumb_session_eval(fresh, tokens->ids, tokens->count, &wanted, &err), &err, "eval");
    T_CHECK(!memcmp(logits, wanted, (size_t)plumb_text_vocab_size(text) * sizeof *logits), "other bits");
    plumb_session_destroy(fresh);
    return report;
}

/* The session holds prompt and sampled turn; of the history only what is new is evaluated, here and, with
 * the memory as the note of a snapshot, in a later process. */
static void only_the_suffix_is_evaluated(void) {
    static const char path[] = BUILD_DIR "/test_call_memory.snapshot";
    plumb_model *model = NULL;
    plumb_error err;
    set_up();
    must(plumb_model_open(PROJECT_DIR "/data/demo-model", NULL, &model, &err), &err, "model");
    plumb_call_memory *memory = new_memory(0), *later_memory = new_memory(0);
    add(memory, GIVEN, true);
    plumb_tokens before = held(true);
    plumb_session *session = session_of(model);
    must(plumb_session_eval(session, before.ids, before.count, NULL, &err), &err, "turn 1");
    plumb_snapshot_extra extra = {.resume_points = true};
    char *note = NULL;
    size_t size = 0;
    must(plumb_call_memory_write(memory, &note, &size, &err), &err, "write");
    extra.note = note;
    extra.note_bytes = (int64_t)size;
    must(plumb_session_save(session, path, &extra, &err), &err, "save");
    free(note);

    plumb_tokens with = encode(BACK, (plumb_chat_options){.thinking = true, .calls = memory});
    plumb_sync_report report = go_on(model, session, &with);
    T_CHECK(report.cached == before.count && report.evaluated == with.count - before.count && report.replayed == 0,
            "%" PRId64 " of %" PRId64 " cached", report.cached, before.count);

    plumb_snapshot *snapshot = NULL;
    plumb_session *later = session_of(model);
    must(plumb_snapshot_open(path, &snapshot, &err), &err, "open");
    const char *kept = plumb_snapshot_note(snapshot, &extra.note_bytes);
    must(plumb_call_memory_read(later_memory, kept, (size_t)extra.note_bytes, &err), &err, "read");
    must(plumb_session_restore(later, snapshot, &err), &err, "restore");
    plumb_snapshot_close(snapshot);
    plumb_tokens again = encode(BACK, (plumb_chat_options){.thinking = true, .calls = later_memory});
    T_CHECK(again.count == with.count && shared(&again, &with) == with.count, "the same prompt");
    report = go_on(model, later, &again);
    T_CHECK(report.cached == before.count && report.evaluated == with.count - before.count, "after a restart: %" PRId64,
            report.cached);

    /* Ids that nobody remembers: the canonical form, of which less is known. */
    plumb_tokens plain = encode(BACK, (plumb_chat_options){.thinking = true});
    int64_t known = shared(&plain, &before);
    must(plumb_session_rewind(later, before.count, &err), &err, "rewind");
    report = go_on(model, later, &plain);
    T_CHECK(known < before.count && report.cached == known && report.evaluated == plain.count - known,
            "%" PRId64 " of %" PRId64, report.cached, known);
    plumb_tokens_free(&plain);
    plumb_tokens_free(&again);
    plumb_tokens_free(&with);
    plumb_tokens_free(&before);
    plumb_session_destroy(later);
    plumb_session_destroy(session);
    plumb_call_memory_destroy(later_memory);
    plumb_call_memory_destroy(memory);
    plumb_model_close(model);
    (void)remove(path);
}

T_MAIN({"the_turn_is_the_message", the_turn_is_the_message}, {"what_is_recognised", what_is_recognised},
       {"only_where_reasoning_is_as_it_was", only_where_reasoning_is_as_it_was}, {"equal_turns", equal_turns},
       {"refusals", refusals}, {"bounded", bounded}, {"written_and_read", written_and_read},
       {"only_the_suffix_is_evaluated", only_the_suffix_is_evaluated})
