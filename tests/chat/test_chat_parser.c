/* The answer parser without a tokenizer.  An answer is spelled as text in which
 *      {D} {T} {/T} {E} {S} {H}
 * stand for the tokens DSML, <think>, </think>, EOS, a stop, a hidden one.  Each answer is parsed whole
 * and in chunks of several sizes, and must give the same transcript and flags every time. */
#include <stdlib.h>

#include "t.h"
#include "text/chat_encode.h"
#include "text/chat_parser.h"
#include "transcript.h"

enum {
    F_REASONING = PLUMB_CHAT_FLAG_CALL_IN_REASONING,
    F_AFTER = PLUMB_CHAT_FLAG_TEXT_AFTER_CALLS,
    F_JSON = PLUMB_CHAT_FLAG_INVALID_JSON,
    F_KEY = PLUMB_CHAT_FLAG_DUPLICATE_KEY,
    F_CUT = PLUMB_CHAT_FLAG_INCOMPLETE_CALL,
    F_TOLERATED = PLUMB_CHAT_FLAG_TOLERATED,
    F_NO_END = PLUMB_CHAT_FLAG_NO_END
};

/* The control piece spelled at `at`, and the length of its spelling; 0: none. */
static size_t control_at(const char *at, plumb__piece_kind *kind) {
    static const struct {
        const char *spelling;
        plumb__piece_kind kind;
    } controls[] = {{"{D}", PLUMB__PIECE_DSML},       {"{T}", PLUMB__PIECE_THINK},
                    {"{/T}", PLUMB__PIECE_THINK_END}, {"{E}", PLUMB__PIECE_EOS},
                    {"{S}", PLUMB__PIECE_STOP},       {"{H}", PLUMB__PIECE_HIDDEN}};
    for (size_t i = 0; i < sizeof controls / sizeof controls[0]; i++) {
        size_t length = strlen(controls[i].spelling);
        if (strncmp(at, controls[i].spelling, length) != 0) continue;
        *kind = controls[i].kind;
        return length;
    }
    return 0;
}

/* Pushes `answer` with its text in pieces of at most `chunk` bytes. */
static void push_answer(plumb_chat_parser *parser, const char *answer, size_t chunk) {
    while (*answer) {
        plumb__piece_kind kind = PLUMB__PIECE_TEXT, next;
        size_t length = control_at(answer, &kind), used = length;
        if (!length)
            for (used = 0; used < chunk && answer[used] && !control_at(answer + used, &next);) used++;
        (void)plumb__chat_parser_push_piece(parser, kind, answer, used);
        answer += used;
    }
}

typedef struct answer_case {
    const char *name;
    bool in_reasoning;
    const char *answer, *wanted;
    unsigned flags;
} answer_case;

static const size_t chunk_sizes[] = {1, 2, 3, 5, 7, 11, 23, 1000, SIZE_MAX};

static void check_answer(const answer_case *c, bool tools_offered) {
    for (size_t i = 0; i < sizeof chunk_sizes / sizeof chunk_sizes[0]; i++) {
        transcript t = {0};
        plumb_chat_parser *parser = NULL;
        if (plumb__chat_parser_create_bare(c->in_reasoning, tools_offered, transcript_sink, &t, &parser,
                                           NULL) != PLUMB_OK)
            return;
        push_answer(parser, c->answer, chunk_sizes[i]);
        plumb_chat_parser_finish(parser);
        const char *line = transcript_line(&t);
        unsigned flags = plumb_chat_parser_flags(parser);
        T_CHECK(!strcmp(line, c->wanted), "%s, chunks of %zu:\n%s\nnot\n%s", c->name, chunk_sizes[i], line,
                c->wanted);
        T_CHECK(flags == c->flags, "%s: flags %u, not %u", c->name, flags, c->flags);
        plumb_chat_parser_destroy(parser);
        transcript_free(&t);
    }
}

static void check_answers(const answer_case *cases, size_t count) {
    for (size_t i = 0; i < count; i++) check_answer(&cases[i], true);
}
#define CHECK_ANSWERS(cases) check_answers(cases, sizeof cases / sizeof cases[0])

#define CALLS "\n\n<{D} calls>\n"
#define END "\n</{D} calls>"
#define INVOKE(name, inside) "<{D} invoke name=\"" name "\">\n" inside "\n</{D} invoke>"
#define PARAM(key, type, value) "<{D} parameter name=\"" key "\" string=\"" type "\">" value "</{D} parameter>"

static void regular_answers(void) {
    static const answer_case cases[] = {
        {"plain", false, "Hello 北京 <b>!{E}", "C(Hello 北京 <b>!)", 0},
        {"empty", false, "{E}", "", 0},
        {"reasoning", true, "Easy.\n{/T}4\n\n{E}", "R(Easy.\n) C(4\n\n)", 0},
        {"empty reasoning", true, "{/T}4{E}", "C(4)", 0},
        {"two calls (E7)", true,
         "Need the tool.{/T}" CALLS
         INVOKE("get_weather", PARAM("city", "true", "Paris") "\n" PARAM("days", "false", "2")) "\n"
         INVOKE("get_weather", PARAM("city", "true", "北京")) END "{E}",
         "R(Need the tool.) 0:get_weather{\"city\": \"Paris\", \"days\": 2}."
         " 1:get_weather{\"city\": \"北京\"}.", 0},
        {"T1", true,
         "Look it up.{/T}One moment." CALLS
         INVOKE("lookup", PARAM("query", "true", "{\"a\": 1}") "\n" PARAM("limit", "false", "2") "\n"
                PARAM("flags", "false", "[1, true, null]")) END "{E}",
         "R(Look it up.) C(One moment.) 0:lookup{\"query\": \"{\\\"a\\\": 1}\", \"limit\": 2,"
         " \"flags\": [1, true, null]}.", 0},
        {"no arguments", false, CALLS INVOKE("now", "") END "{E}", "0:now{}.", 0},
        {"content keeps its own line feeds", false, "a\n\n\n" CALLS INVOKE("f", "") END "{E}", "C(a\n\n\n) 0:f{}.", 0},
        {"white space behind the block", false, CALLS INVOKE("f", "") END "\n \n{E}", "0:f{}.", 0},
        {"escapes", false, CALLS INVOKE("f", PARAM("a\"b", "true", "x\"\\\n\t\x01<é>")) END "{E}",
         "0:f{\"a\\\"b\": \"x\\\"\\\\\\n\\t\\u0001<é>\"}.", 0},
        {"an empty string", false, CALLS INVOKE("f", PARAM("k", "true", "")) END "{E}", "0:f{\"k\": \"\"}.", 0},
        {"JSON goes in as written", false,
         CALLS INVOKE("f", PARAM("a", "false", " 1.0 ") "\n" PARAM("b", "false", "{\"x\":1.50E+2,\"y\":[ ]}"))
         END "{E}", "0:f{\"a\":  1.0 , \"b\": {\"x\":1.50E+2,\"y\":[ ]}}.", 0},
        {"a stop ends without EOS", false, "Hi{S}more", "C(Hi)", F_NO_END},
        {"nothing follows EOS", false, "Hi{E}more" CALLS, "C(Hi)", 0},
        {"hidden tokens", false, "a{H}b{E}", "C(ab)", 0},
        {"broken characters", false, "a\xF0\x9F\x98{/T}b\xFF" "c\xE5\x8C{E}",
         "C(a\xEF\xBF\xBD" "b\xEF\xBF\xBD" "c\xEF\xBF\xBD)", F_TOLERATED},
        {"characters broken by others", false, "\xE5\x8C" "a\xF0\x9F\xE5\x8C\x97\xC3<\xE2\x82\xE2\x82\xAC{E}",
         "C(\xEF\xBF\xBD" "a\xEF\xBF\xBD" "北\xEF\xBF\xBD<\xEF\xBF\xBD€)", 0},
    };
    CHECK_ANSWERS(cases);
}

static void text_that_is_no_tag(void) {
    static const answer_case cases[] = {
        {"T2 d: spelled out", false, "Write\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">{E}",
         "C(Write\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">)", 0},
        {"ASCII bars", false, "\n\n<|DSML| calls>\n{E}", "C(\n\n<|DSML| calls>\n)", 0},
        {"spelled </think>", true, "a</think>b{/T}c{E}", "R(a</think>b) C(c)", 0},
        {"T2 c: closers in a value", false,
         CALLS INVOKE("sh", PARAM("cmd", "true", "x 2>&1 </parameter></｜DSML｜ parameter></|DSML| invoke>")) END "{E}",
         "0:sh{\"cmd\": \"x 2>&1 </parameter></｜DSML｜ parameter></|DSML| invoke>\"}.", 0},
        {"a mark alone", false, "the {D} token{E}", "C(the ｜DSML｜ token)", 0},
        {"a mark that begins no tag", false, "\n<{D} cat> </{D}x <{D}{D}{E}",
         "C(\n<｜DSML｜ cat> </｜DSML｜x <｜DSML｜｜DSML｜)", 0},
        {"held tails that do not fit", false, "a\n\n\n\nb <<< </ <\n\n{E}", "C(a\n\n\n\nb <<< </ <\n\n)", 0},
        {"one tail inside another", false, "<<{D} calls>{E}", "C(<)", F_TOLERATED},
        {"a block inside an unfinished tag", false, "a<{D} invoke name=\"x\n\n<{D} calls>\n" INVOKE("f", "") END "{E}",
         "C(a<｜DSML｜ invoke name=\"x) 0:f{}.", 0},
        {"marks in a value", false, CALLS INVOKE("f", PARAM("k", "true", "{D} <{D} </{D}</{D} <")) END "{E}",
         "0:f{\"k\": \"｜DSML｜ <｜DSML｜ </｜DSML｜</｜DSML｜ <\"}.", 0},
        {"think tokens in a value", false, CALLS INVOKE("f", PARAM("k", "true", "<{T}a{/T}")) END "{E}",
         "0:f{\"k\": \"<<think>a</think>\"}.", 0},
    };
    CHECK_ANSWERS(cases);
}

static void values_that_are_no_json(void) {
    static const answer_case cases[] = {
        {"words", false, CALLS INVOKE("f", PARAM("k", "false", "Paris \"x\"")) END "{E}",
         "0:f{\"k\": \"Paris \\\"x\\\"\"}.", F_JSON},
        {"nothing", false, CALLS INVOKE("f", PARAM("k", "false", "")) END "{E}", "0:f{\"k\": \"\"}.", F_JSON},
        {"NaN", false, CALLS INVOKE("f", PARAM("k", "false", "NaN")) END "{E}", "0:f{\"k\": \"NaN\"}.", F_JSON},
        {"two values", false, CALLS INVOKE("f", PARAM("k", "false", "1, \"z\": 2")) END "{E}",
         "0:f{\"k\": \"1, \\\"z\\\": 2\"}.", F_JSON},
        {"a brace too many", false, CALLS INVOKE("f", PARAM("k", "false", "1}")) END "{E}", "0:f{\"k\": \"1}\"}.", F_JSON},
        {"a lone surrogate", false, CALLS INVOKE("f", PARAM("k", "false", "\"\\ud800\"")) END "{E}",
         "0:f{\"k\": \"\\\"\\\\ud800\\\"\"}.", F_JSON},
        {"a repeated key keeps its first value", false,
         CALLS INVOKE("f", PARAM("k", "true", "1") "\n" PARAM("k", "false", "2") "\n" PARAM("j", "false", "3")) END "{E}",
         "0:f{\"k\": \"1\", \"j\": 3}.", F_KEY},
        {"a key repeated inside a value", false, CALLS INVOKE("f", PARAM("k", "false", "{\"a\":1,\"a\":2}")) END "{E}",
         "0:f{\"k\": {\"a\":1,\"a\":2}}.", F_KEY},
    };
    CHECK_ANSWERS(cases);
}

static void thinking_boundaries(void) {
    static const answer_case cases[] = {
        {"EOS in thinking", true, "Hm{E}", "R(Hm)", F_TOLERATED},
        {"cut in thinking", true, "Hm\n", "R(Hm\n)", F_NO_END},
        {"</think> twice", true, "a{/T}b{/T}c{E}", "R(a) C(bc)", F_TOLERATED},
        {"thinking again", true, "a{/T}b\n{T}c{/T}d{E}", "R(a) C(b\n) R(c) C(d)", F_TOLERATED},
        {"thinking in chat mode", false, "{T}a{/T}b{E}", "R(a) C(b)", F_TOLERATED},
        {"the header's tag again", true, "{T}a{/T}b{E}", "R(a) C(b)", F_TOLERATED},
        {"a block in unclosed thinking", true, "Call it." CALLS INVOKE("f", PARAM("k", "false", "1")) END "{E}",
         "R(Call it.) 0:f{\"k\": 1}.", F_REASONING},
        {"the same block once more behind </think>", true,
         "Call it." CALLS INVOKE("f", "") END "{/T}Done." CALLS INVOKE("f", "") END "{E}",
         "R(Call it.) 0:f{}. C(Done.)", F_REASONING | F_TOLERATED},
        {"half a tag before </think>", true, "a<{D} cal{/T}b{E}", "R(a) C(b)", F_TOLERATED},
    };
    CHECK_ANSWERS(cases);
}

static void cut_answers(void) {
    static const answer_case cases[] = {
        {"EOS in a value", false, CALLS INVOKE("f", "") "\n<{D} invoke name=\"g\">\n<{D} parameter name=\"k\" string=\"true\">rm -rf /{E}",
         "0:f{}. 1:g{\"k\": \"rm -rf /!", F_CUT},
        {"cut in a value", false, CALLS "<{D} invoke name=\"g\">\n<{D} parameter name=\"k\" string=\"false\">1",
         "0:g{\"k\": !", F_CUT | F_NO_END},
        {"cut between parameters", false, CALLS "<{D} invoke name=\"g\">\n" PARAM("k", "false", "1"),
         "0:g{\"k\": 1!", F_CUT | F_NO_END},
        {"EOS in a parameter's tag", false, CALLS "<{D} invoke name=\"g\">\n" PARAM("k", "false", "1") "\n<{D} param{E}",
         "0:g{\"k\": 1!", F_CUT},
        {"EOS before any parameter", false, CALLS "<{D} invoke name=\"g\">\n{E}", "0:g!", F_CUT},
        {"EOS in a call's tag", false, "Hi" CALLS "<{D} invoke na{E}", "C(Hi)", F_CUT},
        {"cut in the block's tag", false, "Hi\n\n<{D} ca", "C(Hi\n\n)", F_CUT | F_NO_END},
        {"cut behind <", false, "Hi\n\n<", "C(Hi\n\n<)", F_NO_END},
        {"T2 b: closers missing at EOS", false, CALLS "<{D} invoke name=\"g\">\n" PARAM("k", "false", "1") "{E}",
         "0:g{\"k\": 1}.", F_TOLERATED},
        {"the block's closer missing", false, CALLS INVOKE("f", "") "{E}", "0:f{}.", F_TOLERATED},
        {"half of the block's closer", false, CALLS INVOKE("f", "") "\n</{D} ca{E}", "0:f{}.", F_TOLERATED},
        {"an empty block", false, "a" CALLS "</{D} calls>{E}", "C(a)", F_TOLERATED},
    };
    CHECK_ANSWERS(cases);
}

static void tolerated_markup(void) {
    static const answer_case cases[] = {
        {"T2 a: another opener", false, "\n\n<{D} toolcalls>\n" INVOKE("f", "") END "{E}", "0:f{}.", F_TOLERATED},
        {"the tags of V4", false,
         "\n\n<{D}tool_calls>\n<{D}invoke name=\"f\">\n<{D}parameter name=\"k\" string=\"true\">v</{D}parameter>\n"
         "</{D}invoke>\n</{D}tool_calls>{E}", "0:f{\"k\": \"v\"}.", F_TOLERATED},
        {"the block name of V3.2", false, "\n\n<{D} function_calls>\n" INVOKE("f", "") "\n</{D} function_calls>{E}",
         "0:f{}.", F_TOLERATED},
        {"no block around the call", false, "Hi\n\n" INVOKE("f", PARAM("k", "false", "1")) "{E}",
         "C(Hi) 0:f{\"k\": 1}.", F_TOLERATED},
        {"no line feeds", false,
         "Hi<{D} calls><{D} invoke name=\"f\">" PARAM("k", "false", "1") "</{D} invoke></{D} calls>{E}",
         "C(Hi) 0:f{\"k\": 1}.", F_TOLERATED},
        {"one line feed before", false, "Hi\n<{D} calls>\n" INVOKE("f", "") END "{E}", "C(Hi) 0:f{}.", F_TOLERATED},
        {"more white space inside", false, CALLS " " INVOKE("f", "") END "{E}", "0:f{}.", F_TOLERATED},
        {"a closer short in an empty call", false, CALLS "<{D} invoke name=\"f\">\n</{D} invoke>" END "{E}", "0:f{}.",
         F_TOLERATED},
        {"parameter closer missing before invoke's", false,
         CALLS "<{D} invoke name=\"f\">\n<{D} parameter name=\"k\" string=\"true\">v</{D} invoke>" END "{E}",
         "0:f{\"k\": \"v\"}.", F_TOLERATED},
        {"parameter closer missing before the next", false,
         CALLS "<{D} invoke name=\"f\">\n<{D} parameter name=\"k\" string=\"true\">v" PARAM("j", "false", "1") "\n</{D} invoke>"
         END "{E}", "0:f{\"k\": \"v\", \"j\": 1}.", F_TOLERATED},
        {"invoke closer missing", false,
         CALLS "<{D} invoke name=\"f\">\n" PARAM("k", "false", "1") "\n" INVOKE("g", "") END "{E}",
         "0:f{\"k\": 1}. 1:g{}.", F_TOLERATED},
        {"a JSON body", false, CALLS INVOKE("f", "{\"a\": [1, \"</x>\"]}") END "{E}", "0:f{\"a\": [1, \"</x>\"]}.",
         F_TOLERATED},
        {"a JSON body at EOS", false, CALLS "<{D} invoke name=\"f\">\n{\"a\": 1}\n{E}", "0:f{\"a\": 1}.", F_TOLERATED},
        {"half a JSON body at EOS", false, CALLS "<{D} invoke name=\"f\">\n{\"a\": {E}", "0:f!", F_TOLERATED | F_CUT},
        {"a body that is no object", false, CALLS INVOKE("f", "{\"a\": }") END "{E}",
         "0:f{\"arguments\": \"{\\\"a\\\": }\\n\"}.", F_TOLERATED | F_JSON},
        {"other text in a call drops it", false, CALLS INVOKE("f", "oops") END "{E}", "0:f!", F_TOLERATED | F_CUT},
        {"text between parameters too", false, CALLS INVOKE("f", PARAM("k", "false", "1") " and") END "{E}",
         "0:f{\"k\": 1!", F_TOLERATED | F_CUT},
        {"parameters and a body do not mix", false, CALLS INVOKE("f", PARAM("k", "false", "1") "\n{\"a\": 2}") END "{E}",
         "0:f{\"k\": 1!", F_TOLERATED | F_CUT},
        {"a body and parameters do not mix", false, CALLS INVOKE("f", "{}" PARAM("k", "false", "1")) END "{E}", "0:f!",
         F_TOLERATED | F_CUT},
        {"text between calls is lost", false, CALLS "hm" INVOKE("f", "") END "{E}", "0:f{}.", F_TOLERATED},
        {"ASCII bars in a block", false,
         CALLS "<|DSML| invoke name=\"f\">\n<|DSML| parameter name=\"k\" string=\"true\">v</|DSML| parameter>\n"
         "</|DSML| invoke>" END "{E}", "0:f{\"k\": \"v\"}.", F_TOLERATED},
        {"the mark as text in a block", false,
         CALLS "<｜DSML｜ invoke name=\"f\">\n\n</｜DSML｜ invoke>\n</｜DSML｜ calls>{E}", "0:f{}.", F_TOLERATED},
        {"closers without openers", false, "a</{D} parameter></{D} invoke></{D} calls>b{E}", "C(ab)", F_TOLERATED},
        {"a parameter without a call", false, "a" PARAM("k", "true", "v") "{E}", "C(a)", F_TOLERATED},
        {"a call without a name", false, CALLS INVOKE("", PARAM("k", "true", "v")) "\n" INVOKE("f", "") END "{E}", "0:f{}.",
         F_TOLERATED},
        {"text behind the block", false, CALLS INVOKE("f", "") END "\nDone.{E}", "0:f{}. C(Done.)", F_AFTER},
        {"text behind a bare call", false, "\n\n" INVOKE("f", "") "\nDone.{E}", "0:f{}. C(Done.)", F_AFTER | F_TOLERATED},
        {"a second block at once", false, CALLS INVOKE("f", "") END CALLS INVOKE("g", "") END "{E}", "0:f{}. 1:g{}.",
         F_TOLERATED},
        {"a second block behind text", false, CALLS INVOKE("f", "") END "Again:" CALLS INVOKE("f", "") END "{E}",
         "0:f{}. C(Again:)", F_AFTER | F_TOLERATED},
    };
    CHECK_ANSWERS(cases);
}

static void no_tools_offered(void) {
    static const answer_case cases[] = {
        {"suppressed", false, "Hi" CALLS INVOKE("f", PARAM("k", "true", "v")) END "{E}", "C(Hi)", F_TOLERATED},
        {"cut", false, "Hi" CALLS "<{D} invoke name=\"f\">", "C(Hi)", F_TOLERATED | F_CUT | F_NO_END},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) check_answer(&cases[i], false);
}

/* E7's answer cut after every byte: complete calls are delivered, half a tag never shows. */
static void cut_anywhere(void) {
    static const char answer[] =
        "Hm.{/T}Text." CALLS INVOKE("f", PARAM("city", "true", "北京")) "\n" INVOKE("g", PARAM("n", "false", "[1]")) END "{E}";
    for (size_t cut = 0; cut < sizeof answer; cut++) {
        plumb__piece_kind kind;
        bool inside = false; /* a cut inside "{D}" is none */
        for (size_t back = 1; back < 4 && back <= cut; back++)
            inside |= control_at(answer + cut - back, &kind) > back;
        if (inside) continue;
        char part[sizeof answer];
        memcpy(part, answer, cut);
        part[cut] = 0;
        int closed = 0;
        for (const char *at = part; (at = strstr(at, "</{D} invoke>")); at++) closed++;
        transcript t = {0};
        plumb_chat_parser *parser = NULL;
        if (plumb__chat_parser_create_bare(true, true, transcript_sink, &t, &parser, NULL) != PLUMB_OK) return;
        push_answer(parser, part, 4);
        plumb_chat_parser_finish(parser);
        const char *line = transcript_line(&t);
        T_CHECK(t.calls_ended == closed, "cut at %zu: %s", cut, line);
        T_CHECK(!strstr(line, "DSML"), "cut at %zu: %s", cut, line);
        plumb_chat_parser_destroy(parser);
        transcript_free(&t);
    }
}

/* What is told and what is held is what was pushed, wherever the answer stops being text. */
static void held_text(void) {
    static const struct {
        const char *answer;
        size_t held;
    } cases[] = {
        {"a", 0}, {"a\n", 1}, {"a\n\n\n", 2}, {"a\n\n<", 3}, {"a\n\n<{D}", 13}, {"a\n\n<{D} call", 18},
        {"a\n\n<{D} calls>", 0}, {"a<{D}x", 0}, {"a</{D}", 12}, {"a</{D} calls>", 0}, {"{D}", 0}, {"<\xE5\x8C", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        transcript t = {0};
        plumb_chat_parser *parser = NULL;
        if (plumb__chat_parser_create_bare(false, true, transcript_sink, &t, &parser, NULL) != PLUMB_OK) return;
        push_answer(parser, cases[i].answer, 1000);
        T_CHECK(plumb_chat_parser_held(parser) == cases[i].held, "%s: %zu held, not %zu", cases[i].answer,
                plumb_chat_parser_held(parser), cases[i].held);
        plumb_chat_parser_destroy(parser);
        transcript_free(&t);
    }
}

/* Work per call must not grow with the number of calls. */
static void many_calls(void) {
    uint64_t steps[2];
    for (int round = 0; round < 2; round++) {
        transcript t = {0};
        plumb_chat_parser *parser = NULL;
        int calls = round ? 4096 : 1024;
        if (plumb__chat_parser_create_bare(false, true, transcript_sink, &t, &parser, NULL) != PLUMB_OK) return;
        push_answer(parser, CALLS, 1000);
        for (int i = 0; i < calls; i++) push_answer(parser, INVOKE("f", PARAM("k", "false", "1")) "\n", 1000);
        push_answer(parser, "</{D} calls>{E}", 1000);
        T_CHECK(t.calls_ended == calls && plumb_chat_parser_flags(parser) == 0, "%d calls", t.calls_ended);
        T_CHECK(t.events < 10 * calls, "%d events", t.events);
        steps[round] = plumb__chat_parser_steps(parser);
        plumb_chat_parser_destroy(parser);
        transcript_free(&t);
    }
    T_CHECK(steps[1] < 5 * steps[0], "%" PRIu64 " and %" PRIu64 " steps", steps[0], steps[1]);
}

/* The limits of what is held: names, parameters, JSON values. */
static void limits(void) {
    char name[2048];
    plumb__buffer answer = {0};
    memset(name, 'n', sizeof name);
    plumb__buffer_text(&answer, "a<{D} invoke name=\"");
    plumb__buffer_append(&answer, name, sizeof name);
    plumb__buffer_append(&answer, "\">{E}", 6);
    plumb__buffer wanted = {0};
    plumb__buffer_text(&wanted, "C(a<｜DSML｜ invoke name=\"");
    plumb__buffer_append(&wanted, name, sizeof name);
    plumb__buffer_append(&wanted, "\">)", 4);
    check_answer(&(answer_case){"a name beyond the hold", false, answer.bytes, wanted.bytes, 0}, true);

    answer.size = 0;
    plumb__buffer_text(&answer, CALLS "<{D} invoke name=\"f\">");
    for (int i = 0; i < 1025; i++) {
        (void)snprintf(name, sizeof name, "\n" PARAM("k%d", "false", "1"), i);
        plumb__buffer_text(&answer, name);
    }
    plumb__buffer_text(&answer, "\n</{D} invoke>" END "{E}");
    plumb__buffer_append(&answer, "", 1);
    transcript t = {0};
    plumb_chat_parser *parser = NULL;
    if (plumb__chat_parser_create_bare(false, true, transcript_sink, &t, &parser, NULL) != PLUMB_OK) return;
    push_answer(parser, answer.bytes, 1000);
    T_CHECK(t.calls_ended == 0 && plumb_chat_parser_flags(parser) == F_CUT, "%d calls", t.calls_ended);
    plumb_chat_parser_destroy(parser);
    transcript_free(&t);
    plumb__buffer_free(&answer);
    plumb__buffer_free(&wanted);
}

/* A JSON value that is too long to be collected goes on as a string. */
static void long_json_value(void) {
    transcript t = {0};
    plumb_chat_parser *parser = NULL;
    static char digits[1 << 16];
    memset(digits, '7', sizeof digits);
    if (plumb__chat_parser_create_bare(false, true, transcript_sink, &t, &parser, NULL) != PLUMB_OK) return;
    push_answer(parser, CALLS "<{D} invoke name=\"f\">\n<{D} parameter name=\"k\" string=\"false\">", 1000);
    for (int i = 0; i < 160; i++) (void)plumb__chat_parser_push_piece(parser, PLUMB__PIECE_TEXT, digits, sizeof digits);
    push_answer(parser, "</{D} parameter>\n</{D} invoke>" END "{E}", 1000);
    T_CHECK(t.calls_ended == 1 && plumb_chat_parser_flags(parser) == F_JSON, "%d calls", t.calls_ended);
    T_CHECK(t.arguments.size == 160 * (int64_t)sizeof digits + 9, "%" PRId64 " bytes", t.arguments.size);
    plumb_chat_parser_destroy(parser);
    transcript_free(&t);
}

/* Pushes what the encoder wrote behind the header of the (only) answer. */
static void push_rendered(plumb_chat_parser *parser, const plumb__chat_items *items) {
    int64_t i = 0;
    while (!items->list[i].control || strcmp(items->list[i].control, "<｜Assistant｜>") != 0) i++;
    for (i += 2; i < items->count; i++) {
        const plumb__chat_item *item = &items->list[i];
        plumb__piece_kind kind = PLUMB__PIECE_TEXT;
        if (item->control && !strcmp(item->control, "｜DSML｜")) kind = PLUMB__PIECE_DSML;
        else if (item->control && !strcmp(item->control, "</think>")) kind = PLUMB__PIECE_THINK_END;
        else if (item->control) kind = PLUMB__PIECE_EOS;
        (void)plumb__chat_parser_push_piece(parser, kind, items->text.bytes + item->at, (size_t)item->size);
    }
}

static void round_trip(void) {
    static const struct {
        const char *arguments, *wanted;
    } cases[] = {
        {"{}", "{}"},
        {"{\"n\":1.0,\"x\":1e-7,\"big\":12345678901234567890}",
         "{\"n\": 1.0, \"x\": 1e-07, \"big\": 12345678901234567890}"},
        {"{\"q\":\"{\\\"a\\\": 1}\",\"e\":\"\",\"t\":true,\"z\":null,\"l\":[1,{\"b\":\"\\u00e9\"}]}",
         "{\"q\": \"{\\\"a\\\": 1}\", \"e\": \"\", \"t\": true, \"z\": null, \"l\": [1, {\"b\": \"é\"}]}"},
        {"{\"s\":\"\\n\\n<｜DSML｜ calls>\\n</｜DSML｜ parameter>\\u0000\\t\\\\ \"}",
         "{\"s\": \"\\n\\n<｜DSML｜ calls>\\n</｜DSML｜ parameter>\\u0000\\t\\\\ \"}"},
        {"{\"a\\\"b>\":1,\"\":2,\"x\\\" string=\\\"true\":3}", "{\"a\\\"b>\": 1, \"\": 2, \"x\\\" string=\\\"true\": 3}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char messages[1024], wanted[1024];
        plumb__chat_items items = {0};
        transcript t = {0};
        plumb_chat_parser *parser = NULL;
        (void)snprintf(messages, sizeof messages,
                       "[{\"role\":\"user\"},{\"role\":\"assistant\",\"reasoning_content\":\"r\\n\",\"content\":\"c\\n\","
                       "\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":%s}}]}]",
                       cases[i].arguments);
        (void)snprintf(wanted, sizeof wanted, "R(r\n) C(c\n) 0:f%s.", cases[i].wanted);
        if (plumb__chat_render(messages, strlen(messages), &(plumb_chat_options){.thinking = true}, &items, NULL) !=
                PLUMB_OK ||
            plumb__chat_parser_create_bare(true, true, transcript_sink, &t, &parser, NULL) != PLUMB_OK) {
            T_CHECK(false, "case %zu is not rendered", i);
            return;
        }
        push_rendered(parser, &items);
        const char *line = transcript_line(&t);
        T_CHECK(!strcmp(line, wanted) && plumb_chat_parser_flags(parser) == 0, "%s\nnot\n%s", line, wanted);
        plumb_chat_parser_destroy(parser);
        transcript_free(&t);
        plumb__chat_items_free(&items);
    }
}

T_MAIN({"regular_answers", regular_answers}, {"text_that_is_no_tag", text_that_is_no_tag},
       {"values_that_are_no_json", values_that_are_no_json}, {"thinking_boundaries", thinking_boundaries},
       {"cut_answers", cut_answers}, {"tolerated_markup", tolerated_markup}, {"no_tools_offered", no_tools_offered},
       {"cut_anywhere", cut_anywhere}, {"held_text", held_text}, {"many_calls", many_calls}, {"limits", limits},
       {"long_json_value", long_json_value}, {"round_trip", round_trip})
