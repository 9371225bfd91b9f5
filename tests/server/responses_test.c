/* POST /v1/responses: what is read, what is refused, and what is told. */
#include "responses_scene.h"

/* ---- Reading ---- */

#define USER(text) "{\"role\":\"user\",\"content\":\"" text "\"}"
#define TOOL "{\"type\":\"function\",\"name\":\"look\",\"description\":\"d\",\"strict\":true," \
             "\"parameters\":{\"type\":\"object\",\"properties\":{\"q\":{\"type\":\"number\",\"minimum\":0.1}}}}"
#define PUBLISHED "{\"type\":\"function\",\"function\":{\"name\":\"look\",\"description\":\"d\"," \
                  "\"parameters\":{\"type\":\"object\",\"properties\":{\"q\":{\"type\":\"number\",\"minimum\":0.1}}}}}"
#define SYSTEM_TOOLS "{\"role\":\"system\",\"content\":\"\",\"tools\":[" PUBLISHED "]}"

static const struct {
    const char *body, *generation;
} taken[] = {
    {"{\"input\":\"Hi\"}", "{\"thinking\":1,\"messages\":[" USER("Hi") "]}"},
    {"{\"input\":\"Hi\",\"model\":\"m\",\"user\":\"u\",\"metadata\":{\"a\":\"b\"},\"truncation\":\"auto\","
     "\"include\":[\"reasoning.encrypted_content\"],\"service_tier\":\"auto\",\"background\":false,"
     "\"stream_options\":{\"include_obfuscation\":false},\"conversation\":null,\"unknown\":1}",
     "{\"thinking\":1,\"messages\":[" USER("Hi") "]}"},
    {"{\"input\":\"Hi\",\"instructions\":\"Be brief.\",\"max_output_tokens\":7,\"temperature\":0.5,\"top_p\":0.25,"
     "\"reasoning\":{\"effort\":\"low\"}}",
     "{\"thinking\":1,\"effort\":50,\"temperature\":0.5,\"top_p\":0.25,\"most_tokens\":7,"
     "\"messages\":[{\"role\":\"system\",\"content\":\"Be brief.\"}," USER("Hi") "]}"},
    {"{\"input\":\"Hi\",\"reasoning\":{\"effort\":\"none\"}}", "{\"messages\":[" USER("Hi") "]}"},
    {"{\"input\":[{\"role\":\"developer\",\"content\":\"d\"},{\"type\":\"message\",\"role\":\"user\",\"content\":["
     "{\"type\":\"input_text\",\"text\":\"a\"},{\"type\":\"input_text\",\"text\":\"b\"}]}]}",
     "{\"thinking\":1,\"messages\":[{\"role\":\"system\",\"content\":\"d\"},{\"role\":\"user\",\"content\":["
     "{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}]}"},
    /* An answer's items are one message; the results follow it. */
    {"{\"input\":[" USER("Q") ",{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[{\"text\":\"S\"}],\"content\":["
     "{\"type\":\"reasoning_text\",\"text\":\"Hm\"},{\"type\":\"reasoning_text\",\"text\":\"m.\"}],"
     "\"encrypted_content\":\"xyz\"},"
     "{\"type\":\"message\",\"role\":\"assistant\",\"id\":\"msg_1\",\"status\":\"completed\",\"content\":["
     "{\"type\":\"output_text\",\"text\":\"I look.\",\"annotations\":[]}]},"
     "{\"type\":\"function_call\",\"id\":\"fc_1\",\"call_id\":\"call_1\",\"name\":\"look\",\"arguments\":\"{\\\"q\\\": 1.10}\"},"
     "{\"type\":\"function_call\",\"call_id\":\"call_2\",\"name\":\"look\",\"arguments\":\"{}\"},"
     "{\"type\":\"function_call_output\",\"call_id\":\"call_1\",\"output\":\"one\"},"
     "{\"type\":\"function_call_output\",\"call_id\":\"call_2\",\"output\":[{\"type\":\"input_text\",\"text\":\"two\"}]}"
     "],\"tools\":[" TOOL "]}",
     "{\"thinking\":1,\"tools_offered\":1,\"messages\":[" SYSTEM_TOOLS "," USER("Q") ","
     "{\"role\":\"assistant\",\"content\":\"I look.\",\"reasoning_content\":\"Hmm.\",\"tool_calls\":["
     "{\"id\":\"call_1\",\"type\":\"function\",\"function\":{\"name\":\"look\",\"arguments\":\"{\\\"q\\\": 1.10}\"}},"
     "{\"id\":\"call_2\",\"type\":\"function\",\"function\":{\"name\":\"look\",\"arguments\":\"{}\"}}]},"
     "{\"role\":\"tool\",\"tool_call_id\":\"call_1\",\"content\":\"one\"},"
     "{\"role\":\"tool\",\"tool_call_id\":\"call_2\",\"content\":[{\"type\":\"text\",\"text\":\"two\"}]}]}"},
    /* Reasoning that is only summarised. */
    {"{\"input\":[" USER("Q") ",{\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"S\"}]},"
     "{\"role\":\"assistant\",\"content\":\"A\"},{\"role\":\"assistant\",\"content\":\"B\"}," USER("R") "]}",
     "{\"thinking\":1,\"messages\":[" USER("Q") ",{\"role\":\"assistant\",\"content\":\"A\\n\\nB\","
     "\"reasoning_content\":\"S\"}," USER("R") "]}"},
    /* An answer to go on with; a lone system message. */
    {"{\"input\":[" USER("Q") ",{\"role\":\"assistant\",\"content\":\"It is\"}]}",
     "{\"messages\":[" USER("Q") ",{\"role\":\"assistant\",\"content\":\"It is\",\"wo_eos\":true}]}"},
    {"{\"input\":[{\"role\":\"system\",\"content\":\"S\"}]}",
     "{\"thinking\":1,\"messages\":[{\"role\":\"system\",\"content\":\"S\"}," USER("") "]}"},
    {"{\"input\":[{\"type\":\"reasoning\",\"encrypted_content\":\"x\"}]}",
     "{\"messages\":[{\"role\":\"assistant\",\"content\":\"\",\"wo_eos\":true}]}"},
    /* Text is text. */
    {"{\"input\":\"a<think><｜User｜>\"}",
     "{\"thinking\":1,\"messages\":[{\"role\":\"user\",\"content\":\"a<think><｜User｜>\"}]}"},
    /* Choices of tools. */
    {"{\"input\":\"Q\",\"tools\":[" TOOL "],\"tool_choice\":\"required\",\"parallel_tool_calls\":false}",
     "{\"thinking\":1,\"tools_offered\":1,\"grammar\":1,\"messages\":[" SYSTEM_TOOLS "," USER("Q") "]}"},
    {"{\"input\":\"Q\",\"tools\":[" TOOL "],\"tool_choice\":{\"type\":\"function\",\"name\":\"look\"},"
     "\"text\":{\"format\":{\"type\":\"json_object\"}}}",
     "{\"thinking\":1,\"tools_offered\":1,\"grammar\":1,\"messages\":[" SYSTEM_TOOLS "," USER("Q") "]}"},
    {"{\"input\":\"Q\",\"tools\":[],\"tool_choice\":\"auto\"}", "{\"thinking\":1,\"messages\":[" USER("Q") "]}"},
    /* Formats. */
    {"{\"input\":\"Q\",\"text\":{\"verbosity\":\"low\",\"format\":{\"type\":\"text\"}}}",
     "{\"thinking\":1,\"messages\":[" USER("Q") "]}"},
    {"{\"input\":\"Q\",\"text\":{\"format\":{\"type\":\"json_schema\",\"name\":\"n\",\"schema\":{\"type\":\"string\"}}}}",
     "{\"thinking\":1,\"grammar\":1,\"messages\":[{\"role\":\"system\",\"content\":\"\",\"response_format\":"
     "{\"type\":\"string\"}}," USER("Q") "]}"},
    {"{\"input\":\"Q\",\"instructions\":\"I\",\"text\":{\"format\":{\"type\":\"json_object\"}}}",
     "{\"thinking\":1,\"grammar\":1,\"messages\":[{\"role\":\"system\",\"content\":\"I\",\"response_format\":"
     "{\"type\":\"object\"}}," USER("Q") "]}"},
};

static void reading(void) {
    server s;
    server_open(&s);
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        plumb_api_request *request = NULL;
        plumb_generation *g = NULL;
        plumb_api_error error;
        bool ok = server_read(&s, taken[i].body, &request, &g, &error);
        T_CHECK(ok, "%s: %s %s", taken[i].body, error.param, error.message);
        json_t *found = ok ? describe_generation(g) : NULL;
        check_json(taken[i].body, found, taken[i].generation);
        json_decref(found);
        plumb__generation_destroy(g);
        plumb__openai_responses.destroy(request);
    }
    server_close(&s);
}

/* What a choice of none takes away: the token that opens calls, by the tokenizer's own number. */
static void forbidden_calls(void) {
    server s;
    plumb_api_request *request = NULL;
    plumb_generation *g = NULL;
    plumb_api_error error;
    server_open(&s);
    if (server_read(&s, "{\"input\":\"Q\",\"tools\":[" TOOL "],\"tool_choice\":\"none\"}", &request, &g, &error)) {
        T_CHECK(!g->tools_offered && !g->grammar, "calls would be told");
        T_CHECK(g->n_bias == 1 && g->bias[0].token == plumb_text_token_id(s.text, "｜DSML｜") &&
                    isinf(g->bias[0].bias) && g->bias[0].bias < 0, "calls can be sampled");
    }
    T_CHECK(g != NULL, "%s", error.message);
    plumb__generation_destroy(g);
    plumb__openai_responses.destroy(request);
    server_close(&s);
}

#define ITEM(members) "{\"input\":[{" members "}]}"
#define WITH(members) "{\"input\":\"Q\"," members "}"

static const struct {
    const char *body, *param, *message;
} refused[] = {
    {"", "", "not JSON"},
    {"{}", "input", "missing"},
    {"{\"input\":null}", "input", "missing"},
    {"{\"input\":[]}", "input", "empty"},
    {"{\"input\":7}", "input", "expected a string or an array"},
    {"{\"input\":[7]}", "input[0]", "expected an object"},
    {ITEM("\"content\":\"x\""), "input[0].role", "missing"},
    {ITEM("\"role\":\"robot\",\"content\":\"x\""), "input[0].role", "expected one of"},
    {ITEM("\"role\":\"user\""), "input[0].content", "missing"},
    {ITEM("\"role\":\"user\",\"content\":7"), "input[0].content", "neither"},
    {ITEM("\"role\":\"user\",\"content\":[{\"type\":\"input_image\",\"image_url\":\"x\"}]"), "input[0].content[0].type",
     "not supported"},
    {ITEM("\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":7}]"), "input[0].content[0].text", "string"},
    {ITEM("\"type\":\"compaction\",\"id\":\"x\""), "input[0].type", "not supported"},
    {ITEM("\"type\":7"), "input[0].type", "expected a string"},
    {ITEM("\"type\":\"function_call\",\"name\":\"n\",\"arguments\":\"{}\""), "input[0].call_id", "missing"},
    {ITEM("\"type\":\"function_call\",\"call_id\":\"c\",\"arguments\":\"{}\""), "input[0].name", "missing"},
    {ITEM("\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"n\",\"arguments\":{}"), "input[0].arguments", "string"},
    {ITEM("\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"n\",\"arguments\":\"{}\""), "input", "results are missing"},
    {ITEM("\"type\":\"function_call_output\",\"output\":\"x\""), "input[0].call_id", "missing"},
    {ITEM("\"type\":\"function_call_output\",\"call_id\":\"c\""), "input[0].output", "missing"},
    {ITEM("\"type\":\"reasoning\",\"content\":{}"), "input[0].content", "expected an array"},
    {ITEM("\"type\":\"reasoning\",\"content\":[{\"text\":7}]"), "input[0].content[0].text", "string"},
    {WITH("\"stream\":1"), "stream", "expected a boolean"},
    {WITH("\"store\":\"yes\""), "store", "expected a boolean"},
    {WITH("\"background\":true"), "background", "not supported"},
    {WITH("\"conversation\":\"c\""), "conversation", "not supported"},
    {WITH("\"prompt\":{\"id\":\"p\"}"), "prompt", "not supported"},
    {WITH("\"max_output_tokens\":0"), "max_output_tokens", "expected 1"},
    {WITH("\"max_output_tokens\":1.5"), "max_output_tokens", "whole number"},
    {WITH("\"temperature\":2.5"), "temperature", "expected 0 to 2"},
    {WITH("\"top_p\":-1"), "top_p", "expected 0 to 1"},
    {WITH("\"top_logprobs\":2"), "top_logprobs", "chat/completions"},
    {WITH("\"include\":[\"message.output_text.logprobs\"]"), "include", "chat/completions"},
    {WITH("\"include\":[1]"), "include", "strings"},
    {WITH("\"metadata\":[]"), "metadata", "expected an object"},
    {WITH("\"metadata\":{\"k\":1}"), "metadata.k", "not a string"},
    {WITH("\"truncation\":\"all\""), "truncation", "expected one of"},
    {WITH("\"instructions\":[]"), "instructions", "expected a string"},
    {WITH("\"reasoning\":{\"effort\":\"huge\"}"), "reasoning.effort", "expected none"},
    {WITH("\"reasoning\":7"), "reasoning", "expected an object"},
    {WITH("\"text\":{\"format\":{}}"), "text.format.type", "missing"},
    {WITH("\"text\":{\"format\":{\"type\":\"xml\"}}"), "text.format.type", "expected one of"},
    {WITH("\"text\":{\"format\":{\"type\":\"json_schema\"}}"), "text.format.schema", "missing"},
    {WITH("\"text\":{\"format\":{\"type\":\"json_schema\",\"schema\":{\"patternProperties\":{\"a\":{}}}}}"),
     "text.format.schema", "not supported"},
    {WITH("\"text\":{\"verbosity\":\"loud\"}"), "text.verbosity", "expected one of"},
    {WITH("\"tools\":{}"), "tools", "expected an array"},
    {WITH("\"tools\":[{\"type\":\"web_search\"}]"), "tools", "of type 'web_search' are not supported"},
    {WITH("\"tools\":[{\"type\":\"function\"}]"), "tools[0].name", "missing"},
    {WITH("\"tools\":[{\"type\":\"function\",\"name\":\"a b\"}]"), "tools[0].name", "expected letters"},
    {WITH("\"tools\":[{\"type\":\"function\",\"name\":\"a\",\"parameters\":7}]"), "tools[0].parameters", "expected an object"},
    {WITH("\"tools\":[{\"type\":\"function\",\"name\":\"a\",\"strict\":7}]"), "tools[0].strict", "expected a boolean"},
    {WITH("\"tool_choice\":\"required\""), "tool_choice", "no tools"},
    {WITH("\"tool_choice\":\"perhaps\""), "tool_choice", "expected one of"},
    {WITH("\"tool_choice\":{\"type\":\"mcp\"}"), "tool_choice.type", "expected 'function'"},
    {WITH("\"tool_choice\":{\"type\":\"function\"}"), "tool_choice.name", "missing"},
    {WITH("\"tool_choice\":{\"type\":\"function\",\"name\":\"x\"},\"tools\":[" TOOL "]"), "tool_choice", "not among"},
};

static void refusing(void) {
    server s;
    server_open(&s);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        plumb_api_request *request = NULL;
        plumb_generation *g = NULL;
        plumb_api_error error;
        bool ok = server_read(&s, refused[i].body, &request, &g, &error);
        T_CHECK(!ok && !request && !g, "%s was taken", refused[i].body);
        T_CHECK(error.refusal == PLUMB_REFUSAL_BAD_REQUEST && strcmp(error.param, refused[i].param) == 0 &&
                    strstr(error.message, refused[i].message), "%s: '%s' %s", refused[i].body, error.param, error.message);
    }
    server_close(&s);
}

/* ---- Telling ---- */

#define LONG_SCRIPT "start\nprogress\nthink Let me\nthink  see.\nsay I\nsay  look.\ncall 0 look\nargs 0 {\"q\":\n" \
                    "args 0  1.10}\nend 0\ncall 1 look\nargs 1 {}\nend 1\ncalls"
/* An item's name and place in the first response of a server; the mark is FNV-1a of the first two numbered ids. */
#define ID(prefix, place) prefix "_000000000000000000000002b088df25_" place

static const char long_output[] =
    "[{\"id\":\"" ID("rs", "0") "\",\"type\":\"reasoning\",\"status\":\"completed\",\"summary\":[],"
    "\"content\":[{\"type\":\"reasoning_text\",\"text\":\"Let me see.\"}]},"
    "{\"id\":\"" ID("msg", "1") "\",\"type\":\"message\",\"status\":\"completed\",\"role\":\"assistant\","
    "\"content\":[{\"type\":\"output_text\",\"text\":\"I look.\",\"annotations\":[],\"logprobs\":[]}]},"
    "{\"id\":\"" ID("fc", "2") "\",\"type\":\"function_call\",\"status\":\"completed\",\"call_id\":\"call_0\","
    "\"name\":\"look\",\"arguments\":\"{\\\"q\\\": 1.10}\"},"
    "{\"id\":\"" ID("fc", "3") "\",\"type\":\"function_call\",\"status\":\"completed\",\"call_id\":\"call_1\","
    "\"name\":\"look\",\"arguments\":\"{}\"}]";

static const char long_usage[] =
    "{\"input_tokens\":100,\"input_tokens_details\":{\"cached_tokens\":40,\"cache_write_tokens\":0},"
    "\"output_tokens\":20,\"output_tokens_details\":{\"reasoning_tokens\":5},\"total_tokens\":120}";

/* Takes apart what the other checks look at. */
static void check_response(const char *name, json_t *response, const char *status, const char *output) {
    const char *found = json_string_value(json_object_get(response, "status"));
    T_CHECK(found && strcmp(found, status) == 0, "%s: status %s", name, found ? found : "missing");
    check_json(name, json_object_get(response, "output"), output);
}

static void whole(void) {
    server s;
    server_open(&s);
    recorder r = answer(&s, "{\"input\":\"Q\",\"metadata\":{\"a\":\"b\"},\"tools\":[" TOOL "]}", LONG_SCRIPT);
    json_t *body = recorder_body(&r);
    T_CHECK(r.status == 200 && !r.streaming && strcmp(r.content_type, "application/json") == 0, "%d", r.status);
    check_response("whole", body, "completed", long_output);
    check_json("usage", json_object_get(body, "usage"), long_usage);
    json_object_del(body, "output");
    json_object_del(body, "usage");
    json_object_del(body, "id"); /* its mark is the memory's own affair */
    check_json("other members", body,
               "{\"object\":\"response\",\"created_at\":1700000000,\"completed_at\":1700000000,"
               "\"status\":\"completed\",\"background\":false,\"error\":null,\"incomplete_details\":null,"
               "\"instructions\":null,\"max_output_tokens\":null,\"metadata\":{\"a\":\"b\"},\"model\":\"demo\","
               "\"parallel_tool_calls\":true,\"previous_response_id\":null,"
               "\"reasoning\":{\"effort\":\"high\",\"summary\":null},\"store\":true,\"temperature\":1.0,"
               "\"text\":{\"format\":{\"type\":\"text\"}},\"tool_choice\":\"auto\",\"tools\":[" TOOL "],"
               "\"top_p\":0.95,\"truncation\":\"disabled\"}");
    json_decref(body);
    recorder_free(&r);
    server_close(&s);
}

/* Types of events in order, one a line, comments as they are; each name is its event's type, and numbers run. */
static void check_order(recorder *r, const char *wanted, json_t **last) {
    json_t *events = recorder_events(r), *event;
    plumb_text_buffer found = {0};
    json_int_t number = 0;
    const char *name = NULL;
    size_t i;
    *last = NULL;
    json_array_foreach(events, i, event) {
        const char *line = json_is_string(event) ? json_string_value(event)
                                                 : json_string_value(json_object_get(event, "type"));
        if (json_is_string(event) && line[0] != ':') {
            name = line;
            continue;
        }
        if (json_is_object(event)) {
            T_CHECK(name && strncmp(name, line, strlen(line)) == 0, "%s is named %s", line, name ? name : "nothing");
            T_CHECK(json_integer_value(json_object_get(event, "sequence_number")) == number, "%s: number", line);
            number++;
            json_decref(*last);
            *last = json_incref(event);
        }
        plumb__text_append(&found, line, strlen(line));
        plumb__text_append(&found, "\n", 1);
    }
    plumb__text_append(&found, "", 1);
    T_CHECK(strcmp(found.bytes, wanted) == 0, "events:\n%s", found.bytes);
    plumb__text_free(&found);
    json_decref(events);
}

#define TEXT_ITEM(delta) "response.output_item.added\nresponse.content_part.added\n" delta ".delta\n" delta \
                         ".delta\n" delta ".done\nresponse.content_part.done\nresponse.output_item.done\n"

static void stream(void) {
    server s;
    json_t *last;
    server_open(&s);
    recorder r = answer(&s, "{\"input\":\"Q\",\"stream\":true}", LONG_SCRIPT);
    T_CHECK(r.status == 200 && r.streaming, "%d", r.status);
    check_order(&r,
                "response.created\nresponse.in_progress\n:prompt: 64 of 100 tokens\n"
                TEXT_ITEM("response.reasoning_text") TEXT_ITEM("response.output_text")
                "response.output_item.added\nresponse.function_call_arguments.delta\n"
                "response.function_call_arguments.delta\nresponse.function_call_arguments.done\n"
                "response.output_item.done\n"
                "response.output_item.added\nresponse.function_call_arguments.delta\n"
                "response.function_call_arguments.done\nresponse.output_item.done\nresponse.completed\n", &last);
    check_response("stream", json_object_get(last, "response"), "completed", long_output);
    check_json("usage", json_object_get(json_object_get(last, "response"), "usage"), long_usage);
    json_decref(last);
    recorder_free(&r);
    server_close(&s);
}

/* Deltas put together, by the place that each event names, are the items of the end. */
static void deltas_add_up(void) {
    server s;
    server_open(&s);
    recorder r = answer(&s, "{\"input\":\"Q\",\"stream\":true}", LONG_SCRIPT);
    json_t *events = recorder_events(&r), *event;
    plumb_text_buffer text[4] = {{0}};
    static const char *const wanted[] = {"Let me see.", "I look.", "{\"q\": 1.10}", "{}"};
    size_t i;
    json_array_foreach(events, i, event) {
        const char *delta = json_string_value(json_object_get(event, "delta"));
        json_int_t place = json_integer_value(json_object_get(event, "output_index"));
        if (delta) plumb__text_append(&text[place], delta, strlen(delta));
    }
    for (i = 0; i < 4; i++) {
        T_CHECK((size_t)text[i].size == strlen(wanted[i]) && memcmp(text[i].bytes, wanted[i], strlen(wanted[i])) == 0,
                "item %zu: %.*s", i, (int)text[i].size, text[i].bytes);
        plumb__text_free(&text[i]);
    }
    json_decref(events);
    recorder_free(&r);
    server_close(&s);
}

/* Ends of other kinds.  `last` is the type of the last event of a stream, or the status without one. */
static const struct {
    const char *members, *script, *last, *output, *details;
} endings[] = {
    {"", "start\nstop", "completed", "[]", "null"},
    {"", "start\nsay Hal\nlength", "incomplete",
     "[{\"id\":\"" ID("msg", "0") "\",\"type\":\"message\",\"status\":\"incomplete\",\"role\":\"assistant\",\"content\":"
     "[{\"type\":\"output_text\",\"text\":\"Hal\",\"annotations\":[],\"logprobs\":[]}]}]",
     "{\"reason\":\"max_output_tokens\"}"},
    {"", "start\nthink Hm\nstop", "completed",
     "[{\"id\":\"" ID("rs", "0") "\",\"type\":\"reasoning\",\"status\":\"completed\",\"summary\":[],"
     "\"content\":[{\"type\":\"reasoning_text\",\"text\":\"Hm\"}]}]", "null"},
    /* A call that breaks off is not there, or told as incomplete if it was streamed. */
    {"", "start\ncall 0 look\nargs 0 {\"q\"\ndrop 0\nlength", "incomplete", "[]", "{\"reason\":\"max_output_tokens\"}"},
    {",\"stream\":true", "start\ncall 0 look\nargs 0 {\"q\"\ndrop 0\nlength", "response.incomplete",
     "[{\"id\":\"" ID("fc", "0") "\",\"type\":\"function_call\",\"status\":\"incomplete\",\"call_id\":\"call_0\","
     "\"name\":\"look\",\"arguments\":\"{\\\"q\\\"\"}]", "{\"reason\":\"max_output_tokens\"}"},
    {"", "start\ncall 0 look\nargs 0 {\ndrop 0\nsay Oh\nstop", "completed",
     "[{\"id\":\"" ID("msg", "0") "\",\"type\":\"message\",\"status\":\"completed\",\"role\":\"assistant\",\"content\":"
     "[{\"type\":\"output_text\",\"text\":\"Oh\",\"annotations\":[],\"logprobs\":[]}]}]", "null"},
    {",\"stream\":true", "start\ncall 0 look\nargs 0 {\ndrop 0\nstop", "response.failed",
     "[{\"id\":\"" ID("fc", "0") "\",\"type\":\"function_call\",\"status\":\"incomplete\",\"call_id\":\"call_0\","
     "\"name\":\"look\",\"arguments\":\"{\"}]", "null"},
    /* One call was asked for. */
    {",\"parallel_tool_calls\":false", "start\ncall 0 look\nargs 0 {}\nend 0\ncall 1 look\nargs 1 {}\nend 1\ncalls",
     "completed",
     "[{\"id\":\"" ID("fc", "0") "\",\"type\":\"function_call\",\"status\":\"completed\",\"call_id\":\"call_0\","
     "\"name\":\"look\",\"arguments\":\"{}\"}]", "null"},
    {",\"stream\":true", "start\nsay Hal\nfail internal", "response.failed",
     "[{\"id\":\"" ID("msg", "0") "\",\"type\":\"message\",\"status\":\"incomplete\",\"role\":\"assistant\",\"content\":"
     "[{\"type\":\"output_text\",\"text\":\"Hal\",\"annotations\":[],\"logprobs\":[]}]}]", "null"},
};

static void ends(void) {
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        server s;
        char body[200];
        server_open(&s);
        snprintf(body, sizeof body, "{\"input\":\"Q\"%s}", endings[i].members);
        recorder r = answer(&s, body, endings[i].script);
        json_t *last = NULL;
        if (r.streaming) {
            json_t *events = recorder_events(&r);
            last = json_incref(json_array_get(events, json_array_size(events) - 1));
            json_decref(events);
        } else {
            last = recorder_body(&r);
        }
        const char *type = json_string_value(json_object_get(last, r.streaming ? "type" : "status"));
        const json_t *response = r.streaming ? json_object_get(last, "response") : last;
        T_CHECK(type && strcmp(type, endings[i].last) == 0, "%s: %s", endings[i].script, type ? type : "nothing");
        check_json(endings[i].script, json_object_get(response, "output"), endings[i].output);
        check_json(endings[i].script, json_object_get(response, "incomplete_details"), endings[i].details);
        json_decref(last);
        recorder_free(&r);
        server_close(&s);
    }
}

/* What fails before anything was told is an error by its status, in a stream too. */
static void early_failures(void) {
    static const char *const bodies[] = {"{\"input\":\"Q\"}", "{\"input\":\"Q\",\"stream\":true}"};
    server s;
    server_open(&s);
    for (size_t i = 0; i < 2; i++) {
        recorder r = answer(&s, bodies[i], "fail busy");
        json_t *body = recorder_body(&r);
        const json_t *error = json_object_get(body, "error");
        T_CHECK(r.status == 429 && !r.streaming, "%d", r.status);
        T_CHECK(json_is_string(json_object_get(error, "message")), "no message");
        json_decref(body);
        recorder_free(&r);
    }
    server_close(&s);
}

/* A stream that has had a sign of life while it waited is a stream, whose first event clients insist on. */
static void failure_while_waiting(void) {
    server s;
    plumb_api_request *request = NULL;
    plumb_generation *g = NULL;
    plumb_api_error error;
    recorder r = RECORDER;
    json_t *last;
    server_open(&s);
    T_CHECK(server_read(&s, "{\"input\":\"Q\",\"stream\":true}", &request, &g, &error), "%s", error.message);
    plumb__response_comment(&r.response, "working");
    script_play(&plumb__openai_responses, request, "fail internal", &r.response);
    check_order(&r, ":working\nresponse.created\nresponse.failed\n", &last);
    check_json("error", json_object_get(json_object_get(last, "response"), "error"),
               "{\"code\":\"server_error\",\"message\":\"a NaN\"}");
    json_decref(last);
    recorder_free(&r);
    plumb__generation_destroy(g);
    plumb__openai_responses.destroy(request);
    server_close(&s);
}

/* ---- Continuing ---- */

static char *id_of(recorder *r) {
    json_t *body = recorder_body(r);
    const char *id = json_string_value(json_object_get(body, "id"));
    char *copy = id ? strdup(id) : NULL;
    T_CHECK(copy != NULL, "no id");
    json_decref(body);
    return copy;
}

/* Reads a request that continues `id`; checks its messages, or (NULL) that it is refused so. */
static void check_continued(server *s, const char *id, const char *messages, plumb_refusal refusal) {
    char body[300];
    plumb_api_request *request = NULL;
    plumb_generation *g = NULL;
    plumb_api_error error;
    snprintf(body, sizeof body, "{\"input\":\"Next\",\"instructions\":\"I2\",\"previous_response_id\":\"%s\"}", id);
    bool ok = server_read(s, body, &request, &g, &error);
    T_CHECK(ok == (messages != NULL), "%s: %s", id, error.message);
    if (ok) {
        json_t *found = json_loads(g->messages, 0, NULL);
        check_json(id, found, messages ? messages : "null");
        json_decref(found);
    } else {
        T_CHECK(error.refusal == refusal && strcmp(error.param, "previous_response_id") == 0 && strstr(error.message, id),
                "%s: %d %s", id, (int)error.refusal, error.message);
    }
    plumb__generation_destroy(g);
    plumb__openai_responses.destroy(request);
}

static void continuing(void) {
    server s;
    char body[300];
    server_open(&s);
    recorder first = answer(&s, "{\"input\":\"Q\",\"instructions\":\"I1\"}", LONG_SCRIPT);
    char *id = id_of(&first);
#define FIRST USER("Q") ",{\"role\":\"assistant\",\"content\":\"I look.\",\"reasoning_content\":\"Let me see.\"," \
              "\"tool_calls\":[{\"id\":\"call_0\",\"type\":\"function\",\"function\":{\"name\":\"look\"," \
              "\"arguments\":\"{\\\"q\\\": 1.10}\"}},{\"id\":\"call_1\",\"type\":\"function\",\"function\":" \
              "{\"name\":\"look\",\"arguments\":\"{}\"}}]}"
#define SYSTEM2 "{\"role\":\"system\",\"content\":\"I2\"},"
    check_continued(&s, id, "[" SYSTEM2 FIRST "," USER("Next") "]", 0);
    snprintf(body, sizeof body, "{\"previous_response_id\":\"%s\",\"input\":[{\"type\":\"function_call_output\","
             "\"call_id\":\"call_0\",\"output\":\"one\"}]}", id);
    recorder second = answer(&s, body, "start\nsay Done.\nstop");
    char *second_id = id_of(&second);
    check_continued(&s, second_id, "[" SYSTEM2 FIRST ",{\"role\":\"tool\",\"tool_call_id\":\"call_0\",\"content\":\"one\"},"
                    "{\"role\":\"assistant\",\"content\":\"Done.\"}," USER("Next") "]", 0);
    check_continued(&s, id, "[" SYSTEM2 FIRST "," USER("Next") "]", 0); /* a branch */
    /* An answer is told once. */
    plumb_api_request *request = NULL;
    plumb_generation *g = NULL;
    plumb_api_error error;
    snprintf(body, sizeof body, "{\"previous_response_id\":\"%s\",\"input\":[{\"role\":\"assistant\",\"content\":\"x\"}]}",
             second_id);
    T_CHECK(!server_read(&s, body, &request, &g, &error) && strcmp(error.param, "input") == 0, "%s", error.message);
    free(id);
    free(second_id);
    recorder_free(&first);
    recorder_free(&second);
    server_close(&s);
}

static void not_held(void) {
    server s;
    server_open(&s);
    check_continued(&s, "resp_unknown", NULL, PLUMB_REFUSAL_NOT_FOUND);
    recorder unstored = answer(&s, "{\"input\":\"Q\",\"store\":false}", "start\nsay A\nstop");
    char *id = id_of(&unstored);
    check_continued(&s, id, NULL, PLUMB_REFUSAL_CONFLICT);
    id[6] ^= 1; /* no longer one of ours */
    check_continued(&s, id, NULL, PLUMB_REFUSAL_NOT_FOUND);
    free(id);
    recorder_free(&unstored);
    check_continued(&s, "resp_", NULL, PLUMB_REFUSAL_NOT_FOUND);
    check_continued(&s, "12345678", NULL, PLUMB_REFUSAL_NOT_FOUND);
    server_close(&s);
}

static void remembered(void) {
    static const struct {
        const char *body, *script, *messages; /* before the next question */
    } turns[] = {
        /* An answer that goes on with the one that was sent is one. */
        {"{\"input\":[" USER("Q") ",{\"role\":\"assistant\",\"content\":\"It is\"}]}", "start\nsay  so.\nstop",
         USER("Q") ",{\"role\":\"assistant\",\"content\":\"It is so.\"},"},
        /* What a request adds to the first message is its own. */
        {"{\"input\":[{\"role\":\"system\",\"content\":\"S\"}," USER("Q") "],\"tools\":[{\"type\":\"function\","
         "\"name\":\"look\"}]}", "start\nsay A\nstop",
         "{\"role\":\"system\",\"content\":\"S\"}," USER("Q") ",{\"role\":\"assistant\",\"content\":\"A\"},"},
        /* The turn was the model's, if it said nothing. */
        {"{\"input\":\"Q\"}", "start\nstop", USER("Q") ",{\"role\":\"assistant\",\"content\":\"\"},"},
    };
    server s;
    server_open(&s);
    for (size_t i = 0; i < sizeof turns / sizeof turns[0]; i++) {
        char messages[400];
        recorder r = answer(&s, turns[i].body, turns[i].script);
        char *id = id_of(&r);
        snprintf(messages, sizeof messages, "[" SYSTEM2 "%s" USER("Next") "]", turns[i].messages);
        check_continued(&s, id, messages, 0);
        free(id);
        recorder_free(&r);
    }
    server_close(&s);
}

T_MAIN({"reading", reading}, {"forbidden_calls", forbidden_calls}, {"refusing", refusing}, {"whole", whole},
       {"stream", stream}, {"deltas_add_up", deltas_add_up}, {"ends", ends}, {"early_failures", early_failures},
       {"failure_while_waiting", failure_while_waiting},
       {"continuing", continuing}, {"not_held", not_held}, {"remembered", remembered})
