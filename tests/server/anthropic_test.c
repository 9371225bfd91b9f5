/* POST /v1/messages and count_tokens: what is read, what is refused, and what is told. */
#include "server/api.h"

#include "t.h"

#include "api_fixture.h"
#include "generation_json.h"
#include "recorder.h"
#include "script.h"

typedef struct server {
    plumb_text *text;
    plumb_sampling sampling;
    plumb_api_context context;
} server;

static void server_open(server *s) { s->context = fixture_context(&s->text, &s->sampling); }
static void server_close(server *s) { plumb_text_close(s->text); }

static bool server_read(server *s, const plumb_api *api, const char *body, plumb_api_request **request,
                        plumb_generation **g, plumb_api_error *error) {
    return api->read(&s->context, NULL, body, strlen(body), request, g, error) == PLUMB_OK;
}

static recorder answer(const char *members, const char *script) {
    server s;
    plumb_api_request *request = NULL;
    plumb_generation *g = NULL;
    plumb_api_error error;
    recorder r = RECORDER;
    char body[600];
    server_open(&s);
    snprintf(body, sizeof body, "{\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":\"Q\"}]%s}", members);
    bool taken = server_read(&s, &plumb__anthropic_messages, body, &request, &g, &error);
    T_CHECK(taken, "%s: %s", body, error.message);
    if (taken) {
        script_play(&plumb__anthropic_messages, request, script, &r.response);
        T_CHECK(r.begins == 1 && r.ends == 1, "%s: begun %d times, ended %d", script, r.begins, r.ends);
    }
    plumb__generation_destroy(g);
    plumb__anthropic_messages.destroy(request);
    server_close(&s);
    return r;
}

/* ---- Reading ---- */

#define USER(text) "{\"role\":\"user\",\"content\":\"" text "\"}"
#define SAID(text) "{\"role\":\"assistant\",\"content\":\"" text "\"}"
#define ASK(members) "{\"max_tokens\":9,\"messages\":[" USER("Q") "]" members "}"
#define SAY(messages) "{\"max_tokens\":9,\"messages\":[" messages "]}"
#define SCHEMA "{\"type\":\"object\",\"properties\":{\"q\":{\"type\":\"number\",\"minimum\":0.1}}}"
#define TOOL "{\"name\":\"look\",\"description\":\"d\",\"input_schema\":" SCHEMA ",\"cache_control\":{\"type\":\"ephemeral\"}}"
#define TOOLS ",\"tools\":[" TOOL "]"
#define SYSTEM_TOOLS "{\"role\":\"system\",\"content\":\"\",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"look\"," \
                     "\"description\":\"d\",\"parameters\":" SCHEMA "}}]}"
/* What every generation of this API has, beside its messages. */
#define READ(members, messages) "{\"call_prefix\":\"toolu_\",\"most_tokens\":9" members ",\"messages\":[" messages "]}"
#define THINKING(members, messages) READ(",\"thinking\":1" members, messages)

#define CLEAR(type, more) ",\"context_management\":{\"edits\":[{\"type\":\"" type "\"" more "}]}"
#define CLEAR_THINKING(more) CLEAR("clear_thinking_20251015", more)
#define THOUGHT(text) ",\"reasoning_content\":\"" text "\""
/* Two turns that thought, the second of which has a call in its middle. */
#define TURNS(more) "{\"max_tokens\":9" more ",\"messages\":[" USER("Q") ",{\"role\":\"assistant\",\"content\":[" \
    "{\"type\":\"thinking\",\"thinking\":\"1\",\"signature\":\"s\"},{\"type\":\"text\",\"text\":\"A\"}]}," USER("R") "," \
    "{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"2\",\"signature\":\"s\"}," \
    "{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"look\",\"input\":{}}]},{\"role\":\"user\",\"content\":[" \
    "{\"type\":\"tool_result\",\"tool_use_id\":\"t\",\"content\":\"r\"}]},{\"role\":\"assistant\",\"content\":[" \
    "{\"type\":\"thinking\",\"thinking\":\"3\",\"signature\":\"s\"},{\"type\":\"text\",\"text\":\"B\"}]}," USER("S") "]}"
#define TURNS_WITH(first, second, third) USER("Q") ",{\"role\":\"assistant\",\"content\":\"A\"" first "}," USER("R") "," \
    "{\"role\":\"assistant\",\"content\":\"\"" second ",\"tool_calls\":[{\"id\":\"t\",\"type\":\"function\",\"function\":{" \
    "\"name\":\"look\",\"arguments\":{}}}]},{\"role\":\"tool\",\"tool_call_id\":\"t\",\"content\":\"r\"}," \
    "{\"role\":\"assistant\",\"content\":\"B\"" third "}," USER("S")

static const struct {
    const char *body, *generation;
} taken[] = {
    {ASK(""), THINKING("", USER("Q"))},
    {ASK(",\"model\":\"m\",\"metadata\":{\"user_id\":\"u\"},\"service_tier\":\"auto\",\"unknown\":[],\"container\":null"),
     THINKING("", USER("Q"))},
    {ASK(",\"system\":\"S\",\"temperature\":0.5,\"top_p\":0.25,\"top_k\":7,\"stop_sequences\":[\"END\",\"x\"]"),
     THINKING(",\"temperature\":0.5,\"top_p\":0.25,\"top_k\":7,\"stop\":[\"END\",\"x\"]",
              "{\"role\":\"system\",\"content\":\"S\"}," USER("Q"))},
    {ASK(",\"system\":[{\"type\":\"text\",\"text\":\"S\",\"cache_control\":{\"type\":\"ephemeral\"}},"
         "{\"type\":\"text\",\"text\":\"T\"}]" TOOLS),
     THINKING(",\"tools_offered\":1",
              "{\"role\":\"system\",\"content\":[{\"type\":\"text\",\"text\":\"S\"},{\"type\":\"text\",\"text\":\"T\"}],"
              "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"look\",\"description\":\"d\",\"parameters\":" SCHEMA
              "}}]}," USER("Q"))},
    /* A round of calls.  Inputs keep their types; results stand where they stood. */
    {"{\"max_tokens\":9" TOOLS ",\"messages\":[" USER("Q") ",{\"role\":\"assistant\",\"content\":["
     "{\"type\":\"thinking\",\"thinking\":\"Hm.\",\"signature\":\"s\"},{\"type\":\"redacted_thinking\",\"data\":\"x\"},"
     "{\"type\":\"text\",\"text\":\"I \"},{\"type\":\"text\",\"text\":\"look.\"},"
     "{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"look\",\"input\":{\"q\":1.0,\"s\":\"2\"}},"
     "{\"type\":\"tool_use\",\"id\":\"toolu_2\",\"name\":\"look\",\"input\":{}}]},"
     "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"toolu_2\",\"is_error\":true,"
     "\"content\":[{\"type\":\"text\",\"text\":\"no\"},{\"type\":\"text\",\"text\":\"thing\"}]},"
     "{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"},"
     "{\"type\":\"tool_result\",\"tool_use_id\":\"toolu_1\",\"content\":\"one\"},"
     "{\"type\":\"tool_result\",\"tool_use_id\":\"toolu_3\",\"is_error\":true},{\"type\":\"text\",\"text\":\"c\"}]}]}",
     THINKING(",\"tools_offered\":1", SYSTEM_TOOLS "," USER("Q") ","
     "{\"role\":\"assistant\",\"content\":\"I look.\",\"reasoning_content\":\"Hm.\",\"tool_calls\":["
     "{\"id\":\"toolu_1\",\"type\":\"function\",\"function\":{\"name\":\"look\",\"arguments\":{\"q\":1.0,\"s\":\"2\"}}},"
     "{\"id\":\"toolu_2\",\"type\":\"function\",\"function\":{\"name\":\"look\",\"arguments\":{}}}]},"
     "{\"role\":\"tool\",\"tool_call_id\":\"toolu_2\",\"content\":[{\"type\":\"text\",\"text\":\"Error: no\"},"
     "{\"type\":\"text\",\"text\":\"thing\"}]},"
     "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]},"
     "{\"role\":\"tool\",\"tool_call_id\":\"toolu_1\",\"content\":\"one\"},"
     "{\"role\":\"tool\",\"tool_call_id\":\"toolu_3\",\"content\":\"Error: \"}," USER("c"))},
    /* Neighbours of one role are one turn; a system message in the middle. */
    {SAY(USER("Q") "," SAID("A") ",{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"B\"}]},"
         "{\"role\":\"system\",\"content\":\"S\"}," USER("R")),
     THINKING("", USER("Q") "," SAID("A\\n\\nB") ",{\"role\":\"system\",\"content\":\"S\"}," USER("R"))},
    /* Nothing said. */
    {SAY("{\"role\":\"user\",\"content\":[]}"), THINKING("", USER(""))},
    {SAY("{\"role\":\"system\",\"content\":\"S\"}"), THINKING("", "{\"role\":\"system\",\"content\":\"S\"}," USER(""))},
    {SAY("{\"role\":\"assistant\",\"content\":[]}"), READ("", "{\"role\":\"assistant\",\"content\":\"\",\"wo_eos\":true}")},
    /* An answer to go on with. */
    {SAY(USER("Q") "," SAID("It is")),
     READ("", USER("Q") ",{\"role\":\"assistant\",\"content\":\"It is\",\"wo_eos\":true}")},
    /* Thinking. */
    {ASK(",\"thinking\":{\"type\":\"disabled\"}"), READ("", USER("Q"))},
    {ASK(",\"thinking\":{\"type\":\"adaptive\"},\"output_config\":{\"effort\":\"max\"}"),
     THINKING(",\"effort\":100", USER("Q"))},
    {"{\"max_tokens\":200000,\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":1024},\"messages\":[" USER("Q") "]}",
     "{\"call_prefix\":\"toolu_\",\"most_tokens\":200000,\"thinking\":1,\"effort\":25,\"messages\":[" USER("Q") "]}"},
    {"{\"max_tokens\":200000,\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":4096},\"messages\":[" USER("Q") "]}",
     "{\"call_prefix\":\"toolu_\",\"most_tokens\":200000,\"thinking\":1,\"effort\":50,\"messages\":[" USER("Q") "]}"},
    {"{\"max_tokens\":200000,\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":100000},\"messages\":[" USER("Q") "]}",
     "{\"call_prefix\":\"toolu_\",\"most_tokens\":200000,\"thinking\":1,\"effort\":100,\"messages\":[" USER("Q") "]}"},
    {"{\"max_tokens\":200000,\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":1024},"
     "\"output_config\":{\"effort\":\"low\"},\"messages\":[" USER("Q") "]}",
     "{\"call_prefix\":\"toolu_\",\"most_tokens\":200000,\"thinking\":1,\"effort\":50,\"messages\":[" USER("Q") "]}"},
    /* Choices of tools, formats. */
    {ASK(TOOLS ",\"tool_choice\":{\"type\":\"any\",\"disable_parallel_tool_use\":true}"),
     THINKING(",\"tools_offered\":1,\"grammar\":1", SYSTEM_TOOLS "," USER("Q"))},
    {ASK(TOOLS ",\"tool_choice\":{\"type\":\"tool\",\"name\":\"look\"}"),
     THINKING(",\"tools_offered\":1,\"grammar\":1", SYSTEM_TOOLS "," USER("Q"))},
    {ASK(",\"tool_choice\":{\"type\":\"none\"}"), THINKING("", USER("Q"))},
    {ASK(",\"output_config\":{\"format\":{\"type\":\"json_schema\",\"schema\":{\"type\":\"string\"}}}"),
     THINKING(",\"grammar\":1", "{\"role\":\"system\",\"content\":\"\",\"response_format\":{\"type\":\"string\"}}," USER("Q"))},
    {ASK(",\"output_format\":{\"type\":\"json_schema\",\"schema\":{\"type\":\"string\"}}"),
     THINKING(",\"grammar\":1", "{\"role\":\"system\",\"content\":\"\",\"response_format\":{\"type\":\"string\"}}," USER("Q"))},
    /* What is to be left out of the prompt. */
    {ASK(",\"context_management\":{\"edits\":[]},\"mcp_servers\":[]"), THINKING("", USER("Q"))},
    {TURNS(CLEAR_THINKING(",\"keep\":\"all\"")),
     THINKING(",\"keep_reasoning\":1", TURNS_WITH(THOUGHT("1"), THOUGHT("2"), THOUGHT("3")))},
    {TURNS(CLEAR_THINKING(",\"keep\":{\"type\":\"all\"}")),
     THINKING(",\"keep_reasoning\":1", TURNS_WITH(THOUGHT("1"), THOUGHT("2"), THOUGHT("3")))},
    {TURNS(CLEAR_THINKING(",\"keep\":{\"type\":\"thinking_turns\",\"value\":2}")),
     THINKING(",\"keep_reasoning\":1", TURNS_WITH(THOUGHT("1"), THOUGHT("2"), THOUGHT("3")))},
    {TURNS(CLEAR_THINKING(",\"keep\":{\"type\":\"thinking_turns\",\"value\":1}")),
     THINKING(",\"keep_reasoning\":1", TURNS_WITH("", THOUGHT("2"), THOUGHT("3")))},
    {TURNS(CLEAR_THINKING("")), THINKING(",\"keep_reasoning\":1", TURNS_WITH("", THOUGHT("2"), THOUGHT("3")))},
};

static void reading(void) {
    server s;
    server_open(&s);
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        plumb_api_request *request = NULL;
        plumb_generation *g = NULL;
        plumb_api_error error;
        bool ok = server_read(&s, &plumb__anthropic_messages, taken[i].body, &request, &g, &error);
        T_CHECK(ok, "%s: %s %s", taken[i].body, error.param, error.message);
        json_t *found = ok ? describe_generation(g) : NULL;
        check_json(taken[i].body, found, taken[i].generation);
        json_decref(found);
        plumb__generation_destroy(g);
        plumb__anthropic_messages.destroy(request);
    }
    server_close(&s);
}

#define BLOCK(role, members) SAY("{\"role\":\"" role "\",\"content\":[{" members "}]}")
#define HERE "messages[0].content[0]"

static const struct {
    const char *body, *param, *message;
} refused[] = {
    {"[]", "", "not a JSON object"},
    {"{\"messages\":[" USER("Q") "]}", "max_tokens", "missing"},
    {"{\"max_tokens\":9}", "messages", "missing"},
    {"{\"max_tokens\":9,\"messages\":[]}", "messages", "empty"},
    {"{\"max_tokens\":9,\"messages\":{}}", "messages", "expected an array"},
    {"{\"max_tokens\":0,\"messages\":[" USER("Q") "]}", "max_tokens", "expected 1"},
    {"{\"max_tokens\":\"9\",\"messages\":[" USER("Q") "]}", "max_tokens", "expected a whole number"},
    {SAY("7"), "messages[0]", "expected an object"},
    {SAY("{\"content\":\"x\"}"), "messages[0].role", "missing"},
    {SAY("{\"role\":\"tool\",\"content\":\"x\"}"), "messages[0].role", "expected one of"},
    {SAY("{\"role\":\"user\"}"), "messages[0].content", "missing"},
    {SAY("{\"role\":\"user\",\"content\":{}}"), "messages[0].content", "neither"},
    {SAY("{\"role\":\"user\",\"content\":[7]}"), HERE, "expected an object"},
    {BLOCK("user", "\"text\":\"x\""), HERE ".type", "missing"},
    {BLOCK("user", "\"type\":\"text\""), HERE ".text", "missing"},
    {BLOCK("user", "\"type\":\"image\",\"source\":{}"), HERE ".type", "image input is not supported"},
    {BLOCK("user", "\"type\":\"document\""), HERE ".type", "document input is not supported"},
    {BLOCK("user", "\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"n\",\"input\":{}"), HERE ".type", "of the user"},
    {BLOCK("assistant", "\"type\":\"tool_result\",\"tool_use_id\":\"t\""), HERE ".type", "of the assistant"},
    {BLOCK("user", "\"type\":\"tool_result\""), HERE ".tool_use_id", "missing"},
    {BLOCK("user", "\"type\":\"tool_result\",\"tool_use_id\":\"t\",\"is_error\":1"), HERE ".is_error", "expected a boolean"},
    {BLOCK("user", "\"type\":\"tool_result\",\"tool_use_id\":\"t\",\"content\":7"), HERE ".content", "neither"},
    {BLOCK("user", "\"type\":\"tool_result\",\"tool_use_id\":\"t\",\"content\":[{\"type\":\"image\"}]"),
     HERE ".content[0].type", "not supported"},
    {BLOCK("assistant", "\"type\":\"thinking\""), HERE ".thinking", "missing"},
    {BLOCK("assistant", "\"type\":\"tool_use\",\"name\":\"n\",\"input\":{}"), HERE ".id", "missing"},
    {BLOCK("assistant", "\"type\":\"tool_use\",\"id\":\"t\",\"input\":{}"), HERE ".name", "missing"},
    {BLOCK("assistant", "\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"n\""), HERE ".input", "no object"},
    {BLOCK("assistant", "\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"n\",\"input\":{}"), "messages", "results are missing"},
    {ASK(",\"system\":7"), "system", "neither"},
    {ASK(",\"system\":[{\"type\":\"image\"}]"), "system[0].type", "not supported"},
    {ASK(",\"stream\":\"yes\""), "stream", "expected a boolean"},
    {ASK(",\"temperature\":1.5"), "temperature", "expected 0 to 1"},
    {ASK(",\"top_p\":2"), "top_p", "expected 0 to 1"},
    {ASK(",\"top_k\":-1"), "top_k", "expected 0"},
    {ASK(",\"stop_sequences\":\"END\""), "stop_sequences", "expected an array"},
    {ASK(",\"stop_sequences\":[\"\"]"), "stop_sequences", "empty string"},
    {ASK(",\"metadata\":7"), "metadata", "expected an object"},
    {ASK(",\"service_tier\":\"gold\""), "service_tier", "expected one of"},
    {ASK(",\"container\":\"c\""), "container", "not supported"},
    {ASK(",\"mcp_servers\":[{}]"), "mcp_servers", "not supported"},
    {ASK(",\"compaction\":{}"), "compaction", "not supported"},
    {ASK(",\"repetition_penalty\":1.1"), "repetition_penalty", "not supported, except 1"},
    {ASK(",\"thread\":{\"id\":\"x\"}"), "thread", "not supported"},
    {ASK(CLEAR("clear_tool_uses_20250919", "")), "context_management.edits[0].type", "only clear_thinking_20251015"},
    {ASK(",\"context_management\":{\"edits\":[{}]}"), "context_management.edits[0].type", "not supported"},
    {ASK(",\"context_management\":{\"edits\":[7]}"), "context_management.edits[0]", "expected an object"},
    {ASK(",\"context_management\":[]"), "context_management", "expected an object"},
    {ASK(CLEAR_THINKING(",\"keep\":\"some\"")), "context_management.edits[0].keep", "expected one of"},
    {ASK(CLEAR_THINKING(",\"keep\":{}")), "context_management.edits[0].keep.type", "missing"},
    {ASK(CLEAR_THINKING(",\"keep\":{\"type\":\"thinking_turns\",\"value\":0}")),
     "context_management.edits[0].keep.value", "expected 1 to"},
    {ASK(",\"output_config\":{\"task_budget\":{\"type\":\"tokens\",\"total\":9}}"), "output_config.task_budget", "not supported"},
    {ASK(",\"output_format\":{\"type\":\"json_schema\"}"), "output_format.schema", "missing"},
    {ASK(",\"thinking\":{}"), "thinking.type", "missing"},
    {ASK(",\"thinking\":{\"type\":\"perhaps\"}"), "thinking.type", "expected one of"},
    {ASK(",\"thinking\":{\"type\":\"enabled\"}"), "thinking.budget_tokens", "missing"},
    {ASK(",\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":1000}"), "thinking.budget_tokens", "expected 1024"},
    {ASK(",\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":1024}"), "thinking.budget_tokens", "less than"},
    {"{\"max_tokens\":2000,\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":2000},\"messages\":[" USER("Q") "]}",
     "thinking.budget_tokens", "less than"},
    {ASK(",\"output_config\":{\"effort\":\"huge\"}"), "output_config.effort", "expected one of"},
    {ASK(",\"output_config\":{\"format\":{}}"), "output_config.format.type", "missing"},
    {ASK(",\"output_config\":{\"format\":{\"type\":\"json_schema\"}}"), "output_config.format.schema", "missing"},
    {ASK(",\"tools\":{}"), "tools", "expected an array"},
    {ASK(",\"tools\":[{\"type\":\"bash_20250124\",\"name\":\"bash\"}]"), "tools[0].type", "not supported"},
    {ASK(",\"tools\":[{\"input_schema\":{}}]"), "tools[0].name", "missing"},
    {ASK(",\"tools\":[{\"name\":\"a<b\",\"input_schema\":{}}]"), "tools[0].name", "expected letters"},
    {ASK(",\"tools\":[{\"name\":\"a\"}]"), "tools[0].input_schema", "missing"},
    {ASK(",\"tools\":[{\"name\":\"a\",\"description\":7,\"input_schema\":{}}]"), "tools[0].description", "expected a string"},
    {ASK(",\"tool_choice\":{\"type\":\"any\"}"), "tool_choice", "no tools"},
    {ASK(",\"tool_choice\":\"any\""), "tool_choice", "expected an object"},
    {ASK(",\"tool_choice\":{}"), "tool_choice.type", "missing"},
    {ASK(TOOLS ",\"tool_choice\":{\"type\":\"tool\"}"), "tool_choice.name", "missing"},
    {ASK(TOOLS ",\"tool_choice\":{\"type\":\"tool\",\"name\":\"x\"}"), "tool_choice", "not among"},
    {ASK(TOOLS ",\"tool_choice\":{\"type\":\"auto\",\"disable_parallel_tool_use\":1}"),
     "tool_choice.disable_parallel_tool_use", "expected a boolean"},
    {"{\"max_tokens\":9000,\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":2000},\"messages\":[" USER("Q") "," SAID("A") "]}",
     "messages", "cannot be continued with thinking"},
};

static void refusing(void) {
    server s;
    server_open(&s);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        plumb_api_request *request = NULL;
        plumb_generation *g = NULL;
        plumb_api_error error;
        bool ok = server_read(&s, &plumb__anthropic_messages, refused[i].body, &request, &g, &error);
        T_CHECK(!ok && !request && !g, "%s was taken", refused[i].body);
        T_CHECK(error.refusal == PLUMB_REFUSAL_BAD_REQUEST && strcmp(error.param, refused[i].param) == 0 &&
                    strstr(error.message, refused[i].message), "%s: '%s' %s", refused[i].body, error.param, error.message);
    }
    server_close(&s);
}

/* ---- Telling ---- */

#define LONG_SCRIPT "start\nprogress\nthink Let me\nthink  see.\nsay I\nsay  look.\ncall 0 look\nargs 0 {\"q\":\n" \
                    "args 0  1.10}\nend 0\ncall 1 look\nargs 1 {\"n\": 12345678901234567890}\nend 1\ncalls"
#define COUNTS "{\"input_tokens\":60,\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":40," \
    "\"output_tokens\":20,\"output_tokens_details\":{\"thinking_tokens\":5},\"server_tool_use\":null"
#define USAGE COUNTS ",\"cache_creation\":{\"ephemeral_5m_input_tokens\":0,\"ephemeral_1h_input_tokens\":0}," \
    "\"inference_geo\":null,\"service_tier\":null,\"speed\":null}"

/* To the byte, since inputs must keep the spelling of their numbers. */
static void whole(void) {
    recorder r = answer("", LONG_SCRIPT);
    static const char wanted[] =
        "{\"id\":\"msg_0123456789abcdefghijklmn\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"demo\","
        "\"diagnostics\":null,\"usage\":" USAGE ",\"stop_reason\":\"tool_use\",\"stop_sequence\":null,\"stop_details\":null,"
        "\"container\":null,\"content\":["
        "{\"type\":\"thinking\",\"thinking\":\"Let me see.\",\"signature\":\"cGx1bWI=\"},"
        "{\"type\":\"text\",\"text\":\"I look.\",\"citations\":null},"
        "{\"type\":\"tool_use\",\"id\":\"call_0\",\"name\":\"look\",\"caller\":{\"type\":\"direct\"},\"input\":{\"q\": 1.10}},"
        "{\"type\":\"tool_use\",\"id\":\"call_1\",\"name\":\"look\",\"caller\":{\"type\":\"direct\"},"
        "\"input\":{\"n\": 12345678901234567890}}]}";
    T_CHECK(r.status == 200 && !r.streaming && strcmp(r.content_type, "application/json") == 0, "%d", r.status);
    T_CHECK((size_t)r.bytes.size == strlen(wanted) && memcmp(r.bytes.bytes, wanted, strlen(wanted)) == 0, "%.*s",
            (int)r.bytes.size, r.bytes.bytes);
    recorder_free(&r);
}

#define START "\"message_start:\",{\"type\":\"message_start\",\"message\":{\"id\":\"msg_0123456789abcdefghijklmn\"," \
    "\"type\":\"message\",\"role\":\"assistant\",\"model\":\"demo\",\"diagnostics\":null,\"usage\":" USAGE "," \
    "\"stop_reason\":null,\"stop_sequence\":null,\"stop_details\":null,\"container\":null,\"content\":[]}}"
#define OPEN(index, block) "\"content_block_start:\",{\"type\":\"content_block_start\",\"index\":" index ",\"content_block\":" block "}"
#define DELTA(index, kind, key, text) "\"content_block_delta:\",{\"type\":\"content_block_delta\",\"index\":" index \
    ",\"delta\":{\"type\":\"" kind "\",\"" key "\":\"" text "\"}}"
#define CLOSE(index) "\"content_block_stop:\",{\"type\":\"content_block_stop\",\"index\":" index "}"
#define END(reason, sequence) "\"message_delta:\",{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"" reason \
    "\",\"stop_sequence\":" sequence ",\"stop_details\":null,\"container\":null},\"usage\":" COUNTS "}}," \
    "\"message_stop:\",{\"type\":\"message_stop\"}"
#define CALL(id) "{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"look\",\"caller\":{\"type\":\"direct\"},\"input\":{}}"
#define TEXT_BLOCK "{\"type\":\"text\",\"text\":\"\",\"citations\":null}"
#define THINKING_BLOCK "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}"

static const struct {
    const char *members, *script, *events;
} streams[] = {
    {"", LONG_SCRIPT,
     START ",\"ping:\",{\"type\":\"ping\"}," OPEN("0", THINKING_BLOCK) "," DELTA("0", "thinking_delta", "thinking", "Let me")
     "," DELTA("0", "thinking_delta", "thinking", " see.") "," DELTA("0", "signature_delta", "signature", "cGx1bWI=") ","
     CLOSE("0") "," OPEN("1", TEXT_BLOCK) "," DELTA("1", "text_delta", "text", "I") "," DELTA("1", "text_delta", "text", " look.")
     "," CLOSE("1") "," OPEN("2", CALL("call_0")) "," DELTA("2", "input_json_delta", "partial_json", "{\\\"q\\\":") ","
     DELTA("2", "input_json_delta", "partial_json", " 1.10}") "," CLOSE("2") "," OPEN("3", CALL("call_1")) ","
     DELTA("3", "input_json_delta", "partial_json", "{\\\"n\\\": 12345678901234567890}") "," CLOSE("3") ","
     END("tool_use", "null")},
    {"", "start\nstop", START "," END("end_turn", "null")},
    {"", "start\nsay A\nstopped END",
     START "," OPEN("0", TEXT_BLOCK) "," DELTA("0", "text_delta", "text", "A") "," CLOSE("0") ","
     END("stop_sequence", "\"END\"")},
    {"", "start\nthink A\nlength",
     START "," OPEN("0", THINKING_BLOCK) "," DELTA("0", "thinking_delta", "thinking", "A") ","
     DELTA("0", "signature_delta", "signature", "cGx1bWI=") "," CLOSE("0") "," END("max_tokens", "null")},
    /* Thinking that is not to be shown leaves its signature. */
    {",\"thinking\":{\"type\":\"adaptive\",\"display\":\"omitted\"}", "start\nthink A\nsay B\nstop",
     START "," OPEN("0", THINKING_BLOCK) "," DELTA("0", "signature_delta", "signature", "cGx1bWI=") "," CLOSE("0") ","
     OPEN("1", TEXT_BLOCK) "," DELTA("1", "text_delta", "text", "B") "," CLOSE("1") "," END("end_turn", "null")},
    /* A call that breaks off at the limit ends as it is; anywhere else the message is not to be used. */
    {"", "start\ncall 0 look\nargs 0 {\ndrop 0\nlength",
     START "," OPEN("0", CALL("call_0")) "," DELTA("0", "input_json_delta", "partial_json", "{") "," CLOSE("0") ","
     END("max_tokens", "null")},
    {"", "start\ncall 0 look\nargs 0 {\ndrop 0\nstop",
     START "," OPEN("0", CALL("call_0")) "," DELTA("0", "input_json_delta", "partial_json", "{") "," CLOSE("0") ","
     "\"error:\",{\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"the model broke off in the middle of a call\"},\"request_id\":null}"},
    {",\"tools\":[" TOOL "],\"tool_choice\":{\"type\":\"auto\",\"disable_parallel_tool_use\":true}",
     "start\ncall 0 look\nargs 0 {}\nend 0\ncall 1 look\nargs 1 {}\nend 1\ncalls",
     START "," OPEN("0", CALL("call_0")) "," DELTA("0", "input_json_delta", "partial_json", "{}") "," CLOSE("0") ","
     END("tool_use", "null")},
    {"", "start\nsay A\nfail internal",
     START "," OPEN("0", TEXT_BLOCK) "," DELTA("0", "text_delta", "text", "A") ","
     "\"error:\",{\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"a NaN\"},\"request_id\":null}"},
};

static void stream(void) {
    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++) {
        char members[400], wanted[5000];
        snprintf(members, sizeof members, ",\"stream\":true%s", streams[i].members);
        snprintf(wanted, sizeof wanted, "[%s]", streams[i].events);
        recorder r = answer(members, streams[i].script);
        T_CHECK(r.status == 200 && r.streaming, "%s: %d", streams[i].script, r.status);
        json_t *events = recorder_events(&r);
        check_json(streams[i].script, events, wanted);
        json_decref(events);
        recorder_free(&r);
    }
}

/* Without a stream: content and reason. */
static const struct {
    const char *script, *content, *reason;
} wholes[] = {
    {"start\nstop", "[]", "\"end_turn\""},
    {"start\nsay A\nstopped END", "[{\"type\":\"text\",\"text\":\"A\",\"citations\":null}]", "\"stop_sequence\""},
    {"start\ncall 0 look\nargs 0 {\ndrop 0\nsay A\nlength", "[{\"type\":\"text\",\"text\":\"A\",\"citations\":null}]",
     "\"max_tokens\""},
};

static void wholes_of_other_kinds(void) {
    for (size_t i = 0; i < sizeof wholes / sizeof wholes[0]; i++) {
        recorder r = answer("", wholes[i].script);
        json_t *body = recorder_body(&r);
        check_json(wholes[i].script, json_object_get(body, "content"), wholes[i].content);
        check_json(wholes[i].script, json_object_get(body, "stop_reason"), wholes[i].reason);
        json_decref(body);
        recorder_free(&r);
    }
}

/* ---- Errors ---- */

static const struct {
    plumb_refusal refusal;
    int status;
    const char *type;
} errors[] = {
    {PLUMB_REFUSAL_BAD_REQUEST, 400, "invalid_request_error"}, {PLUMB_REFUSAL_UNAUTHORIZED, 401, "authentication_error"},
    {PLUMB_REFUSAL_NOT_FOUND, 404, "not_found_error"},         {PLUMB_REFUSAL_METHOD, 405, "invalid_request_error"},
    {PLUMB_REFUSAL_TOO_LARGE, 413, "request_too_large"},       {PLUMB_REFUSAL_CONTEXT, 400, "invalid_request_error"},
    {PLUMB_REFUSAL_BUSY, 429, "rate_limit_error"},             {PLUMB_REFUSAL_INTERNAL, 500, "api_error"},
    {PLUMB_REFUSAL_STOPPING, 503, "overloaded_error"},
};

static void refusals(void) {
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        plumb_api_error error = {errors[i].refusal, "a.b", "is wrong \xff"};
        char wanted[200];
        recorder r = RECORDER;
        plumb__anthropic_messages.refuse(&error, &r.response);
        json_t *body = recorder_body(&r);
        snprintf(wanted, sizeof wanted,
                 "{\"type\":\"error\",\"error\":{\"type\":\"%s\",\"message\":\"a.b: is wrong \uFFFD\"},\"request_id\":null}",
                 errors[i].type);
        T_CHECK(r.status == errors[i].status, "%s: %d", errors[i].type, r.status);
        check_json(errors[i].type, body, wanted);
        json_decref(body);
        recorder_free(&r);
    }
}

static void early_failure(void) {
    recorder r = answer(",\"stream\":true", "fail busy");
    json_t *body = recorder_body(&r);
    T_CHECK(r.status == 429 && !r.streaming, "%d", r.status);
    check_json("busy", body, "{\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\","
                             "\"message\":\"the queue is full\"},\"request_id\":null}");
    json_decref(body);
    recorder_free(&r);
}

/* ---- Counting ---- */

/* As many as the encoder makes of what /v1/messages would have it encode. */
static void counting(void) {
    server s;
    server_open(&s);
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        plumb_api_request *request = NULL, *counted = NULL;
        plumb_generation *g = NULL, *none = NULL;
        plumb_api_error error;
        plumb_tokens tokens = {0};
        char wanted[60];
        recorder r = RECORDER;
        if (!server_read(&s, &plumb__anthropic_messages, taken[i].body, &request, &g, &error)) continue;
        plumb_chat_options options = {.thinking = g->thinking, .effort = g->effort, .keep_reasoning = g->keep_reasoning};
        T_CHECK(plumb_chat_encode(s.text, g->messages, &options, &tokens, NULL) == PLUMB_OK && tokens.count > 0, "encoder");
        bool ok = server_read(&s, &plumb__anthropic_count_tokens, taken[i].body, &counted, &none, &error);
        T_CHECK(ok && !none, "%s: %s", taken[i].body, error.message);
        if (ok) plumb__anthropic_count_tokens.answer(counted, &r.response);
        json_t *body = recorder_body(&r);
        snprintf(wanted, sizeof wanted, "{\"input_tokens\":%lld}", (long long)tokens.count);
        check_json(taken[i].body, body, wanted);
        json_decref(body);
        recorder_free(&r);
        plumb_tokens_free(&tokens);
        plumb__generation_destroy(g);
        plumb__anthropic_messages.destroy(request);
        plumb__anthropic_count_tokens.destroy(counted);
    }
    server_close(&s);
}

static void refused_counts(void) {
    server s;
    plumb_api_request *request = NULL;
    plumb_generation *g = NULL;
    plumb_api_error error;
    server_open(&s);
    T_CHECK(!server_read(&s, &plumb__anthropic_count_tokens, "{}", &request, &g, &error), "taken");
    T_CHECK(strcmp(error.param, "messages") == 0, "%s", error.message);
    T_CHECK(server_read(&s, &plumb__anthropic_count_tokens, "{\"messages\":[" USER("Q") "]}", &request, &g, &error),
            "max_tokens is not needed: %s", error.message);
    plumb__anthropic_count_tokens.destroy(request);
    server_close(&s);
}

T_MAIN({"reading", reading}, {"refusing", refusing}, {"whole", whole}, {"stream", stream},
       {"wholes_of_other_kinds", wholes_of_other_kinds}, {"refusals", refusals}, {"early_failure", early_failure},
       {"counting", counting}, {"refused_counts", refused_counts})
