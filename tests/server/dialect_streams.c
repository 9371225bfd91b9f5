/* Answers of all APIs as they go over the wire: dialect_streams FOLDER writes, for each script, API-NAME.sse and
 * API-NAME.json, the same answer with and without a stream.  The official clients read them. */
#include "server/api.h"

#include "api_fixture.h"
#include "recorder.h"
#include "script.h"

static const struct {
    const char *name, *script;
} scripts[] = {
    {"empty", "start\nstop"},
    {"text", "start\nprogress\nprogress\nsay Hel\nsay lo.\nstop"},
    {"thinking", "start\nthink Let me\nthink  see.\nsay 4\nstop"},
    {"only-thinking", "start\nthink Let me\nlength"},
    {"call", "start\ncall 0 look\nargs 0 {\"q\":\nargs 0  1.5}\nend 0\ncalls"},
    {"calls", "start\nthink Hm.\nsay I look.\ncall 0 look\nargs 0 {\"q\": 1}\nend 0\ncall 1 look\nargs 1 {\"s\": \"é\\n\"}\n"
              "end 1\nsay And now?\ncalls"},
    {"length", "start\nsay Hel\nlength"},
    {"broken-call", "start\nsay A\ncall 0 look\nargs 0 {\"q\ndrop 0\nstop"},
    {"failed", "start\nsay A\nfail internal"},
    {"stopped", "start\nsay A\nstopped END"},
    {"tokens", "start\nfirst <s>\nprompt Q\nbest A\nsay A\nhidden x\ntoken B\nsay B\nstop"},
    {"tokens-stopped", "start\ntoken A\nsay A\nbest E\nstopped END"},
};

#define MESSAGES "\"messages\":[{\"role\":\"user\",\"content\":\"Q\"}]"

static const struct {
    const char *name, *body;
    const plumb_api *api;
} apis[] = {
    {"messages", "{\"max_tokens\":9," MESSAGES ",\"stream\":%s}", &plumb__anthropic_messages},
    {"responses", "{\"input\":\"Q\",\"stream\":%s}", &plumb__openai_responses},
    {"chat", "{" MESSAGES ",\"logprobs\":true,\"top_logprobs\":2,\"stream\":%s,\"stream_options\":{\"include_usage\":true}}",
     &plumb__openai_chat},
    {"completions", "{\"prompt\":\"Q\",\"echo\":true,\"logprobs\":2,\"stream\":%s}", &plumb__openai_completions},
};

static bool write_file(const char *folder, const char *api, const char *name, const char *kind,
                       const plumb_text_buffer *bytes) {
    char path[1000];
    snprintf(path, sizeof path, "%s/%s-%s.%s", folder, api, name, kind);
    FILE *file = fopen(path, "wb");
    if (!file) return false;
    bool written = fwrite(bytes->bytes, 1, (size_t)bytes->size, file) == (size_t)bytes->size;
    return fclose(file) == 0 && written;
}

static bool write_answer(const plumb_api_context *context, size_t api, size_t script, bool stream,
                         const char *folder) {
    const plumb_api *a = apis[api].api;
    char body[200];
    void *state = NULL;
    plumb_api_request *request = NULL;
    plumb_generation *g = NULL;
    plumb_api_error error;
    recorder r = RECORDER;
    snprintf(body, sizeof body, apis[api].body, stream ? "true" : "false");
    bool ok = (!a->create_state || a->create_state(&state, NULL) == PLUMB_OK) &&
              a->read(context, state, body, strlen(body), &request, &g, &error) == PLUMB_OK;
    if (ok) {
        script_play(a, request, scripts[script].script, &r.response);
        ok = write_file(folder, apis[api].name, scripts[script].name, stream ? "sse" : "json", &r.bytes);
    }
    plumb__generation_destroy(g);
    a->destroy(request);
    if (a->destroy_state) a->destroy_state(state);
    recorder_free(&r);
    return ok;
}

int main(int argc, char **argv) {
    plumb_text *text = NULL;
    plumb_sampling sampling;
    if (argc != 2) return 2;
    plumb_api_context context = fixture_context(&text, &sampling);
    /* Completions have no calls. */
    for (size_t api = 0; api < sizeof apis / sizeof apis[0]; api++)
        for (size_t script = 0; script < sizeof scripts / sizeof scripts[0]; script++)
            for (int stream = 0; stream < 2; stream++) {
                if (apis[api].api == &plumb__openai_completions && strstr(scripts[script].script, "call")) continue;
                T_CHECK(write_answer(&context, api, script, stream, argv[1]), "%s-%s", apis[api].name,
                        scripts[script].name);
            }
    plumb_text_close(text);
    return t_failures > 0;
}
