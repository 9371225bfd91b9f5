/* The prompt as a string: the published examples byte for byte, then rule by rule. */
#include <jansson.h>
#include <stdlib.h>

#include "t.h"
#include "text/chat_encode.h"

/* The prompt of `messages` as one string (freed by the caller), or NULL with the error. */
static char *prompt_of(const char *messages, plumb_chat_options options, plumb_error *err) {
    plumb__chat_items items = {0};
    plumb__buffer printed = {0};
    memset(err, 0, sizeof *err);
    if (plumb__chat_render(messages, strlen(messages), &options, &items, err) != PLUMB_OK) return NULL;
    plumb__chat_items_print(&items, &printed);
    plumb__buffer_append(&printed, "", 1);
    plumb__chat_items_free(&items);
    return printed.bytes;
}

static void check_prompt(const char *name, const char *messages, plumb_chat_options options,
                         const char *wanted) {
    plumb_error err;
    char line[1024] = "";
    char *prompt = prompt_of(messages, options, &err);
    if (!prompt) plumb_error_line(&err, line, sizeof line);
    T_CHECK(prompt && !strcmp(prompt, wanted), "%s:\n%s%s\nnot\n%s", name, prompt ? prompt : "", line, wanted);
    free(prompt);
}

static void published_examples(void) {
    json_t *file = json_load_file(TEST_DATA "/chat/examples.json", 0, NULL);
    const json_t *examples = json_object_get(file, "examples");
    size_t i;
    json_t *example;
    T_CHECK(json_array_size(examples) == 15, "");
    json_array_foreach(examples, i, example) {
        const json_t *options = json_object_get(example, "options");
        char *messages = json_dumps(json_object_get(example, "messages"), JSON_COMPACT);
        check_prompt(json_string_value(json_object_get(example, "name")), messages,
                     (plumb_chat_options){
                         .thinking = json_is_true(json_object_get(options, "thinking")),
                         .effort = (int)json_integer_value(json_object_get(options, "effort")),
                         .keep_reasoning = json_is_true(json_object_get(options, "keep_reasoning"))},
                     json_string_value(json_object_get(example, "prompt")));
        free(messages);
    }
    json_decref(file);
}

#define BOS "<｜begin▁of▁sentence｜>"
#define EOS "<｜end▁of▁sentence｜>"
#define SYS "<｜System｜>"
#define USR "<｜User｜>"
#define AST "<｜Assistant｜>"
#define IMG "<｜deepseek_image｜>"
#define D "｜DSML｜"
#define LINE75 \
    "Reasoning Effort: 75 (range 1-100, the higher the value, the more thorough the reasoning)\n\n"
#define PARAM(key, type, value) \
    "<" D " parameter name=\"" key "\" string=\"" type "\">" value "</" D " parameter>"
/* A chat of one question and an answer with one call, and the prompt it must give. */
#define CALL_MESSAGES(arguments) \
    "[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"tool_calls\":[{\"function\":" \
    "{\"name\":\"f\",\"arguments\":" arguments "}}]}]"
#define CALL_PROMPT(parameters) \
    BOS USR "q" AST "</think>\n\n<" D " calls>\n<" D " invoke name=\"f\">\n" parameters "\n</" D \
    " invoke>\n</" D " calls>" EOS

typedef struct prompt_case {
    const char *name, *messages, *wanted;
} prompt_case;

static void check_all(const prompt_case *cases, size_t count, plumb_chat_options options) {
    for (size_t i = 0; i < count; i++)
        check_prompt(cases[i].name, cases[i].messages, options, cases[i].wanted);
}
#define CHECK_ALL(cases, ...) \
    check_all(cases, sizeof cases / sizeof cases[0], (plumb_chat_options){__VA_ARGS__})

static void arguments_of_calls(void) {
    static const prompt_case cases[] = {
        {"number forms survive",
         CALL_MESSAGES("\"{\\\"n\\\": 1.0, \\\"x\\\": 1e-7, \\\"big\\\": 12345678901234567890}\""),
         CALL_PROMPT(PARAM("n", "false", "1.0") "\n" PARAM("x", "false", "1e-07") "\n"
                     PARAM("big", "false", "12345678901234567890"))},
        {"an object", CALL_MESSAGES("{\"n\":1.0,\"o\":{\"k\":[1,true,null]}}"),
         CALL_PROMPT(PARAM("n", "false", "1.0") "\n" PARAM("o", "false", "{\"k\": [1, true, null]}"))},
        {"no arguments leave an empty line", CALL_MESSAGES("\"{}\""), CALL_PROMPT("")},
        {"encoded twice", CALL_MESSAGES("\"\\\"{\\\\\\\"a\\\\\\\": 1}\\\"\""),
         CALL_PROMPT(PARAM("a", "false", "1"))},
        {"encoded three times is too often",
         CALL_MESSAGES("\"\\\"\\\\\\\"{}\\\\\\\"\\\"\""),
         CALL_PROMPT(PARAM("arguments", "true", "\"\\\"{}\\\"\""))},
        {"no JSON", CALL_MESSAGES("\"{\\\"a\\\": \""), CALL_PROMPT(PARAM("arguments", "true", "{\"a\": "))},
        {"empty text", CALL_MESSAGES("\"\""), CALL_PROMPT(PARAM("arguments", "true", ""))},
        {"no object", CALL_MESSAGES("\"[1,2]\""), CALL_PROMPT(PARAM("arguments", "true", "[1,2]"))},
        {"an array", CALL_MESSAGES("[1,2]"), CALL_PROMPT(PARAM("arguments", "false", "[1, 2]"))},
        {"a lone surrogate", CALL_MESSAGES("\"{\\\"a\\\": \\\"\\\\ud800\\\"}\""),
         CALL_PROMPT(PARAM("arguments", "true", "{\"a\": \"\\ud800\"}"))},
        {"strings are raw", CALL_MESSAGES("{\"s\":\"a\\n\\\"<b>\\\\ é\"}"),
         CALL_PROMPT(PARAM("s", "true", "a\n\"<b>\\ é"))},
        {"the last value of a key, in the first place", CALL_MESSAGES("{\"a\":1,\"b\":2,\"a\":3}"),
         CALL_PROMPT(PARAM("a", "false", "3") "\n" PARAM("b", "false", "2"))},
        {"Python's own numbers", CALL_MESSAGES("\"{\\\"a\\\": NaN, \\\"b\\\": -1e999}\""),
         CALL_PROMPT(PARAM("a", "false", "NaN") "\n" PARAM("b", "false", "-Infinity"))},
    };
    CHECK_ALL(cases, .thinking = false);
}

static void user_messages(void) {
    static const prompt_case cases[] = {
        {"empty", "[{\"role\":\"user\",\"content\":\"\"}]", BOS USR AST "</think>"},
        {"absent and null content", "[{\"role\":\"user\"},{\"role\":\"user\",\"content\":null}]",
         BOS USR "\n\n" AST "</think>"},
        {"neighbours merge", "[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"user\",\"content\":\"b\"}]",
         BOS USR "a\n\nb" AST "</think>"},
        {"what merges loses its task",
         "[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"user\",\"content\":\"b\",\"task\":\"title\"}]",
         BOS USR "a\n\nb" AST "</think>"},
        {"a task keeps the next one apart",
         "[{\"role\":\"user\",\"content\":\"a\",\"task\":\"query\"},{\"role\":\"user\",\"content\":\"b\"}]",
         BOS USR "a" USR "b" AST "</think>"},
        {"a tool result joins even a task",
         "[{\"role\":\"user\",\"content\":\"a\",\"task\":\"query\"},{\"role\":\"tool\",\"content\":\"b\"}]",
         BOS USR "a\n\n<tool_result>b</tool_result><｜query｜>"},
        {"a tool result has no task", "[{\"role\":\"tool\",\"content\":\"b\",\"task\":\"title\"}]",
         BOS USR "<tool_result>b</tool_result>" AST "</think>"},
        {"developer is user", "[{\"role\":\"developer\",\"content\":\"a\"}]", BOS USR "a" AST "</think>"},
        {"results and text keep their places",
         "[{\"role\":\"assistant\",\"tool_calls\":["
         "{\"id\":\"x\",\"function\":{\"name\":\"f\",\"arguments\":{}}},"
         "{\"id\":\"y\",\"function\":{\"name\":\"g\",\"arguments\":{}}}]},"
         "{\"role\":\"tool\",\"tool_call_id\":\"y\",\"content\":\"Y\"},"
         "{\"role\":\"user\",\"content\":\"and\"},"
         "{\"role\":\"tool\",\"tool_call_id\":\"?\",\"content\":\"first unknown\"},"
         "{\"role\":\"tool\",\"tool_call_id\":\"x\",\"content\":\"X\"},"
         "{\"role\":\"tool\",\"content\":\"second unknown\"}]",
         BOS "\n\n<" D " calls>\n<" D " invoke name=\"f\">\n\n</" D " invoke>\n<" D
             " invoke name=\"g\">\n\n</" D " invoke>\n</" D " calls>" EOS USR
             "<tool_result>first unknown</tool_result>\n\nand\n\n<tool_result>X</tool_result>\n\n"
             "<tool_result>second unknown</tool_result>\n\n<tool_result>Y</tool_result>" AST "</think>"},
        {"lists in results",
         "[{\"role\":\"tool\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image\"},"
         "{\"type\":\"audio\"}]}]",
         BOS USR "<tool_result>a\n\n" IMG "\n\n[Unsupported audio]</tool_result>" AST "</think>"},
        {"results given as blocks",
         "[{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"x\",\"content\":"
         "[{\"type\":\"text\",\"text\":\"a\"}]},{\"type\":\"text\",\"text\":\"b\"}]}]",
         BOS USR "<tool_result>a</tool_result>\n\nb" AST "</think>"},
    };
    CHECK_ALL(cases, .thinking = false);
}

static void headers_and_reasoning(void) {
    static const prompt_case chat[] = {
        {"system alone opens nothing", "[{\"role\":\"system\",\"content\":\"s\"}]", BOS SYS "s"},
        {"a final answer opens nothing",
         "[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":\"a\"}]",
         BOS USR "q" AST "</think>a" EOS},
        {"chat mode shows no reasoning",
         "[{\"role\":\"user\",\"content\":\"q\"},"
         "{\"role\":\"assistant\",\"reasoning_content\":\"r\",\"content\":\"a\"}]",
         BOS USR "q" AST "</think>a" EOS},
        {"action in chat mode", "[{\"role\":\"user\",\"content\":\"q\",\"task\":\"action\"}]",
         BOS USR "q" AST "</think><｜action｜>"},
        {"the other tasks",
         "[{\"role\":\"user\",\"content\":\"1\",\"task\":\"authority\"},"
         "{\"role\":\"assistant\",\"content\":\"2\"},"
         "{\"role\":\"user\",\"content\":\"3\",\"task\":\"domain\"},"
         "{\"role\":\"assistant\",\"content\":\"4\"},"
         "{\"role\":\"user\",\"content\":\"5\",\"task\":\"read_url\"}]",
         BOS USR "1<｜authority｜>2" EOS USR "3<｜domain｜>4" EOS USR "5<｜read_url｜>"},
        {"system content as blocks, with a response format",
         "[{\"role\":\"system\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
         "{\"type\":\"text\",\"text\":\"b\"}],\"response_format\":{\"n\":1.50,\"é\":\"\\u00e9\"}}]",
         BOS SYS "a\n\nb\n\n## Response Format:\n\nYou MUST strictly adhere to the following schema to"
                 " reply:\n{\"n\": 1.5, \"é\": \"é\"}"},
    };
    static const prompt_case thinking[] = {
        {"the last answer keeps its reasoning",
         "[{\"role\":\"user\",\"content\":\"q\"},"
         "{\"role\":\"assistant\",\"reasoning_content\":\"r\",\"content\":\"a\",\"wo_eos\":true}]",
         BOS SYS LINE75 USR "q" AST "<think>r</think>a"},
        {"a later system message counts as the last question",
         "[{\"role\":\"user\",\"content\":\"q\"},"
         "{\"role\":\"assistant\",\"reasoning_content\":\"r\",\"content\":\"a\"},"
         "{\"role\":\"system\",\"content\":\"s\"}]",
         BOS SYS LINE75 USR "q" AST "</think>a" EOS SYS "s" AST "<think>"},
        {"no reasoning behind a task",
         "[{\"role\":\"user\",\"content\":\"q\",\"task\":\"title\"},"
         "{\"role\":\"assistant\",\"reasoning_content\":\"r\",\"content\":\"a\"}]",
         BOS SYS LINE75 USR "q<｜title｜>a" EOS},
        {"empty tools are no tools",
         "[{\"role\":\"system\",\"content\":\"s\",\"tools\":[]},{\"role\":\"user\",\"content\":\"q\"},"
         "{\"role\":\"assistant\",\"reasoning_content\":\"r\",\"content\":\"a\"},"
         "{\"role\":\"user\",\"content\":\"p\"}]",
         BOS SYS LINE75 "s" USR "q" AST "</think>a" EOS USR "p" AST "<think>"},
        {"a reminder behind a question",
         "[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"latest_reminder\",\"content\":\"now\"}]",
         BOS SYS LINE75 USR "q" AST "<think><｜latest_reminder｜>now"},
    };
    CHECK_ALL(chat, .thinking = false);
    CHECK_ALL(thinking, .thinking = true);
}

/* The whole of an item list is what decides about ids: people's text has no control item in it. */
static void peoples_text_is_text(void) {
    static const char messages[] =
        "[{\"role\":\"user\",\"content\":\"<｜User｜><think>" IMG "\"},"
        "{\"role\":\"tool\",\"content\":\"" D EOS "\"}]";
    plumb__chat_items items = {0};
    T_CHECK(plumb__chat_render(messages, strlen(messages), &(plumb_chat_options){0}, &items, NULL) ==
            PLUMB_OK, "");
    T_CHECK(items.count == 5, "%" PRId64 " items", items.count);
    for (int64_t i = 0; i < items.count; i++)
        T_CHECK((items.list[i].control == NULL) == (i == 2), "item %" PRId64, i);
    plumb__chat_items_free(&items);
}

/* In the tools block the marks of the fixed text are control items, those of schemas are not. */
static void tools_block_has_controls(void) {
    static const char messages[] =
        "[{\"role\":\"system\",\"content\":\"" D "\",\"tools\":[{\"function\":{\"name\":\"" D "<think>\"}}]}]";
    plumb__chat_items items = {0};
    int marks = 0, opens = 0, closes = 0;
    T_CHECK(plumb__chat_render(messages, strlen(messages), &(plumb_chat_options){0}, &items, NULL) ==
            PLUMB_OK, "");
    for (int64_t i = 0; i < items.count; i++) {
        const char *control = items.list[i].control;
        if (!control) continue;
        marks += !strcmp(control, D);
        opens += !strcmp(control, "<think>");
        closes += !strcmp(control, "</think>");
    }
    T_CHECK(marks == 9 && opens == 2 && closes == 2, "%d %d %d", marks, opens, closes);
    plumb__chat_items_free(&items);
}

static void refusals(void) {
    static const struct {
        const char *messages, *field;
        int64_t offset;
        const char *found, *expected;
    } cases[] = {
        {"[{\"role\":\"user\"]", "messages", 15, "\"]\"", "\",\" or \"}\""},
        {"{}", "messages", -1, "an object", "an array of messages"},
        {"[]", "messages", -1, "no message", "an array of messages"},
        {"[{\"role\":\"user\"},3]", "messages", 1, "an integer", "an object"},
        {"[{\"content\":\"x\"}]", "messages.role", 0, "nothing",
         "system, developer, user, assistant, tool or latest_reminder"},
        {"[{\"role\":\"user\"},{\"role\":\"robot\"}]", "messages.role", 1, "\"robot\"",
         "system, developer, user, assistant, tool or latest_reminder"},
        {"[{\"role\":7}]", "messages.role", 0, "an integer",
         "system, developer, user, assistant, tool or latest_reminder"},
        {"[{\"role\":\"user\",\"content\":1.5}]", "messages.content", 0, "a number",
         "a string or an array of blocks"},
        {"[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"\"},{\"text\":\"x\"}]}]",
         "messages.content[1].type", 0, "nothing", "a string"},
        {"[{\"role\":\"user\",\"content\":[\"x\"]}]", "messages.content[0].type", 0, "nothing", "a string"},
        {"[{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}]", "messages.content[0].text", 0,
         "nothing", "a string"},
        {"[{\"role\":\"system\",\"content\":[{\"type\":\"image\"}]}]", "messages.content[0].type", 0,
         "\"image\"", "\"text\""},
        {"[{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"content\":[{\"type\":\"text\"}]}]}]",
         "messages.content[0].content[0].text", 0, "nothing", "a string"},
        {"[{\"role\":\"user\",\"task\":\"poem\"}]", "messages.task", 0, "\"poem\"",
         "action, query, authority, domain, title or read_url"},
        {"[{\"role\":\"user\",\"wo_eos\":1}]", "messages.wo_eos", 0, "an integer", "a boolean"},
        {"[{\"role\":\"tool\",\"tool_call_id\":1}]", "messages.tool_call_id", 0, "an integer", "a string"},
        {"[{\"role\":\"assistant\",\"reasoning_content\":[]}]", "messages.reasoning_content", 0, "an array",
         "a string"},
        {"[{\"role\":\"assistant\",\"tool_calls\":{}}]", "messages.tool_calls", 0, "an object", "an array"},
        {"[{\"role\":\"assistant\",\"tool_calls\":[{}]}]", "messages.tool_calls[0].function", 0, "nothing",
         "an object"},
        {"[{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{}}},"
         "{\"function\":{\"name\":null,\"arguments\":{}}}]}]",
         "messages.tool_calls[1].function.name", 0, "null", "a string"},
        {"[{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"f\"}}]}]",
         "messages.tool_calls[0].function.arguments", 0, "nothing",
         "an object, or its JSON text as a string"},
        {"[{\"role\":\"system\",\"tools\":[{\"name\":\"f\"}]}]", "messages.tools[0].function", 0, "nothing",
         "an object"},
        {"[{\"role\":\"user\",\"content\":\"\xC3\"}]", "messages", 27, "byte 0xC3", "UTF-8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        plumb_error err;
        char *prompt = prompt_of(cases[i].messages, (plumb_chat_options){0}, &err);
        T_CHECK(!prompt && err.status == PLUMB_ERROR_TEXT, "case %zu", i);
        T_CHECK(!strcmp(err.field, cases[i].field), "case %zu: field %s", i, err.field);
        T_CHECK(err.offset == cases[i].offset, "case %zu: offset %" PRId64, i, err.offset);
        T_CHECK(!strcmp(err.found, cases[i].found), "case %zu: found %s", i, err.found);
        T_CHECK(!strcmp(err.expected, cases[i].expected), "case %zu: expected %s", i, err.expected);
        free(prompt);
    }
    plumb_error err;
    T_CHECK(!prompt_of("[{\"role\":\"user\"}]", (plumb_chat_options){.effort = 101}, &err), "");
    T_CHECK(err.status == PLUMB_ERROR_ARGUMENT && !strcmp(err.found, "101"), "");
    T_CHECK(!prompt_of("[{\"role\":\"user\"}]", (plumb_chat_options){.effort = -1}, &err), "");
}

/* 4,096 calls whose results arrive backwards. */
static void many_results(void) {
    enum { CALLS = 4096 };
    plumb__buffer messages = {0};
    char part[160];
    plumb__buffer_text(&messages, "[{\"role\":\"assistant\",\"tool_calls\":[");
    for (int i = 0; i < CALLS; i++) {
        (void)snprintf(part, sizeof part, "%s{\"id\":\"c%d\",\"function\":{\"name\":\"f\",\"arguments\":{}}}",
                       i ? "," : "", i);
        plumb__buffer_text(&messages, part);
    }
    plumb__buffer_text(&messages, "]}");
    for (int i = CALLS - 1; i >= 0; i--) {
        (void)snprintf(part, sizeof part, ",{\"role\":\"tool\",\"tool_call_id\":\"c%d\",\"content\":\"r%d\"}", i, i);
        plumb__buffer_text(&messages, part);
    }
    plumb__buffer_append(&messages, "]", 2);
    plumb_error err;
    char *prompt = prompt_of(messages.bytes, (plumb_chat_options){0}, &err);
    const char *at = prompt;
    for (int i = 0; i < CALLS && at; i++) {
        (void)snprintf(part, sizeof part, "<tool_result>r%d</tool_result>", i);
        at = strstr(at, part);
    }
    T_CHECK(at != NULL, "");
    free(prompt);
    plumb__buffer_free(&messages);
}

T_MAIN({"published_examples", published_examples}, {"arguments_of_calls", arguments_of_calls},
       {"user_messages", user_messages}, {"headers_and_reasoning", headers_and_reasoning},
       {"peoples_text_is_text", peoples_text_is_text},
       {"tools_block_has_controls", tools_block_has_controls}, {"refusals", refusals},
       {"many_results", many_results})
