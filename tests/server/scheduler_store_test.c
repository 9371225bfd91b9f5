/* What outlives a job, a slot's reuse and the process: sessions and the tokens of calls. */
#include "scheduler_by_hand.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static const char folder[] = BUILD_DIR "/tests/server/scheduler.store";

static void empty_folder(void) {
    DIR *dir = opendir(folder);
    for (const struct dirent *e; dir && (e = readdir(dir));) (void)unlinkat(dirfd(dir), e->d_name, 0);
    if (dir) (void)closedir(dir);
    (void)rmdir(folder);
}

static plumb_scheduler *open_kept(int slots) {
    return open_scheduler((plumb_scheduler_options){.slots = slots, .session_dir = folder});
}

static bool same_tokens(const client_run *a, const client_run *b) {
    if (a->n_tokens != b->n_tokens || a->n_tokens == 0) return false;
    for (int i = 0; i < a->n_tokens; i++)
        if (a->token[i].id != b->token[i].id || a->token[i].logprob != b->token[i].logprob) return false;
    return true;
}

/* ---- Sessions ---------------------------------------------------------------------------------- */

static void test_restart(void) {
    client *first = new_client(), *again = new_client();
    empty_folder();
    plumb_scheduler *s = open_kept(2);
    run(s, first, continue_ids(200, 0, 1, 6));
    CHECK(first->run[0].usage.cached_tokens == 0);
    close_scheduler(s);
    s = open_kept(2);
    CHECK(stats_of(s).store.entries == 1 && stats_of(s).store.usable == 1);
    run(s, again, continue_ids(200, 0, 1, 6));
    T_CHECK(again->run[0].usage.cached_tokens == 199, "%" PRId64, again->run[0].usage.cached_tokens);
    CHECK(same_tokens(&first->run[0], &again->run[0]));
    close_scheduler(s);
    T_CHECK(said[0] == 0, "%s", said);
    free(first);
    free(again);
}

/* Written as soon as there is nothing else to do: who is killed then loses nothing. */
static void test_saved_when_idle(void) {
    const struct timespec moment = {.tv_nsec = 1000000};
    client *c = new_client();
    empty_folder();
    plumb_scheduler *s = open_kept(1);
    run(s, c, continue_ids(100, 0, 1, 2));
    while (stats_of(s).store.entries == 0) (void)nanosleep(&moment, NULL);
    CHECK(stats_of(s).store.written_ever > 0);
    close_scheduler(s);
    free(c);
}

/* The only slot goes from one conversation to another, and finds each again. */
static void test_one_slot_for_two(void) {
    client *c = new_client();
    empty_folder();
    plumb_scheduler *s = open_kept(1);
    for (int turn = 0; turn < 4; turn++) {
        int32_t seed = 1 + turn % 2;
        run(s, c, continue_ids(200 + turn, 0, seed, 4));
        int64_t wanted = turn < 2 ? 1 : 198 + turn; /* BOS, or all of last time's prompt */
        T_CHECK(turn == 0 || c->run[0].usage.cached_tokens == wanted, "turn %d: %" PRId64, turn,
                c->run[0].usage.cached_tokens);
        plumb_generation *g = continue_ids(200 + turn, 0, seed, 4);
        check_by_hand(g, &c->run[0], 0);
        plumb__generation_destroy(g);
    }
    close_scheduler(s);
    free(c);
}

/* Stopped in the middle of prompts and answers, all of it is of use afterwards. */
static void test_stopped_at_work(void) {
    client *c = new_client(), *again = new_client();
    empty_folder();
    plumb_scheduler *s = open_kept(1);
    CHECK(submit(s, c, continue_ids(300, 0, 1, 400)));
    while (c->run[0].n_tokens < 3) turn(s);
    close_scheduler(s);
    s = open_kept(1);
    run(s, again, continue_ids(300, 0, 1, 3));
    T_CHECK(again->run[0].usage.cached_tokens == 299, "%" PRId64, again->run[0].usage.cached_tokens);
    close_scheduler(s);
    free(c);
    free(again);
}

/* ---- Calls ------------------------------------------------------------------------------------- */

#define FUNCTION(name, about)                                                                                     \
    "{\"type\": \"function\", \"function\": {\"name\": \"" name "\", \"description\": \"" about "\", "            \
    "\"parameters\": {\"type\": \"object\", \"properties\": {\"city\": {\"type\": \"string\"}}, "                 \
    "\"required\": [\"city\"]}}}"
#define TOOLS                                                                                                     \
    "{\"role\": \"system\", \"content\": \"\", \"tools\": [" FUNCTION("get_weather", "Get the weather of a city") \
    ", " FUNCTION("get_time", "Get the local time of a city") "]}"
#define QUESTION "{\"role\": \"user\", \"content\": \"What is the weather in Oslo?\"}"


/* The model thinks, then calls; answers of the demo model. */
static plumb_generation *question(void) {
    plumb_generation *g = chat("[" TOOLS ", " QUESTION "]", 160);
    g->thinking = g->keep_reasoning = g->tools_offered = true;
    return g;
}

/* What a client makes of the answer: the reasoning left out, keys in another order, other white space. */
static plumb_generation *history(const char *id) {
    char messages[MOST_TEXT];
    (void)snprintf(messages, sizeof messages,
                   "[" TOOLS ", " QUESTION ", {\"tool_calls\": [{\"function\": {\"arguments\": "
                   "\"{ \\\"city\\\":\\\"Oslo\\\" }\", \"name\": \"get_weather\"}, \"type\": \"function\", "
                   "\"id\": \"%s\"}], \"content\": null, \"role\": \"assistant\"}, "
                   "{\"role\": \"tool\", \"tool_call_id\": \"%s\", \"content\": \"rain\"}]", id, id);
    plumb_generation *g = chat(messages, 8);
    g->thinking = g->keep_reasoning = g->tools_offered = true;
    return g;
}

static void check_history(plumb_scheduler *s, const char *id, int64_t said_tokens, bool replayed) {
    client *c = new_client();
    run(s, c, history(id));
    int64_t cached = c->run[0].usage.cached_tokens;
    T_CHECK((cached >= said_tokens) == replayed, "%s: %" PRId64 " of %" PRId64, id, cached,
            said_tokens);
    T_CHECK(!c->failed && c->run[0].n_tokens > 0, "%s", c->error.message);
    free(c);
}

/* The sampled tokens stand in the next prompt, so that only what is new is evaluated; by a later process too. */
static void test_calls(void) {
    client *c = new_client();
    empty_folder();
    plumb_scheduler *s = open_kept(2);
    run(s, c, question());
    const client_run *r = &c->run[0];
    CHECK(r->finish == PLUMB_FINISH_CALLS && r->n_calls == 1 && !strcmp(r->function, "get_weather"));
    T_CHECK(strstr(r->arguments, "Oslo") && r->reasoning[0], "%s: %s", r->reasoning, r->arguments);
    int64_t said_tokens = r->usage.prompt_tokens + r->usage.completion_tokens - 1; /* the end is not evaluated */
    check_history(s, "call_unknown", said_tokens, false);
    check_history(s, r->call_id, said_tokens, true);
    close_scheduler(s);
    s = open_kept(2);
    check_history(s, r->call_id, said_tokens, true);
    T_CHECK(said[0] == 0, "%s", said);
    close_scheduler(s);
    free(c);
}

static int64_t count(plumb_scheduler *s, const char *id) {
    plumb_generation *g = history(id);
    plumb_tokens tokens = {0};
    plumb_error err;
    must(plumb__scheduler_encode(s, g, &tokens, &err), &err, "history");
    int64_t n = tokens.count;
    plumb_tokens_free(&tokens);
    plumb__generation_destroy(g);
    return n;
}

/* Whoever has just been told of the end may ask at once what its calls count. */
static void test_calls_counted(void) {
    client *c = new_client();
    empty_folder();
    plumb_scheduler *s = open_kept(1);
    hold();
    CHECK(submit(s, c, question()));
    for (turn(s); !c->ended; turn(s)) step();
    CHECK(c->run[0].n_calls == 1);
    int64_t at_once = count(s, c->run[0].call_id), unknown = count(s, "call_unknown");
    T_CHECK(at_once > unknown, "%" PRId64 " tokens, %" PRId64 " of unknown calls", at_once, unknown);
    close_scheduler(s);
    free(c);
}

/* A memory that is damaged is put aside, and a new one begun. */
static void test_damaged_calls(void) {
    static const char *const damaged[] = {"", "[{\"messa", "[{\"message\": 3}]", "no JSON at all"};
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        struct stat there;
        char path[512], aside[512];
        client *c = new_client();
        empty_folder();
        close_scheduler(open_kept(1));
        (void)snprintf(path, sizeof path, "%s/calls.json", folder);
        (void)snprintf(aside, sizeof aside, "%s/calls.json.damaged", folder);
        FILE *file = fopen(path, "wb");
        CHECK(file && fputs(damaged[i], file) >= 0 && fclose(file) == 0);
        plumb_scheduler *s = open_kept(1);
        T_CHECK(strstr(said, "put aside"), "%s", said);
        CHECK(stat(aside, &there) == 0 && there.st_size == (off_t)strlen(damaged[i]) && stat(path, &there) != 0);
        run(s, c, question());
        CHECK(!c->failed && c->run[0].n_calls == 1);
        close_scheduler(s);
        CHECK(stat(path, &there) == 0 && (there.st_mode & 0777) == 0600);
        said[0] = 0;
        close_scheduler(open_kept(1));
        T_CHECK(said[0] == 0, "%s", said);
        free(c);
    }
}

int main(int argc, char **argv) {
    static const t_test tests[] = {
        {"restart", test_restart}, {"saved_when_idle", test_saved_when_idle},
        {"one_slot_for_two", test_one_slot_for_two}, {"stopped_at_work", test_stopped_at_work},
        {"calls", test_calls}, {"calls_counted", test_calls_counted}, {"damaged_calls", test_damaged_calls}};
    int status = t_main(argc, argv, tests, (int)(sizeof tests / sizeof tests[0]));
    close_demo();
    return status;
}
