/* A drive that fails costs the jobs that needed it then, and nobody else.
 *
 * A streaming model, a few of whose experts are in memory, with a reader that spoils its answers between it and
 * its files. */
#include "engine/engine.h"
#include "scheduler_by_hand.h"
#include "stream/faulty_reader.h"

#include <errno.h>

enum { MOST_READERS = 2 };

static plumb_reader *readers[MOST_READERS];
static int n_readers;

static plumb_reader *wrap(void *user, plumb_reader *inner) {
    (void)user;
    return readers[n_readers++] = faulty_reader_open(inner, NULL, 0);
}

static plumb_model *open_streaming(void) {
    const plumb_reading reading = {.reader = PLUMB_READER_PREAD, .wrap = wrap};
    const plumb_model_options options = {.device = PLUMB_DEVICE_CPU, .streaming = true, .layer_buffers = true,
                                         .no_read_ahead = true, .threads = 1};
    plumb_model *streaming = NULL;
    plumb_error err;
    n_readers = 0;
    must(plumb__model_open_reading(DEMO, &options, &reading, &streaming, &err), &err, "streaming model");
    return streaming;
}

static void set_rule(const fault_rule *rule) {
    for (int i = 0; i < n_readers; i++) faulty_reader_set_rules(readers[i], rule, rule ? 1 : 0);
}

/* Two answers until both decode, when the worker is held. */
static plumb_scheduler *begin(plumb_model *streaming, client *clients[2]) {
    plumb_scheduler *s = open_scheduler((plumb_scheduler_options){.slots = 2, .model = streaming});
    hold();
    for (int i = 0; i < 2; i++) {
        clients[i] = new_client();
        CHECK(submit(s, clients[i], continue_ids(8 + i, 0, 1 + i, 8)));
    }
    wait_until_held();
    let_go();
    while (clients[0]->run[0].n_tokens == 0 || clients[1]->run[0].n_tokens == 0) {
        hold();
        turn(s);
        if (clients[0]->run[0].n_tokens == 0 || clients[1]->run[0].n_tokens == 0) let_go();
    }
    T_CHECK(!clients[0]->ended && !clients[1]->ended, "%d tokens", clients[0]->run[0].n_tokens);
    wait_until_held();
    return s;
}

static void check_answer(const client *c, int i) {
    plumb_generation *g = continue_ids(8 + i, 0, 1 + i, 8);
    T_CHECK(!c->failed && c->run[0].finished && c->run[0].n_tokens > 1, "%s", c->error.message);
    check_by_hand(g, &c->run[0], 0);
    plumb__generation_destroy(g);
}

static void finish(plumb_scheduler *s, client *clients[2], plumb_model *streaming) {
    close_scheduler(s);
    plumb_model_close(streaming);
    for (int i = 0; i < 2; i++) free(clients[i]);
}

/* The batch fails, and each alone does not. */
static void test_one_fault(void) {
    static const fault_rule once = {.nth = 1, .kind = FAULT_ERROR, .amount = EIO};
    client *clients[2];
    plumb_model *streaming = open_streaming();
    plumb_scheduler *s = begin(streaming, clients);
    set_rule(&once);
    let_go();
    for (int i = 0; i < 2; i++) {
        until_ended(clients[i]);
        check_answer(clients[i], i);
    }
    int64_t faults = 0;
    for (int i = 0; i < n_readers; i++) faults += faulty_reader_faults(readers[i]);
    CHECK(faults > 0 && stats_of(s).jobs_failed == 0);
    finish(s, clients, streaming);
}

static void test_all_fail(void) {
    static const fault_rule always = {.nth = 1, .every = true, .kind = FAULT_ERROR, .amount = EIO};
    client *clients[2];
    plumb_model *streaming = open_streaming();
    plumb_scheduler *s = begin(streaming, clients);
    set_rule(&always);
    let_go();
    for (int i = 0; i < 2; i++) {
        until_ended(clients[i]);
        T_CHECK(clients[i]->failed && clients[i]->error.refusal == PLUMB_REFUSAL_INTERNAL &&
                    strstr(clients[i]->error.message, "safetensors"), "%s", clients[i]->error.message);
    }
    client *reading = new_client();
    run(s, reading, continue_ids(30, 0, 7, 2));
    CHECK(reading->failed && reading->error.refusal == PLUMB_REFUSAL_INTERNAL);
    CHECK(stats_of(s).jobs_failed == 3);
    set_rule(NULL);
    for (int i = 0; i < 2; i++) {
        run(s, clients[i], continue_ids(8 + i, 0, 1 + i, 8));
        check_answer(clients[i], i);
    }
    free(reading);
    finish(s, clients, streaming);
}

int main(int argc, char **argv) {
    static const t_test tests[] = {{"one_fault", test_one_fault}, {"all_fail", test_all_fail}};
    int status = t_main(argc, argv, tests, (int)(sizeof tests / sizeof tests[0]));
    close_demo();
    return status;
}
