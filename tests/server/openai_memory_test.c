/* Requests without memory: whichever allocation fails, the client is told an error, and an answer that lost a part
 * never looks whole.  The linker puts the functions here in place of the allocator's in everything that is linked
 * statically; jansson is told of them. */
#include "server/fields.h"

#include "api_fixture.h"
#include "quotes.h"
#include "script.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

static int64_t until_failure = INT64_MAX; /* allocations that still succeed; then one fails, or all do */
static bool fails_once;

static bool fails(void) {
    if (until_failure == INT64_MIN) return false;
    if (until_failure-- > 0) return false;
    if (fails_once) until_failure = INT64_MIN;
    else until_failure = 0;
    return true;
}

void *__wrap_malloc(size_t size) { return fails() ? NULL : __real_malloc(size); }
void *__wrap_calloc(size_t count, size_t size) { return fails() ? NULL : __real_calloc(count, size); }
void *__wrap_realloc(void *memory, size_t size) { return fails() ? NULL : __real_realloc(memory, size); }

/* A response that allocates nothing. */
typedef struct page {
    plumb_response response;
    int status, ends;
    size_t size;
    char bytes[16384];
} page;

static void page_begin(plumb_response *response, int status, const char *content_type, bool streaming) {
    (void)content_type, (void)streaming;
    ((page *)response)->status = status;
}

static void page_write(plumb_response *response, const char *bytes, size_t size) {
    page *p = (page *)response;
    T_CHECK(p->size + size < sizeof p->bytes, "a long answer");
    if (p->size + size >= sizeof p->bytes) return;
    memcpy(p->bytes + p->size, bytes, size);
    p->size += size;
    p->bytes[p->size] = 0;
}

static void page_end(plumb_response *response) { ((page *)response)->ends++; }

static plumb_text *text;
static plumb_sampling sampling;
static plumb_api_context context;

/* Allocation number `at` fails. */
static void play(const plumb_api *api, const char *body, const char *script, int64_t at, page *p) {
    plumb_api_request *request = NULL;
    plumb_generation *g = NULL;
    plumb_api_error error;
    *p = (page){.response = {.begin = page_begin, .write = page_write, .end = page_end}};
    until_failure = at;
    if (api->read(&context, NULL, body, strlen(body), &request, &g, &error) == PLUMB_OK)
        script_play(api, request, script, &p->response);
    else
        api->refuse(&error, &p->response);
    plumb__generation_destroy(g);
    api->destroy(request);
}

/* The parser of jansson 2.14 is not fit for this: what it allocates for a body succeeds. */
static int64_t allocations_of_parsing(const char *body) {
    plumb_api_error error = {0};
    plumb_fields fields;
    json_t *root = NULL;
    until_failure = INT64_MAX;
    T_CHECK(plumb__fields_parse(body, strlen(body), &root, &fields, &error), "%s", error.message);
    json_decref(root);
    return INT64_MAX - until_failure;
}

static void check(const plumb_api *api, const char *members, const char *script) {
    static page whole, found;
    char *body = quoted(members);
    play(api, body, script, INT64_MAX, &whole);
    const int64_t allocations = INT64_MAX - until_failure;
    T_CHECK(whole.status == 200 && allocations > 50, "%s: %d, %lld", body, whole.status, (long long)allocations);
    const int64_t parsing = allocations_of_parsing(body);
    for (int64_t i = 0; i < 2 * allocations; i++) {
        const int64_t before = 2; /* the request and the generation */
        if (i / 2 >= before && i / 2 < before + parsing) continue;
        fails_once = i % 2;
        play(api, body, script, i / 2, &found);
        until_failure = INT64_MAX;
        bool same = found.status == 200 && found.size == whole.size && memcmp(found.bytes, whole.bytes, whole.size) == 0;
        bool told = strstr(found.bytes, "memory") != NULL && (found.status == 500 || found.status == 200);
        T_CHECK(found.ends == 1, "allocation %lld: ended %d times", (long long)(i / 2), found.ends);
        T_CHECK(same || (told && !strstr(found.bytes, "[DONE]")), "allocation %lld of %s: %d %.2000s", (long long)(i / 2),
                body, found.status, found.bytes);
    }
    free(body);
}

#define HI "'messages':[{'role':'system','content':'s'},{'role':'user','content':[{'type':'text','text':'hi'}]}," \
           "{'role':'assistant','reasoning_content':'r','tool_calls':[{'id':'x','function':{'name':'f','arguments':'{}'}}]}," \
           "{'role':'tool','tool_call_id':'x','content':'1'}]"
#define TOOLS "'tools':[{'type':'function','function':{'name':'f','parameters':{'type':'object'}}}]"
#define SCRIPT "start\nthink t\nbest A\nsay A\ntoken \xc3\ncall 0 f\nargs 0 {}\nend 0\ncall 1 f\nargs 1 {\ndrop 1\nlength"

static void chats(void) {
    check(&plumb__openai_chat, "{'logprobs':true,'top_logprobs':2,'stop':['x','y'],'logit_bias':{'1':1}," TOOLS "," HI "}",
          SCRIPT);
    check(&plumb__openai_chat,
          "{'stream':true,'stream_options':{'include_usage':true},'logprobs':true,'top_logprobs':2,"
          "'tool_choice':'none','response_format':{'type':'json_object'}," TOOLS "," HI "}", SCRIPT);
    check(&plumb__openai_chat, "{'tool_choice':'required'," TOOLS "," HI "}", SCRIPT);
}

static void completions(void) {
    static const char script[] = "first \xc3\nprompt \xa9\nbest A\nsay A\ntoken \xc3\nlength";
    check(&plumb__openai_completions, "{'prompt':[1,2],'echo':true,'logprobs':2}", script);
    check(&plumb__openai_completions, "{'prompt':'p','echo':true,'logprobs':2,'stream':true}", script);
}

int main(int argc, char **argv) {
    static const t_test tests[] = {{"chats", chats}, {"completions", completions}};
    context = fixture_context(&text, &sampling);
    json_set_alloc_funcs(__wrap_malloc, free);
    int status = t_main(argc, argv, tests, sizeof tests / sizeof tests[0]);
    plumb_text_close(text);
    return status;
}
