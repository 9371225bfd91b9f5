/* Who waits, who is refused, who is cancelled, and who does not read. */
#include "scheduler_by_hand.h"


static void test_full_queue(void) {
    plumb_scheduler *s = open_scheduler((plumb_scheduler_options){.slots = 1, .most_waiting = 1});
    client *first = new_client(), *second = new_client(), *third = new_client();
    hold();
    CHECK(submit(s, first, continue_text("The", 4)));
    wait_until_held();
    CHECK(submit(s, second, continue_text("The", 4)));
    CHECK(!submit(s, third, continue_text("The", 4)));
    CHECK(third->error.refusal == PLUMB_REFUSAL_BUSY && third->error.message[0]);
    plumb_scheduler_stats stats = stats_of(s);
    CHECK(stats.waiting == 1 && stats.jobs_refused == 1);
    let_go();
    until_ended(first);
    until_ended(second);
    run(s, third, continue_text("The", 4));
    CHECK(stats_of(s).jobs_finished == 3);
    free(first);
    free(second);
    free(third);
    close_scheduler(s);
}

static void test_closed_door(void) {
    plumb_scheduler *s = open_scheduler((plumb_scheduler_options){.slots = 1, .most_waiting = 2});
    client *runs = new_client(), *waits = new_client(), *late = new_client();
    hold();
    CHECK(submit(s, runs, ask("What is the capital of Norway?", -1)));
    wait_until_held();
    CHECK(submit(s, waits, continue_text("The", 4)));
    plumb__scheduler_close_door(s);
    CHECK(!submit(s, late, continue_text("The", 4)) && late->error.refusal == PLUMB_REFUSAL_STOPPING);
    let_go();
    until_ended(waits);
    CHECK(waits->failed && waits->error.refusal == PLUMB_REFUSAL_STOPPING && waits->events == 1);
    until_ended(runs);
    CHECK(!runs->failed && !strcmp(runs->run[0].content, "The capital of Norway is Oslo."));
    CHECK(stats_of(s).stopping);
    free(runs);
    free(waits);
    free(late);
    close_scheduler(s);
}

/* ---- Cancelling -------------------------------------------------------------------------------- */

static void test_cancel_in_queue(void) {
    plumb_scheduler *s = open_scheduler((plumb_scheduler_options){.slots = 1, .most_waiting = 1});
    client *first = new_client(), *second = new_client(), *third = new_client();
    hold();
    CHECK(submit(s, first, continue_text("The", 4)));
    wait_until_held();
    CHECK(submit(s, second, continue_text("The", 4)));
    cancel(second);
    CHECK(stats_of(s).waiting == 0 && stats_of(s).jobs_cancelled == 1);
    CHECK(submit(s, third, continue_text("The", 4))); /* its place is free */
    let_go();
    until_ended(first);
    until_ended(third);
    CHECK(second->events == 0);
    free(first);
    free(second);
    free(third);
    close_scheduler(s);
}

/* Noticed between layers: of 3,000 tokens not one is evaluated. */
static void test_cancel_in_prompt(void) {
    plumb_scheduler *s = open_scheduler((plumb_scheduler_options){.slots = 1, .quantum = 4096});
    client *c = new_client();
    hold();
    CHECK(submit(s, c, continue_ids(3000, 0, 1, 4)));
    wait_until_held(); /* as it is told that the job has started */
    cancel(c);
    let_go();
    until_idle(s);
    plumb_slot_stats slot;
    (void)plumb__scheduler_get_slots(s, &slot, 1);
    T_CHECK(slot.length == 0 && stats_of(s).prompt_rows == 0, "%" PRId64 " tokens", slot.length);
    CHECK(stats_of(s).jobs_cancelled == 1 && stats_of(s).jobs_finished == 0);
    run(s, c, ask("What is the capital of Norway?", -1));
    CHECK(!strcmp(c->run[0].content, "The capital of Norway is Oslo."));
    free(c);
    close_scheduler(s);
}

/* What was evaluated before is not lost: the same prompt goes on from there. */
static void test_cancel_between_quanta(void) {
    plumb_scheduler *s = open_scheduler((plumb_scheduler_options){.slots = 2, .quantum = 4});
    client *c = new_client(), *other = new_client();
    hold();
    CHECK(submit(s, c, continue_ids(200, 0, 1, 4)));
    wait_until_held();
    let_go();
    while (c->n_progress == 0) {
        hold();
        turn(s);
        if (c->n_progress == 0) let_go();
    }
    int64_t done = c->progress[0];
    cancel(c);
    let_go();
    until_idle(s);
    T_CHECK(done > 0 && done < 200, "%" PRId64, done);
    run(s, other, continue_ids(30, 0, 9, 2)); /* takes the slot that has less to lose */
    run(s, c, continue_ids(200, 0, 1, 4));
    T_CHECK(c->run[0].usage.cached_tokens >= done, "%" PRId64 " of %" PRId64, c->run[0].usage.cached_tokens, done);
    CHECK(c->run[0].cached_at_start == c->run[0].usage.cached_tokens);
    plumb_generation *g = continue_ids(200, 0, 1, 4);
    check_by_hand(g, &c->run[0], 0);
    plumb__generation_destroy(g);
    free(c);
    free(other);
    close_scheduler(s);
}

/* From within the sink, at every kind of event; those beside it notice nothing. */
static void test_cancel_in_delivery(void) {
    static const plumb_generation_event_kind kinds[] = {
        PLUMB_GENERATION_STARTED, PLUMB_GENERATION_PROGRESS, PLUMB_GENERATION_TOKEN, PLUMB_GENERATION_CONTENT,
        PLUMB_GENERATION_FINISHED};
    plumb_scheduler *s = open_scheduler((plumb_scheduler_options){.slots = 2});
    client *c = new_client(), *beside = new_client();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        CHECK(submit(s, beside, ask("What is the capital of Norway?", -1)));
        c->cancels = true;
        c->cancels_at = kinds[i];
        CHECK(submit(s, c, ask("What is the opposite of early?", -1)));
        while (!c->cancelled) turn(s);
        if (!beside->ended) until_ended(beside);
        CHECK(!strcmp(beside->run[0].content, "The capital of Norway is Oslo."));
        until_idle(s);
        plumb__scheduler_deliver(s);
    }
    /* The last one had ended. */
    plumb_scheduler_stats stats = stats_of(s);
    T_CHECK(stats.jobs_cancelled <= 4 && stats.jobs_cancelled + stats.jobs_finished == 10,
            "%" PRId64 " cancelled", stats.jobs_cancelled);
    free(c);
    free(beside);
    close_scheduler(s);
}

/* Runs that wait for their first one, and runs that wait for a slot. */
static void test_cancel_of_runs(void) {
    static const plumb_generation_event_kind kinds[] = {PLUMB_GENERATION_STARTED, PLUMB_GENERATION_TOKEN,
                                                        PLUMB_GENERATION_FINISHED};
    for (int slots = 1; slots <= 2; slots++) {
        plumb_scheduler *s = open_scheduler((plumb_scheduler_options){.slots = slots});
        client *c = new_client();
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            plumb_generation *g = with_seed(continue_ids(40, 0, 1, 5), 1);
            g->runs = 4;
            c->cancels = true;
            c->cancels_at = kinds[i];
            CHECK(submit(s, c, g));
            while (!c->cancelled) turn(s);
            until_idle(s);
            plumb__scheduler_deliver(s);
        }
        c->cancels = false;
        run(s, c, continue_ids(40, 0, 1, 5));
        CHECK(c->run[0].n_tokens == 5);
        free(c);
        close_scheduler(s);
    }
}

/* Each is admitted, or caught on the way, as it happens. */
static void test_many_cancelled(void) {
    plumb_scheduler *s = open_scheduler((plumb_scheduler_options){.slots = 2, .most_waiting = 4});
    client *c = new_client();
    for (int i = 0; i < 10000; i++) {
        if (!submit(s, c, continue_ids(3, 1, i, 4))) continue;
        if (i % 3 == 0) plumb__scheduler_deliver(s);
        if (!c->ended) cancel(c);
    }
    until_idle(s);
    plumb__scheduler_deliver(s);
    plumb_scheduler_stats stats = stats_of(s);
    T_CHECK(stats.jobs_refused == 0 && stats.jobs_cancelled + stats.jobs_finished == 10000, "%" PRId64 " cancelled",
            stats.jobs_cancelled);
    run(s, c, ask("What is the capital of Norway?", -1));
    CHECK(!strcmp(c->run[0].content, "The capital of Norway is Oslo."));
    free(c);
    close_scheduler(s);
}

/* Whatever is under way ends at once, and nothing of it is told. */
static void test_destroy(void) {
    client *clients[6];
    plumb_scheduler *s = open_scheduler((plumb_scheduler_options){.slots = 3, .most_waiting = 6});
    hold();
    for (int i = 0; i < 6; i++) {
        plumb_generation *g = continue_ids(500, 0, i, 500);
        g->runs = i == 0 ? 4 : 1;
        clients[i] = new_client();
        CHECK(submit(s, clients[i], g));
    }
    wait_until_held();
    close_scheduler(s);
    for (int i = 0; i < 6; i++) {
        CHECK(clients[i]->events == 0);
        free(clients[i]);
    }
}

/* ---- Clients that do not read ------------------------------------------------------------------ */

/* Most likely, so that a lost wake shows; nothing is wrong if it does not. */
static void let_worker_sleep(void) {
    const struct timespec moment = {.tv_nsec = 20000000};
    (void)nanosleep(&moment, NULL);
}

static void test_unsent(void) {
    plumb_scheduler *s = open_scheduler((plumb_scheduler_options){.slots = 2});
    client *slow = new_client(), *quick = new_client();
    hold();
    CHECK(submit(s, slow, continue_text("Once upon a time", 30)));
    wait_until_held();
    plumb__scheduler_set_unsent(s, slow->job, (1 << 20) + 1);
    CHECK(submit(s, quick, continue_text("Once upon a time, there was", 40)));
    let_go();
    until_ended(quick);
    T_CHECK(!slow->ended && slow->run[0].n_tokens <= 2, "%d tokens", slow->run[0].n_tokens);
    let_worker_sleep();
    plumb__scheduler_set_unsent(s, slow->job, 1 << 20);
    until_ended(slow);
    plumb_generation *g = continue_text("Once upon a time", 30);
    CHECK(slow->run[0].n_tokens == 30);
    check_by_hand(g, &slow->run[0], 0);
    plumb__generation_destroy(g);
    free(slow);
    free(quick);
    close_scheduler(s);
}

/* Whoever goes without reading frees the slot at once. */
static void test_cancel_unsent(void) {
    plumb_scheduler *s = open_scheduler((plumb_scheduler_options){.slots = 1});
    client *c = new_client();
    hold();
    CHECK(submit(s, c, continue_text("Once upon a time", 30)));
    wait_until_held();
    plumb__scheduler_set_unsent(s, c->job, (1 << 20) + 1);
    let_go();
    let_worker_sleep();
    cancel(c);
    until_idle(s);
    CHECK(stats_of(s).jobs_cancelled == 1 && !c->ended);
    free(c);
    close_scheduler(s);
}

/* Events that nobody fetches count as well: the queue of them is bounded. */
static void test_undelivered(void) {
    const struct timespec moment = {.tv_nsec = 1000000};
    plumb_scheduler *s = open_scheduler((plumb_scheduler_options){.slots = 2});
    client *slow = new_client(), *quick = new_client();
    hold();
    CHECK(submit(s, slow, continue_text("Once upon a time", 30)));
    wait_until_held();
    plumb__scheduler_set_unsent(s, slow->job, (1 << 20) - 8000);
    CHECK(submit(s, quick, continue_text("Once upon a time, there was", 60)));
    let_go();
    while (stats_of(s).jobs_finished == 0) (void)nanosleep(&moment, NULL);
    plumb_slot_stats slots[2];
    (void)plumb__scheduler_get_slots(s, slots, 2);
    T_CHECK(slots[0].doing == PLUMB_SLOT_DECODING && slots[0].generated_tokens < 30, "%" PRId64 " tokens",
            slots[0].generated_tokens);
    CHECK(quick->events == 0 && slow->events == 0);
    plumb__scheduler_deliver(s);
    CHECK(quick->ended && !slow->ended);
    until_ended(slow); /* what was delivered has made room */
    CHECK(slow->run[0].n_tokens == 30);
    free(slow);
    free(quick);
    close_scheduler(s);
}

int main(int argc, char **argv) {
    static const t_test tests[] = {
        {"full_queue", test_full_queue}, {"closed_door", test_closed_door},
        {"cancel_in_queue", test_cancel_in_queue}, {"cancel_in_prompt", test_cancel_in_prompt},
        {"cancel_between_quanta", test_cancel_between_quanta}, {"cancel_in_delivery", test_cancel_in_delivery},
        {"cancel_of_runs", test_cancel_of_runs}, {"many_cancelled", test_many_cancelled},
        {"destroy", test_destroy}, {"unsent", test_unsent},
        {"cancel_unsent", test_cancel_unsent}, {"undelivered", test_undelivered}};
    int status = t_main(argc, argv, tests, (int)(sizeof tests / sizeof tests[0]));
    close_demo();
    return status;
}
