/* POST /v1/responses: items that are only referred to, and tools that are not plain functions. */
#include "responses_scene.h"

#include "quotes.h"

/* ---- References ---- */

#define ASK "{'input':[{'role':'user','content':'Q'}"
#define HISTORY "start\nthink Hm.\nsay I look.\ncall 0 look\nargs 0 {\"q\": 1}\nend 0\ncalls"

static const char *id_of(const json_t *response, size_t place) {
    const json_t *item = json_array_get(json_object_get(response, "output"), place);
    return json_string_value(json_object_get(item, "id"));
}

/* The first answer, to be referred to. */
static json_t *first_answer(server *s, const char *members) {
    char body[200];
    snprintf(body, sizeof body, "{\"input\":\"Q\"%s}", members);
    recorder r = answer(s, body, HISTORY);
    json_t *response = recorder_body(&r);
    recorder_free(&r);
    return response;
}

/* What a client sends after it made the call: all that it was told, by name. */
static char *refer(const json_t *response, const char *between) {
    static char body[1000];
    char *format = quoted(ASK ",{'type':'item_reference','id':'%s'},{'id':'%s'},%s{'type':'item_reference','id':'%s'},"
                          "{'type':'function_call_output','call_id':'call_0','output':'R'}]}");
    snprintf(body, sizeof body, format, id_of(response, 0), id_of(response, 1), between, id_of(response, 2));
    free(format);
    return body;
}

static void references(void) {
    server s;
    server_open(&s);
    json_t *response = first_answer(&s, "");
    plumb_api_request *request = NULL;
    plumb_generation *g = NULL;
    plumb_api_error error;
    bool ok = server_read(&s, refer(response, ""), &request, &g, &error);
    T_CHECK(ok, "%s: %s", error.param, error.message);
    char *wanted = quoted("{'thinking':1,'messages':[{'role':'user','content':'Q'},{'role':'assistant','content':'I look.',"
                          "'reasoning_content':'Hm.','tool_calls':[{'id':'call_0','type':'function','function':{"
                          "'name':'look','arguments':'{\\'q\\': 1}'}}]},{'role':'tool','tool_call_id':'call_0','content':'R'}]}");
    json_t *found = ok ? describe_generation(g) : NULL;
    check_json("references", found, wanted);
    json_decref(found);
    free(wanted);
    plumb__generation_destroy(g);
    plumb__openai_responses.destroy(request);
    json_decref(response);
    server_close(&s);
}

/* Few bytes of a request must not become many of a prompt. */
static void referred_to_twice(void) {
    server s;
    server_open(&s);
    json_t *response = first_answer(&s, "");
    char between[200], *again = quoted("{'type':'item_reference','id':'%s'},");
    snprintf(between, sizeof between, again, id_of(response, 1));
    plumb_api_request *request = NULL;
    plumb_generation *g = NULL;
    plumb_api_error error;
    T_CHECK(!server_read(&s, refer(response, between), &request, &g, &error), "it was taken");
    T_CHECK(strcmp(error.param, "input[3].id") == 0 && strstr(error.message, "twice"), "'%s' %s", error.param, error.message);
    free(again);
    json_decref(response);
    server_close(&s);
}

static void check_lost(server *s, const char *id, plumb_refusal refusal) {
    char body[300];
    plumb_api_request *request = NULL;
    plumb_generation *g = NULL;
    plumb_api_error error;
    snprintf(body, sizeof body, "{\"input\":[{\"type\":\"item_reference\",\"id\":\"%s\"}]}", id);
    T_CHECK(!server_read(s, body, &request, &g, &error), "'%s' is held", id);
    T_CHECK(error.refusal == refusal && strcmp(error.param, "input[0].id") == 0, "'%s': %d, '%s' %s", id, error.refusal,
            error.param, error.message);
}

/* Ids that were never given out, and items that are gone. */
static void lost_references(void) {
    static const char *const strange[] = {"", "msg", "msg_", "_", "msg_1", "msg__0", "msg_x_y", "resp_1_0",
                                          "msg_00000000000000000000000000000000000000000000000000000000000000000000_0"};
    server s;
    server_open(&s);
    for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++) check_lost(&s, strange[i], PLUMB_REFUSAL_NOT_FOUND);
    json_t *response = first_answer(&s, ",\"store\":false");
    check_lost(&s, id_of(response, 1), PLUMB_REFUSAL_CONFLICT);
    json_decref(response);
    response = first_answer(&s, "");
    char id[64];
    snprintf(id, sizeof id, "%s", id_of(response, 1));
    id[strlen(id) - 1] = '7'; /* an eighth item */
    check_lost(&s, id, PLUMB_REFUSAL_CONFLICT);
    id[strlen(id) - 1] = '\0'; /* no place */
    check_lost(&s, id, PLUMB_REFUSAL_CONFLICT);
    json_decref(response);
    server_close(&s);
}

/* ---- Tools ---- */

#define LOOK "{'type':'function','name':'look'}"
#define FILES "{'type':'namespace','name':'mcp__files','description':'d','tools':[{'type':'function','name':'read'," \
              "'description':'reads','parameters':{'type':'object'}},{'type':'function','name':'look'}]}"

static void check_tools(const char *tools, const char *shown, const char *told) {
    char *body = quoted(tools), *offered = quoted(shown), *response = quoted(told), line[2000];
    server s;
    server_open(&s);
    plumb_api_request *request = NULL;
    plumb_generation *g = NULL;
    plumb_api_error error;
    snprintf(line, sizeof line, "{\"input\":\"Q\",\"tools\":[%s]}", body);
    bool ok = server_read(&s, line, &request, &g, &error);
    T_CHECK(ok, "%s: %s", error.param, error.message);
    json_t *messages = ok ? json_loads(g->messages, 0, NULL) : NULL;
    check_json(tools, json_object_get(json_array_get(messages, 0), "tools"), offered);
    json_decref(messages);
    plumb__generation_destroy(g);
    plumb__openai_responses.destroy(request);
    recorder r = answer(&s, line, "start\nstop");
    json_t *answered = recorder_body(&r);
    check_json(tools, json_object_get(answered, "tools"), response);
    json_decref(answered);
    recorder_free(&r);
    server_close(&s);
    free(body);
    free(offered);
    free(response);
}

static void tools(void) {
    /* What a provider would do is no part of the offer, and the response says so. */
    check_tools(LOOK ",{'type':'web_search','external_web_access':false},{'type':'image_generation','output_format':'png'},"
                "{'type':'web_search_preview'}",
                "[{'type':'function','function':{'name':'look'}}]",
                "[{'type':'function','name':'look','parameters':null,'strict':null}]");
    check_tools(FILES "," LOOK,
                "[{'type':'function','function':{'name':'mcp__files.read','description':'reads','parameters':{"
                "'type':'object'}}},{'type':'function','function':{'name':'mcp__files.look'}},"
                "{'type':'function','function':{'name':'look'}}]",
                "[" FILES ",{'type':'function','name':'look','parameters':null,'strict':null}]");
}

static const struct {
    const char *tools, *param, *message;
} refused[] = {
    {"{'type':'web_search'},{'type':'image_generation'}", "tools", "of type 'web_search' are not supported"},
    {LOOK ",{'type':'local_shell'}", "tools[1].type", "'local_shell' are not supported"},
    {LOOK ",{'type':'mcp','server_label':'x','server_url':'y'}", "tools[1].type", "'mcp' are not supported"},
    {LOOK ",{'type':'custom','name':'apply_patch'}", "tools[1].type", "'custom' are not supported"},
    {LOOK ",{'name':'x'}", "tools[1].type", "expected 'function' or 'namespace'"},
    {"{'type':'namespace','tools':[" LOOK "]}", "tools[0].name", "missing"},
    {"{'type':'namespace','name':'a b','tools':[" LOOK "]}", "tools[0].name", "expected letters"},
    {"{'type':'namespace','name':'n','tools':{}}", "tools[0].tools", "expected an array"},
    {"{'type':'namespace','name':'n','tools':[{'type':'custom','name':'c'}]}", "tools[0].tools[0].type", "expected 'function'"},
    {"{'type':'namespace','name':'n','tools':[]}", "tools", "of type 'namespace'"},
};

static void refused_tools(void) {
    server s;
    server_open(&s);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        char *list = quoted(refused[i].tools), body[500];
        plumb_api_request *request = NULL;
        plumb_generation *g = NULL;
        plumb_api_error error;
        snprintf(body, sizeof body, "{\"input\":\"Q\",\"tools\":[%s]}", list);
        T_CHECK(!server_read(&s, body, &request, &g, &error), "%s was taken", refused[i].tools);
        T_CHECK(strcmp(error.param, refused[i].param) == 0 && strstr(error.message, refused[i].message), "%s: '%s' %s",
                refused[i].tools, error.param, error.message);
        free(list);
    }
    server_close(&s);
}

/* A function of a namespace is told by its two names, and known again by them; a strange name stays as it is. */
static void calls_of_namespaces(void) {
    char *body = quoted("{'input':'Q','tools':[" FILES "]}");
    static const struct {
        const char *called, *members;
    } calls[] = {
        {"mcp__files.read", "'name':'read','namespace':'mcp__files'"},
        {"mcp__files", "'name':'mcp__files'"},
        {"mcp__filesx.read", "'name':'mcp__filesx.read'"},
        {"look", "'name':'look'"},
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        char script[200], told[400];
        server s;
        server_open(&s);
        snprintf(script, sizeof script, "start\ncall 0 %s\nargs 0 {}\nend 0\ncalls", calls[i].called);
        recorder r = answer(&s, body, script);
        json_t *response = recorder_body(&r), *item = json_array_get(json_object_get(response, "output"), 0);
        char id[64];
        snprintf(id, sizeof id, "%s", id_of(response, 0));
        snprintf(told, sizeof told, "{'id':'%s','type':'function_call','status':'completed','call_id':'call_0',%s,"
                 "'arguments':'{}'}", id, calls[i].members);
        char *wanted = quoted(told);
        check_json(calls[i].called, item, wanted);
        free(wanted);

        plumb_api_request *request = NULL;
        plumb_generation *g = NULL;
        plumb_api_error error;
        json_t *next = json_pack("{s:[{s:s,s:s},O,{s:s,s:s,s:s}]}", "input", "role", "user", "content", "Q", item, "type",
                                 "function_call_output", "call_id", "call_0", "output", "R");
        char *again = json_dumps(next, 0);
        T_CHECK(server_read(&s, again, &request, &g, &error), "%s", error.message);
        snprintf(told, sizeof told, "\"name\":\"%s\"", calls[i].called);
        T_CHECK(g && strstr(g->messages, told), "%s: %s", calls[i].called, g ? g->messages : "");
        free(again);
        json_decref(next);
        plumb__generation_destroy(g);
        plumb__openai_responses.destroy(request);
        json_decref(response);
        recorder_free(&r);
        server_close(&s);
    }
    free(body);
}

/* ---- Members that this API has not, of clients that have them in others ---- */

static void sampling(void) {
    static const struct {
        const char *members, *generation;
    } taken[] = {
        {"'seed':7,'top_k':5,'min_p':0.25,'stop':['END']", "'seed':7,'top_k':5,'min_p':0.25,'stop':['END']"},
        {"'n':1,'presence_penalty':0,'repetition_penalty':1,'grammar':''", ""},
    };
    static const char *const unsupported[] = {"'n':2", "'presence_penalty':0.5", "'repetition_penalty':1.1", "'grammar':'x'"};
    server s;
    server_open(&s);
    char body[300];
    plumb_api_request *request = NULL;
    plumb_generation *g = NULL;
    plumb_api_error error;
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        snprintf(body, sizeof body, "{'input':'Q',%s}", taken[i].members);
        char *asked = quoted(body);
        snprintf(body, sizeof body, "{'thinking':1,'messages':[{'role':'user','content':'Q'}]%s%s}",
                 taken[i].generation[0] ? "," : "", taken[i].generation);
        char *wanted = quoted(body);
        bool ok = server_read(&s, asked, &request, &g, &error);
        T_CHECK(ok, "%s: %s", asked, error.message);
        json_t *found = ok ? describe_generation(g) : NULL;
        check_json(asked, found, wanted);
        json_decref(found);
        plumb__generation_destroy(g);
        plumb__openai_responses.destroy(request);
        request = NULL;
        g = NULL;
        free(asked);
        free(wanted);
    }
    for (size_t i = 0; i < sizeof unsupported / sizeof unsupported[0]; i++) {
        snprintf(body, sizeof body, "{'input':'Q',%s}", unsupported[i]);
        char *asked = quoted(body);
        T_CHECK(!server_read(&s, asked, &request, &g, &error), "%s was taken", asked);
        T_CHECK(error.param[0] && strstr(unsupported[i], error.param), "%s: '%s'", asked, error.param);
        free(asked);
    }
    server_close(&s);
}

T_MAIN({"references", references}, {"referred_to_twice", referred_to_twice}, {"lost_references", lost_references}, {"tools", tools},
       {"refused_tools", refused_tools}, {"calls_of_namespaces", calls_of_namespaces},
       {"sampling", sampling})
