/* Events as chat completions: each script as a stream and as a whole answer. */
#include "openai_scene.h"
#include "server/openai.h"

#include <math.h>

#define HI "'messages':[{'role':'user','content':'hi'}]"
#define TOOLS ",'tools':[{'type':'function','function':{'name':'f'}}]"
#define ROLE "{'delta':{'role':'assistant','content':''}}"
#define DELTA(members) "{'delta':{" members "}}"
#define SAY(text) DELTA("'content':'" text "'")
#define THINK(text) DELTA("'reasoning_content':'" text "'")
#define BEGIN_CALL(index, name) \
    DELTA("'tool_calls':[{'index':" index ",'id':'call_" index "','type':'function','function':{'name':'" name \
          "','arguments':''}}]")
#define ARGUMENTS(index, piece) DELTA("'tool_calls':[{'index':" index ",'function':{'arguments':'" piece "'}}]")
#define FINISH(reason) "{'delta':{},'finish_reason':'" reason "'}"
#define DONE "'[DONE]'"
#define CALL(index, arguments) \
    "{'id':'call_" index "','type':'function','function':{'name':'f','arguments':'" arguments "'}}"
#define MESSAGE(members, reason) \
    "[{'index':0,'message':{'role':'assistant','refusal':null," members "},'logprobs':null,'finish_reason':'" reason "'}]"
#define LOGPROB(token, logprob, bytes, top) \
    "{'token':'" token "','logprob':" logprob ",'bytes':[" bytes "],'top_logprobs':[" top "]}"
#define TOP_A "{'token':'A','logprob':-0.25,'bytes':[65]}"
#define TOP_HALF "{'token':'\xef\xbf\xbd','logprob':-2.0,'bytes':[226]}"

static const struct {
    const char *name, *members, *script, *stream, *choices;
} answers[] = {
    {"nothing", "", "start\nstop", "[" ROLE "," FINISH("stop") "," DONE "]", MESSAGE("'content':''", "stop")},
    {"text", "", "start\nsay a\nsay \xc3\xa9\"\\\nlength",
     "[" ROLE "," SAY("a") "," SAY("\xc3\xa9\\\"\\\\") "," FINISH("length") "," DONE "]",
     MESSAGE("'content':'a\xc3\xa9\\\"\\\\'", "length")},
    {"reasoning, then text", "", "think Let me\nthink  see\nsay 4\nstop",
     "[" ROLE "," THINK("Let me") "," THINK(" see") "," SAY("4") "," FINISH("stop") "," DONE "]",
     MESSAGE("'reasoning_content':'Let me see','content':'4'", "stop")},
    {"reasoning that is cut", "", "think x\nlength", "[" ROLE "," THINK("x") "," FINISH("length") "," DONE "]",
     MESSAGE("'reasoning_content':'x','content':''", "length")},
    {"a call", TOOLS, "call 0 f\nargs 0 {\"a\":\nargs 0  1}\nend 0\ncalls",
     "[" ROLE "," BEGIN_CALL("0", "f") "," ARGUMENTS("0", "{\\\"a\\\":") "," ARGUMENTS("0", " 1}") ","
     FINISH("tool_calls") "," DONE "]",
     MESSAGE("'content':null,'tool_calls':[" CALL("0", "{\\\"a\\\": 1}") "]", "tool_calls")},
    {"two calls after reasoning and text", TOOLS,
     "think t\nsay s\ncall 0 f\nargs 0 {}\nend 0\ncall 1 f\nargs 1 {}\nend 1\ncalls",
     "[" ROLE "," THINK("t") "," SAY("s") "," BEGIN_CALL("0", "f") "," ARGUMENTS("0", "{}") "," BEGIN_CALL("1", "f") ","
     ARGUMENTS("1", "{}") "," FINISH("tool_calls") "," DONE "]",
     MESSAGE("'reasoning_content':'t','content':'s','tool_calls':[" CALL("0", "{}") "," CALL("1", "{}") "]",
             "tool_calls")},
    {"one call was asked for", TOOLS ",'parallel_tool_calls':false",
     "call 0 f\nargs 0 {}\nend 0\ncall 1 f\nargs 1 {}\nend 1\ncalls",
     "[" ROLE "," BEGIN_CALL("0", "f") "," ARGUMENTS("0", "{}") "," FINISH("tool_calls") "," DONE "]",
     MESSAGE("'content':null,'tool_calls':[" CALL("0", "{}") "]", "tool_calls")},
    {"a call that is cut", TOOLS, "say s\ncall 0 f\nargs 0 {\"a\ndrop 0\nlength",
     "[" ROLE "," SAY("s") "," BEGIN_CALL("0", "f") "," ARGUMENTS("0", "{\\\"a") "," FINISH("length") "," DONE "]",
     MESSAGE("'content':'s'", "length")},
    {"the second call is damaged", TOOLS, "call 0 f\nargs 0 {}\nend 0\ncall 1 f\nargs 1 {\ndrop 1\ncalls",
     "[" ROLE "," BEGIN_CALL("0", "f") "," ARGUMENTS("0", "{}") "," BEGIN_CALL("1", "f") "," ARGUMENTS("1", "{") ","
     FINISH("tool_calls") "," DONE "]",
     MESSAGE("'content':null,'tool_calls':[" CALL("0", "{}") "]", "tool_calls")},
    {"a stop string", ",'stop':'x'", "say a\nstopped x", "[" ROLE "," SAY("a") "," FINISH("stop") "," DONE "]",
     MESSAGE("'content':'a'", "stop")},
    {"a long prompt", "", "start\nprogress\nsay a\nstop",
     "[':prompt: 64 of 100 tokens'," ROLE "," SAY("a") "," FINISH("stop") "," DONE "]",
     MESSAGE("'content':'a'", "stop")},
    {"two runs", ",'n':2", "@1 say b\nsay a\n@1 say c\nstop\n@1 length",
     "[{'index':1,'delta':{'role':'assistant','content':''}},{'index':1,'delta':{'content':'b'}}," ROLE "," SAY("a") ","
     "{'index':1,'delta':{'content':'c'}}," FINISH("stop") ",{'index':1,'delta':{},'finish_reason':'length'}," DONE "]",
     "[{'index':0,'message':{'role':'assistant','refusal':null,'content':'a'},'logprobs':null,'finish_reason':'stop'},"
     "{'index':1,'message':{'role':'assistant','refusal':null,'content':'bc'},'logprobs':null,"
     "'finish_reason':'length'}]"},
    {"log-probabilities wait for their text", ",'logprobs':true,'top_logprobs':2",
     "hidden x\nthink x\nbest A\nsay A\ntoken \xc3\ntoken \xa9\nsay \xc3\xa9\nhidden x\nstop",
     "[" ROLE "," THINK("x") ",{'delta':{'content':'A'},'logprobs':{'refusal':null,'content':["
     LOGPROB("A", "-0.5", "65", TOP_A "," TOP_HALF) "]}},{'delta':{'content':'\xc3\xa9'},'logprobs':{'refusal':null,"
     "'content':[" LOGPROB("\xef\xbf\xbd", "-0.5", "195", "") "," LOGPROB("\xef\xbf\xbd", "-0.5", "169", "") "]}},"
     FINISH("stop") "," DONE "]",
     "[{'index':0,'message':{'role':'assistant','refusal':null,'reasoning_content':'x','content':'A\xc3\xa9'},"
     "'logprobs':{'refusal':null,'content':[" LOGPROB("A", "-0.5", "65", TOP_A "," TOP_HALF) ","
     LOGPROB("\xef\xbf\xbd", "-0.5", "195", "") "," LOGPROB("\xef\xbf\xbd", "-0.5", "169", "")
     "]},'finish_reason':'stop'}]"},
    {"tokens of a stop string are not told", ",'logprobs':true,'stop':'xy'", "token a\nsay a\ntoken x\ntoken y\nstopped xy",
     "[" ROLE ",{'delta':{'content':'a'},'logprobs':{'refusal':null,'content':[" LOGPROB("a", "-0.5", "97", "") "]}},"
     FINISH("stop") "," DONE "]",
     "[{'index':0,'message':{'role':'assistant','refusal':null,'content':'a'},'logprobs':{'refusal':null,'content':["
     LOGPROB("a", "-0.5", "97", "") "]},'finish_reason':'stop'}]"},
    {"half a character at the end", ",'logprobs':true", "token \xc3\nlength",
     "[" ROLE ",{'delta':{},'finish_reason':'length','logprobs':{'refusal':null,'content':["
     LOGPROB("\xef\xbf\xbd", "-0.5", "195", "") "]}}," DONE "]",
     "[{'index':0,'message':{'role':'assistant','refusal':null,'content':''},'logprobs':{'refusal':null,'content':["
     LOGPROB("\xef\xbf\xbd", "-0.5", "195", "") "]},'finish_reason':'length'}]"},
};

#define USAGE \
    "'usage':{'prompt_tokens':100,'completion_tokens':20,'total_tokens':120," \
    "'prompt_tokens_details':{'cached_tokens':40},'completion_tokens_details':{'reasoning_tokens':5}}," \
    "'timings':{'prompt_seconds':0.0,'generation_seconds':0.0,'prompt_tokens_per_second':0.0," \
    "'generation_tokens_per_second':0.0,'cached_tokens':40}"

static plumb_text *text;
static plumb_sampling sampling;
static plumb_api_context context;

static recorder play(const char *members, bool stream, const char *script) {
    char body[600];
    snprintf(body, sizeof body, "{'stream':%s," HI "%s}", stream ? "true" : "false", members);
    char *meant = quoted(body);
    recorder r = scene_play(&plumb__openai_chat, &context, meant, script);
    free(meant);
    return r;
}

static void streams(void) {
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        recorder r = play(answers[i].members, true, answers[i].script);
        char *wanted = quoted(answers[i].stream);
        json_t *found = scene_stream(&r, "chatcmpl-0123456789abcdefghijklmn", "chat.completion.chunk", false);
        T_CHECK(r.status == 200 && r.streaming && !strcmp(r.content_type, "text/event-stream"), "%s", answers[i].name);
        check_json(answers[i].name, found, wanted);
        json_decref(found);
        free(wanted);
        recorder_free(&r);
    }
}

static void whole_answers(void) {
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        recorder r = play(answers[i].members, false, answers[i].script);
        char *wanted = quoted(answers[i].choices);
        json_t *found = recorder_body(&r);
        T_CHECK(r.status == 200 && !r.streaming && !strcmp(r.content_type, "application/json"), "%s", answers[i].name);
        scene_strip(found, "chatcmpl-0123456789abcdefghijklmn", "chat.completion");
        check_json(answers[i].name, json_object_get(found, "choices"), wanted);
        T_CHECK(json_object_get(found, "usage") && json_object_get(found, "timings"), "%s: no usage", answers[i].name);
        json_decref(found);
        free(wanted);
        recorder_free(&r);
    }
}

/* Always in a whole answer; in a stream where it is asked for: null in each chunk, then one of its own. */
static void usage(void) {
    recorder r = play("", false, "start\nsay a\nstop");
    json_t *found = recorder_body(&r);
    char *wanted = quoted("{'choices':" MESSAGE("'content':'a'", "stop") "," USAGE "}");
    scene_strip(found, "chatcmpl-0123456789abcdefghijklmn", "chat.completion");
    json_t *total = json_object_get(json_object_get(found, "usage"), "total_tokens");
    T_CHECK(json_integer_value(total) == 120, "");
    check_json("whole", found, wanted);
    json_decref(found);
    free(wanted);
    recorder_free(&r);

    r = play(",'stream_options':{'include_usage':true}", true, "start\nsay a\nstop");
    found = scene_stream(&r, "chatcmpl-0123456789abcdefghijklmn", "chat.completion.chunk", true);
    wanted = quoted("[" ROLE "," SAY("a") "," FINISH("stop") ",{'choices':[]," USAGE "}," DONE "]");
    check_json("stream", found, wanted);
    json_decref(found);
    free(wanted);
    recorder_free(&r);
}

/* Several runs have one prompt: it counts once, what they generate adds up, their time does not. */
static void usage_of_runs(void) {
    static const plumb_usage first = {100, 40, 20, 5, 2.0, 8.0}, second = {100, 99, 30, 6, 0.25, 4.0};
    plumb_api_request *request = NULL;
    plumb_generation *g = NULL;
    plumb_api_error error;
    recorder r = RECORDER;
    char *body = quoted("{'n':2," HI "}");
    T_CHECK(plumb__openai_chat.read(&context, NULL, body, strlen(body), &request, &g, &error) == PLUMB_OK, "");
    plumb__openai_chat.event(request, &(plumb_generation_event){.kind = PLUMB_GENERATION_FINISHED, .run = 0,
                                                                .usage = &first}, &r.response);
    plumb__openai_chat.event(request, &(plumb_generation_event){.kind = PLUMB_GENERATION_FINISHED, .run = 1,
                                                                .usage = &second}, &r.response);
    json_t *found = recorder_body(&r);
    char *usage = quoted("{'prompt_tokens':100,'completion_tokens':50,'total_tokens':150,'prompt_tokens_details':"
                         "{'cached_tokens':40},'completion_tokens_details':{'reasoning_tokens':11}}");
    char *timings = quoted("{'prompt_seconds':2.0,'generation_seconds':8.0,'prompt_tokens_per_second':30.0,"
                           "'generation_tokens_per_second':6.25,'cached_tokens':40}");
    check_json("usage", json_object_get(found, "usage"), usage);
    check_json("timings", json_object_get(found, "timings"), timings);
    json_decref(found);
    free(usage);
    free(timings);
    free(body);
    recorder_free(&r);
    plumb__generation_destroy(g);
    plumb__openai_chat.destroy(request);
}

/* What a grammar or a bias excludes has the logarithm of 0, which JSON cannot say. */
static void impossible_tokens(void) {
    const float values[] = {-INFINITY, -0.5f};
    for (int i = 0; i < 2; i++) {
        json_t *value = plumb__openai_logprob_value(values[i]);
        const double wanted = i == 0 ? -9999.0 : -0.5, found = json_real_value(value);
        T_CHECK(json_is_real(value) && !(found < wanted) && !(found > wanted), "%g", found);
        json_decref(value);
    }
}

/* ---- Errors ---- */

static const struct {
    plumb_refusal refusal;
    int status;
    const char *type, *code;
} refusals[] = {
    {PLUMB_REFUSAL_BAD_REQUEST, 400, "'invalid_request_error'", "null"},
    {PLUMB_REFUSAL_UNAUTHORIZED, 401, "'authentication_error'", "'invalid_api_key'"},
    {PLUMB_REFUSAL_FORBIDDEN, 403, "'permission_error'", "null"},
    {PLUMB_REFUSAL_NOT_FOUND, 404, "'invalid_request_error'", "'not_found'"},
    {PLUMB_REFUSAL_METHOD, 405, "'invalid_request_error'", "'method_not_allowed'"},
    {PLUMB_REFUSAL_CONFLICT, 409, "'invalid_request_error'", "'conflict'"},
    {PLUMB_REFUSAL_TOO_LARGE, 413, "'invalid_request_error'", "'request_too_large'"},
    {PLUMB_REFUSAL_CONTEXT, 400, "'invalid_request_error'", "'context_length_exceeded'"},
    {PLUMB_REFUSAL_BUSY, 429, "'rate_limit_error'", "'rate_limit_exceeded'"},
    {PLUMB_REFUSAL_INTERNAL, 500, "'server_error'", "null"},
    {PLUMB_REFUSAL_STOPPING, 503, "'server_error'", "'server_stopping'"},
};

static void refusals_of_all_kinds(void) {
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        recorder r = RECORDER;
        plumb_api_error error = {.refusal = refusals[i].refusal, .param = "a[0].b", .message = "cut \xc3"};
        char body[300];
        snprintf(body, sizeof body, "{'error':{'message':'cut \xef\xbf\xbd','type':%s,'param':'a[0].b','code':%s}}",
                 refusals[i].type, refusals[i].code);
        char *wanted = quoted(body);
        plumb__openai_chat.refuse(&error, &r.response);
        json_t *found = recorder_body(&r);
        T_CHECK(r.status == refusals[i].status && r.ends == 1, "%zu: %d", i, r.status);
        check_json("refusal", found, wanted);
        json_decref(found);
        free(wanted);
        recorder_free(&r);
    }
}

/* Before a stream has begun a failure has its status; afterwards it is the last event, and nothing follows. */
static void failures(void) {
    static const struct {
        bool stream;
        const char *script;
        int status;
        const char *wanted;
    } cases[] = {
        {false, "start\nfail busy", 429, NULL},
        {false, "start\nprogress\nsay a\nfail internal", 500, NULL},
        {true, "fail busy", 429, NULL},
        {true, "start\nfail internal", 500, NULL},
        {true, "progress\nfail internal", 200,
         "[':prompt: 64 of 100 tokens',{'error':{'message':'a NaN','type':'server_error','param':null,'code':null}}]"},
        {true, "say a\nfail internal", 200,
         "[" ROLE "," SAY("a") ",{'error':{'message':'a NaN','type':'server_error','param':null,'code':null}}]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        recorder r = play("", cases[i].stream, cases[i].script);
        T_CHECK(r.status == cases[i].status, "%s: %d", cases[i].script, r.status);
        if (cases[i].wanted) {
            char *wanted = quoted(cases[i].wanted);
            json_t *found = scene_stream(&r, "chatcmpl-0123456789abcdefghijklmn", "chat.completion.chunk", false);
            check_json(cases[i].script, found, wanted);
            json_decref(found);
            free(wanted);
        } else {
            json_t *found = recorder_body(&r);
            T_CHECK(json_object_get(found, "error"), "%s", cases[i].script);
            json_decref(found);
        }
        recorder_free(&r);
    }
}

int main(int argc, char **argv) {
    static const t_test tests[] = {{"streams", streams},
                                   {"whole_answers", whole_answers},
                                   {"usage", usage},
                                   {"usage_of_runs", usage_of_runs},
                                   {"impossible_tokens", impossible_tokens},
                                   {"refusals_of_all_kinds", refusals_of_all_kinds},
                                   {"failures", failures}};
    context = fixture_context(&text, &sampling);
    int status = t_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
    plumb_text_close(text);
    return status;
}
