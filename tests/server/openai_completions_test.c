/* Completions: bodies taken and refused, and each script as a stream and as a whole answer. */
#include "generation_json.h"
#include "openai_scene.h"

#define P "'prompt':'p'"

static const struct {
    const char *body, *wanted;
} taken[] = {
    {"{" P "}", "{'prompt':'p','most_tokens':16}"},
    {"{'prompt':''}", "{'prompt':'','most_tokens':16}"},
    {"{'prompt':['p']}", "{'prompt':'p','most_tokens':16}"},
    {"{'prompt':'<｜User｜>'}", "{'prompt':'<｜User｜>','most_tokens':16}"},
    {"{'prompt':[0,4095,7]}", "{'ids':[0,4095,7],'most_tokens':16}"},
    {"{'prompt':[[5]]}", "{'ids':[5],'most_tokens':16}"},
    {"{'model':'m','user':'u','suffix':null,'best_of':null,'logprobs':null," P "}", "{'prompt':'p','most_tokens':16}"},
    {"{'max_tokens':0,'echo':true,'logprobs':1," P "}",
     "{'prompt':'p','most_tokens':0,'echo':1,'logprobs':1,'top_logprobs':1}"},
    {"{'max_tokens':5,'logprobs':0,'suffix':''," P "}", "{'prompt':'p','most_tokens':5,'logprobs':1}"},
    {"{'n':2,'best_of':2,'stop':['a'],'temperature':0.5,'seed':3,'logit_bias':{'1':-100}," P "}",
     "{'prompt':'p','most_tokens':16,'runs':2,'stop':['a'],'temperature':0.5,'seed':3,'bias':[[1,-100.0]]}"},
};

static const struct {
    const char *body, *param, *message;
} refused[] = {
    {"nothing", "", "not JSON"},
    {"{}", "prompt", "missing"},
    {"{'prompt':7}", "prompt", "neither a text nor token ids"},
    {"{'prompt':[]}", "prompt", "neither a text nor token ids"},
    {"{'prompt':[[]]}", "prompt", "neither a text nor token ids"},
    {"{'prompt':{}}", "prompt", "neither a text nor token ids"},
    {"{'prompt':['a','b']}", "prompt", "2 prompts, expected one"},
    {"{'prompt':[[1],[2]]}", "prompt", "2 prompts, expected one"},
    {"{'prompt':[1,4096]}", "prompt", "element 1 of 'prompt' is not a token id below 4096"},
    {"{'prompt':[-1]}", "prompt", "element 0"},
    {"{'prompt':[1,'a']}", "prompt", "element 1"},
    {"{'prompt':[1.5]}", "prompt", "element 0"},
    {"{'echo':1," P "}", "echo", "expected a boolean"},
    {"{'max_tokens':0," P "}", "max_tokens", "leaves nothing"},
    {"{'max_tokens':-2," P "}", "max_tokens", "expected -1 to"},
    {"{'repetition_penalty':1.1," P "}", "repetition_penalty", "not supported, except 1"},
    {"{'prompt_logprobs':1," P "}", "prompt_logprobs", "not supported"},
    {"{'response_format':{'type':'json_object'}," P "}", "response_format.type", "expected one of: text"},
    {"{'logprobs':6," P "}", "logprobs", "expected 0 to 5"},
    {"{'logprobs':true," P "}", "logprobs", "whole number"},
    {"{'suffix':'s'," P "}", "suffix", "not supported"},
    {"{'best_of':2," P "}", "best_of", "not supported"},
    {"{'n':9," P "}", "n", "expected 1 to 4"},
    {"{'stop':{}," P "}", "stop", "expected a string"},
    {"{'stream':0," P "}", "stream", "expected a boolean"},
};

#define TEXT(text) "{'text':'" text "'}"
#define FINISH(reason) "{'text':'','finish_reason':'" reason "'}"
#define DONE "'[DONE]'"
#define CHOICE(text, logprobs, reason) \
    "[{'index':0,'text':'" text "','logprobs':" logprobs ",'finish_reason':'" reason "'}]"
#define LOGPROBS(tokens, logprobs, top, offsets) \
    "{'tokens':[" tokens "],'token_logprobs':[" logprobs "],'top_logprobs':" top ",'text_offset':[" offsets "]}"
#define BEST "{'A':-0.25,'bytes:\\\\xe2':-2.0}"
#define BEST_OF(token) "{'" token "':-0.5,'A':-0.25,'bytes:\\\\xe2':-2.0}"

static const struct {
    const char *name, *members, *script, *stream, *choices;
} answers[] = {
    {"nothing", P, "start\nstop", "[" FINISH("stop") "," DONE "]", CHOICE("", "null", "stop")},
    {"text", P, "start\nprogress\nsay a\nsay \xc3\xa9\nlength",
     "[':prompt: 64 of 100 tokens'," TEXT("a") "," TEXT("\xc3\xa9") "," FINISH("length") "," DONE "]",
     CHOICE("a\xc3\xa9", "null", "length")},
    {"two runs", P ",'n':2", "@1 say b\n@0 say a\n@1 stop\nlength",
     "[{'index':1,'text':'b'}," TEXT("a") ",{'index':1,'text':'','finish_reason':'stop'}," FINISH("length") "," DONE "]",
     "[{'index':0,'text':'a','logprobs':null,'finish_reason':'length'},"
     "{'index':1,'text':'b','logprobs':null,'finish_reason':'stop'}]"},
    {"an echoed text is without the token that opens it", P ",'echo':true",
     "first <BOS>\nprompt p\xc3\nprompt \xa9\nsay a\nstop",
     "[" TEXT("p\xc3\xa9") "," TEXT("a") "," FINISH("stop") "," DONE "]", CHOICE("p\xc3\xa9""a", "null", "stop")},
    {"echoed ids are all the client's", "'prompt':[1,2],'echo':true,'logprobs':0", "first x\nprompt y\nlength",
     "[{'text':'xy','logprobs':" LOGPROBS("'x','y'", "null,-0.5", "null", "0,1") "},"
     "{'text':'','finish_reason':'length','logprobs':" LOGPROBS("", "", "null", "") "}," DONE "]",
     CHOICE("xy", LOGPROBS("'x','y'", "null,-0.5", "null", "0,1"), "length")},
    {"log-probabilities in their oldest form", "'prompt':[1],'echo':true,'logprobs':2",
     "first \xc3\xa9\nbest b\nsay b\ntoken \xc3\nbest \xa9\nsay \xc3\xa9\ntoken c\nsay c\nhidden x\nstop",
     "[{'text':'\xc3\xa9','logprobs':" LOGPROBS("'\xc3\xa9'", "null", "[null]", "0") "},"
     "{'text':'b','logprobs':" LOGPROBS("'b'", "-0.5", "[" BEST_OF("b") "]", "1") "},"
     "{'text':'\xc3\xa9','logprobs':" LOGPROBS("'bytes:\\\\xc3','bytes:\\\\xa9'", "-0.5,-0.5",
                                               "[{'bytes:\\\\xc3':-0.5}," BEST_OF("bytes:\\\\xa9") "]", "2,2") "},"
     "{'text':'c','logprobs':" LOGPROBS("'c'", "-0.5", "[{'c':-0.5}]", "3") "},"
     "{'text':'','finish_reason':'stop','logprobs':" LOGPROBS("", "", "[]", "") "}," DONE "]",
     CHOICE("\xc3\xa9""b\xc3\xa9""c",
            LOGPROBS("'\xc3\xa9','b','bytes:\\\\xc3','bytes:\\\\xa9','c'", "null,-0.5,-0.5,-0.5,-0.5",
                     "[null," BEST_OF("b") ",{'bytes:\\\\xc3':-0.5}," BEST_OF("bytes:\\\\xa9") ",{'c':-0.5}]",
                     "0,1,2,2,3"), "stop")},
    {"the token itself among the best", P ",'logprobs':2", "best A\nsay A\nstop",
     "[{'text':'A','logprobs':" LOGPROBS("'A'", "-0.5", "[" BEST "]", "0") "},"
     "{'text':'','finish_reason':'stop','logprobs':" LOGPROBS("", "", "[]", "") "}," DONE "]",
     CHOICE("A", LOGPROBS("'A'", "-0.5", "[" BEST "]", "0"), "stop")},
    {"tokens of a stop string are not told", P ",'logprobs':0,'stop':'xy'", "token a\nsay a\ntoken x\ntoken y\nstopped xy",
     "[{'text':'a','logprobs':" LOGPROBS("'a'", "-0.5", "null", "0") "},"
     "{'text':'','finish_reason':'stop','logprobs':" LOGPROBS("", "", "null", "") "}," DONE "]",
     CHOICE("a", LOGPROBS("'a'", "-0.5", "null", "0"), "stop")},
};

static plumb_text *text;
static plumb_sampling sampling;
static plumb_api_context context;

static void bodies(void) {
    plumb_api_request *request;
    plumb_generation *g;
    plumb_api_error error;
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        char *body = quoted(taken[i].body), *wanted = quoted(taken[i].wanted);
        request = NULL, g = NULL;
        plumb_status status =
            plumb__openai_completions.read(&context, NULL, body, strlen(body), &request, &g, &error);
        T_CHECK(status == PLUMB_OK, "%s: '%s' %s", body, error.param, error.message);
        json_t *found = g ? describe_generation(g) : NULL;
        check_json(body, found, wanted);
        json_decref(found);
        plumb__openai_completions.destroy(request);
        plumb__generation_destroy(g);
        free(body);
        free(wanted);
    }
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        char *body = quoted(refused[i].body);
        request = NULL, g = NULL;
        plumb_status status =
            plumb__openai_completions.read(&context, NULL, body, strlen(body), &request, &g, &error);
        T_CHECK(status != PLUMB_OK && !request && !g, "%s is taken", body);
        T_CHECK(error.refusal == PLUMB_REFUSAL_BAD_REQUEST, "%s: refusal %d", body, error.refusal);
        T_CHECK(strcmp(error.param, refused[i].param) == 0, "%s: field '%s'", body, error.param);
        T_CHECK(strstr(error.message, refused[i].message), "%s: %s", body, error.message);
        free(body);
    }
}

static void answers_to_all(void) {
    for (size_t i = 0; i < 2 * (sizeof answers / sizeof answers[0]); i++) {
        const bool stream = i % 2;
        const char *name = answers[i / 2].name;
        char body[300];
        snprintf(body, sizeof body, "{'stream':%s,%s}", stream ? "true" : "false", answers[i / 2].members);
        char *meant = quoted(body), *wanted = quoted(stream ? answers[i / 2].stream : answers[i / 2].choices);
        recorder r = scene_play(&plumb__openai_completions, &context, meant, answers[i / 2].script);
        json_t *found;
        if (stream) {
            found = scene_stream(&r, "cmpl-0123456789abcdefghijklmn", "text_completion", false);
            check_json(name, found, wanted);
        } else {
            found = recorder_body(&r);
            scene_strip(found, "cmpl-0123456789abcdefghijklmn", "text_completion");
            check_json(name, json_object_get(found, "choices"), wanted);
            T_CHECK(json_object_get(found, "usage") && json_object_get(found, "timings"), "%s: no usage", name);
        }
        json_decref(found);
        free(meant);
        free(wanted);
        recorder_free(&r);
    }
}

static void failures(void) {
    static const struct {
        const char *body, *script, *wanted;
        int status;
    } cases[] = {
        {"{" P "}", "say a\nfail busy", NULL, 429},
        {"{'stream':true," P "}", "fail internal", NULL, 500},
        {"{'stream':true,'stream_options':{'include_usage':true}," P "}", "say a\nfail internal",
         "[" TEXT("a") ",{'error':{'message':'a NaN','type':'server_error','param':null,'code':null}}]", 200},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *body = quoted(cases[i].body), *wanted = cases[i].wanted ? quoted(cases[i].wanted) : NULL;
        recorder r = scene_play(&plumb__openai_completions, &context, body, cases[i].script);
        T_CHECK(r.status == cases[i].status, "%s: %d", body, r.status);
        if (wanted) {
            json_t *found = scene_stream(&r, "cmpl-0123456789abcdefghijklmn", "text_completion", true);
            check_json(body, found, wanted);
            json_decref(found);
        }
        recorder_free(&r);
        free(body);
        free(wanted);
    }
}

int main(int argc, char **argv) {
    static const t_test tests[] = {{"bodies", bodies}, {"answers_to_all", answers_to_all}, {"failures", failures}};
    context = fixture_context(&text, &sampling);
    int status = t_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
    plumb_text_close(text);
    return status;
}
