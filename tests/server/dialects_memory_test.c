/* Memory that runs out at every place where JSON is made: an error, never a crash, a leak or a call of which a
 * part is missing. */
#include "server/api.h"

#include "t.h"

#include "api_fixture.h"
#include "recorder.h"
#include "script.h"

#include <limits.h>

static int allocations_left; /* before one fails; all later ones fail as well */

static void *limited_malloc(size_t size) { return allocations_left-- > 0 ? malloc(size) : NULL; }

#define SCRIPT "start\nprogress\nthink A\nsay B\ncall 0 look\nargs 0 {\"q\": 1}\nend 0\nsay C\ncalls"

/* One of the first response that is made with the fixture's ids; the mark is FNV-1a of two of them. */
#define ITEM(kind, place) "{\"type\":\"item_reference\",\"id\":\"" kind "_0123456789abcdefghijklmn3f701f03_" place "\"}"

static const struct {
    const plumb_api *api;
    const char *body;
    const char *last; /* what the end of a whole stream has */
    const char *before; /* a request that was answered before, if any */
} requests[] = {
    {&plumb__openai_responses,
     "{\"stream\":true,\"instructions\":\"I\",\"metadata\":{\"a\":\"b\"},\"text\":{\"format\":{\"type\":\"text\"}},"
     "\"input\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"Q\"}]},"
     "{\"type\":\"reasoning\",\"content\":[{\"text\":\"R\"}]},{\"role\":\"assistant\",\"content\":\"A\"},"
     "{\"type\":\"function_call\",\"call_id\":\"c\",\"namespace\":\"n\",\"name\":\"find\",\"arguments\":\"{}\"},"
     "{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":\"O\"}],\"tool_choice\":\"required\","
     "\"tools\":[{\"type\":\"function\",\"name\":\"look\",\"parameters\":{\"type\":\"object\"}},{\"type\":\"web_search\"},"
     "{\"type\":\"namespace\",\"name\":\"n\",\"tools\":[{\"type\":\"function\",\"name\":\"find\"}]}]}",
     "response.completed", NULL},
    {&plumb__openai_responses,
     "{\"stream\":true,\"input\":[{\"role\":\"user\",\"content\":\"Q\"}," ITEM("rs", "0") "," ITEM("msg", "1") ","
     ITEM("fc", "2") "," ITEM("msg", "3") ",{\"type\":\"function_call_output\",\"call_id\":\"call_0\",\"output\":\"O\"}],"
     "\"tools\":[{\"type\":\"function\",\"name\":\"look\"}]}",
     "response.completed", "{\"input\":\"Q\"}"},
    {&plumb__anthropic_messages,
     "{\"stream\":true,\"max_tokens\":9,\"system\":[{\"type\":\"text\",\"text\":\"S\"}],\"messages\":["
     "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Q\"},{\"type\":\"text\",\"text\":\"R\"}]},"
     "{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"T\"},{\"type\":\"text\",\"text\":\"A\"},"
     "{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"look\",\"input\":{\"q\":1}}]},"
     "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"c\",\"is_error\":true,"
     "\"content\":[{\"type\":\"text\",\"text\":\"no\"}]}]}],"
     "\"context_management\":{\"edits\":[{\"type\":\"clear_thinking_20251015\"}]},"
     "\"output_config\":{\"effort\":\"low\"},\"tools\":[{\"name\":\"look\",\"description\":\"d\",\"input_schema\":{}}]}",
     "message_stop", NULL},
};

/* Whether the recorded text has these bytes. */
static bool has(const recorder *r, const char *bytes) {
    size_t size = strlen(bytes);
    for (int64_t i = 0; i + (int64_t)size <= r->bytes.size; i++)
        if (memcmp(r->bytes.bytes + i, bytes, size) == 0) return true;
    return false;
}

/* Jansson does not say that it was for want of memory that it could not parse. */
static void check_refused(const plumb_api *api, plumb_api_error error, int limit) {
    bool unparsed = strstr(error.message, "not JSON") != NULL;
    recorder r = RECORDER;
    T_CHECK(unparsed || error.refusal == PLUMB_REFUSAL_INTERNAL, "%d: %d %s", limit, (int)error.refusal, error.message);
    api->refuse(&error, &r.response);
    T_CHECK(r.ends == 1 && (unparsed || r.status == 500), "%d: %d", limit, r.status);
    recorder_free(&r);
}

/* True: it went well to the end. */
static bool answered(const plumb_api *api, plumb_api_request *request, const char *last, int limit) {
    recorder r = RECORDER;
    script_play(api, request, SCRIPT, &r.response);
    T_CHECK(r.begins == 1 && r.ends == 1, "%d: begun %d times, ended %d", limit, r.begins, r.ends);
    bool whole = r.status == 200 && has(&r, last);
    /* What looks whole has everything. */
    bool input = has(&r, "{\\\"q\\\": 1}") || has(&r, "{\"q\": 1}");
    T_CHECK(!whole || (has(&r, "call_0") && input), "%d: half a call", limit);
    T_CHECK(whole || r.status >= 500 || has(&r, "error") || has(&r, "response.failed"), "%d: cut in silence:\n%.*s", limit,
            (int)r.bytes.size, r.bytes.bytes);
    recorder_free(&r);
    return whole;
}

static void answer_before(const plumb_api_context *context, size_t which, void *state) {
    const plumb_api *api = requests[which].api;
    const char *body = requests[which].before;
    plumb_api_request *request = NULL;
    plumb_generation *g = NULL;
    plumb_api_error error;
    recorder r = RECORDER;
    allocations_left = INT_MAX;
    T_CHECK(api->read(context, state, body, strlen(body), &request, &g, &error) == PLUMB_OK, "%s", error.message);
    script_play(api, request, SCRIPT, &r.response);
    recorder_free(&r);
    plumb__generation_destroy(g);
    api->destroy(request);
}

static bool attempt(const plumb_api_context *context, size_t which, bool stream, int before_events) {
    const plumb_api *api = requests[which].api;
    plumb_api_request *request = NULL;
    plumb_generation *g = NULL;
    plumb_api_error error;
    void *state = NULL;
    char body[1200];
    snprintf(body, sizeof body, "%s", requests[which].body);
    if (!stream) memcpy(strstr(body, "true"), "null", 4);
    T_CHECK(!api->create_state || api->create_state(&state, NULL) == PLUMB_OK, "no state");
    if (requests[which].before) answer_before(context, which, state);
    allocations_left = before_events;
    bool taken = api->read(context, state, body, strlen(body), &request, &g, &error) == PLUMB_OK;
    bool went_well = false;
    if (taken) went_well = answered(api, request, stream ? requests[which].last : "}", before_events);
    else check_refused(api, error, before_events);
    plumb__generation_destroy(g);
    api->destroy(request);
    if (api->destroy_state) api->destroy_state(state);
    return went_well;
}

static void every_place(void) {
    plumb_text *text;
    plumb_sampling sampling;
    plumb_api_context context = fixture_context(&text, &sampling);
    json_set_alloc_funcs(limited_malloc, free);
    for (size_t which = 0; which < sizeof requests / sizeof requests[0]; which++) {
        for (int stream = 0; stream < 2; stream++) {
            int limit = 0;
            while (limit < 5000 && !attempt(&context, which, stream, limit)) limit++;
            T_CHECK(limit > 100 && limit < 5000, "%zu: well after %d allocations", which, limit);
        }
    }
    json_set_alloc_funcs(malloc, free);
    plumb_text_close(text);
}

T_MAIN({"every_place", every_place})
