/* Answers through the scheduler: those of one session by hand, bit for bit, whatever else goes on. */
#include "scheduler_by_hand.h"

#include <math.h>

/* Answers of the published inference code (tests/data/demo-model/prompts.json). */
static const char recall[] =
    "[{\"role\": \"user\", \"content\": \"What is the capital of Norway?\"}]";

static void test_answer(void) {
    plumb_scheduler *s = open_scheduler((plumb_scheduler_options){.slots = 2});
    client *c = new_client();
    run(s, c, chat(recall, -1));
    const client_run *r = &c->run[0];
    T_CHECK(!strcmp(r->content, "The capital of Norway is Oslo."), "%s", r->content);
    CHECK(r->finish == PLUMB_FINISH_STOP && r->reasoning[0] == 0);
    CHECK(r->usage.prompt_tokens == 11 && r->usage.cached_tokens == 0 && r->usage.completion_tokens == 8);
    CHECK(r->usage.prefill_seconds > 0 && r->usage.decode_seconds > 0);
    CHECK(c->n_progress == 1 && c->progress[0] == 11);
    plumb_generation *g = chat(recall, -1);
    check_by_hand(g, r, 0);
    plumb__generation_destroy(g);

    plumb_scheduler_stats stats = stats_of(s);
    CHECK(stats.slots == 2 && stats.busy == 0 && stats.waiting == 0 && stats.context == info.max_positions);
    CHECK(stats.jobs_finished == 1 && stats.jobs_failed == 0 && stats.prompt_tokens == 11);
    CHECK(stats.generated_tokens == 8 && stats.decode_steps == 7 && stats.decoded_rows == 7);
    CHECK(stats.prompt_rows == 11 && stats.prefill_seconds > 0 && stats.decode_seconds > 0);
    plumb_slot_stats slots[2];
    CHECK(plumb__scheduler_get_slots(s, slots, 2) == 2);
    /* What ended the turn is not evaluated. */
    CHECK(slots[0].doing == PLUMB_SLOT_IDLE && slots[0].length == 18 && slots[1].length == 0);
    free(c);
    close_scheduler(s);
}

/* The effort stands in the prompt, and so does reasoning that is kept; raw text is text. */
static void test_manner(void) {
    static const char history[] =
        "[{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"reasoning_content\": \"because\", "
        "\"content\": \"b\"}, {\"role\": \"user\", \"content\": \"c\"}]";
    plumb_scheduler *s = open_scheduler((plumb_scheduler_options){.slots = 1});
    client *c = new_client();
    for (int manner = 0; manner < 3; manner++) {
        plumb_generation *g[2];
        for (int i = 0; i < 2; i++) {
            g[i] = chat(history, 4);
            g[i]->thinking = true;
            g[i]->effort = manner == 1 ? 20 : 75;
            g[i]->keep_reasoning = manner == 2;
        }
        run(s, c, g[0]);
        CHECK(check_by_hand(g[1], &c->run[0], 0) == c->run[0].usage.prompt_tokens && c->run[0].n_tokens == 4);
        plumb__generation_destroy(g[1]);
    }
    run(s, c, continue_text("<think>", 4)); /* text, not a token */
    plumb_generation *raw = continue_text("<think>", 4);
    CHECK(check_by_hand(raw, &c->run[0], 0) == c->run[0].usage.prompt_tokens && c->run[0].usage.prompt_tokens > 2);
    plumb__generation_destroy(raw);
    free(c);
    close_scheduler(s);
}

static void test_thinking(void) {
    plumb_scheduler *s = open_scheduler((plumb_scheduler_options){.slots = 1});
    client *c = new_client();
    plumb_generation *g = ask("What is 38 + 47?", -1);
    g->thinking = true;
    g->effort = 75;
    run(s, c, g);
    const client_run *r = &c->run[0];
    T_CHECK(!strcmp(r->reasoning, "38 + 47. Tens: 30 + 40 = 70. Ones: 8 + 7 = 15. Together: 70 + 15 = 85."), "%s",
            r->reasoning);
    T_CHECK(!strcmp(r->content, "38 + 47 = 85."), "%s", r->content);
    CHECK(r->usage.prompt_tokens == 36 && r->usage.reasoning_tokens > 0);
    free(c);
    close_scheduler(s);
}

/* ---- Several at once --------------------------------------------------------------------------- */

static plumb_generation *eighth(int i) {
    static const char *const names[] = {"Emma", "Mark", "Rose", "Tom", "Anna", "Paul", "Lucy", "Jack"};
    char prompt[128];
    (void)snprintf(prompt, sizeof prompt, "Once upon a time, there was a child named %s. %s", names[i], names[i]);
    return with_seed(continue_text(prompt, 12), 100 + (uint64_t)i);
}

/* Fewer slots than jobs, so that some wait; each has the tokens and log-probabilities it has alone. */
static void test_eight_at_once(void) {
    plumb_scheduler *s = open_scheduler((plumb_scheduler_options){.slots = 5, .most_waiting = 8, .quantum = 8});
    client *clients[8];
    hold();
    for (int i = 0; i < 8; i++) {
        clients[i] = new_client();
        CHECK(submit(s, clients[i], eighth(i)));
    }
    wait_until_held();
    let_go();
    for (int i = 0; i < 8; i++) until_ended(clients[i]);
    plumb_scheduler_stats stats = stats_of(s);
    T_CHECK(stats.decoded_rows > stats.decode_steps, "never more than one at once");
    for (int i = 0; i < 8; i++) {
        plumb_generation *g = eighth(i);
        CHECK(clients[i]->run[0].n_tokens == 12);
        check_by_hand(g, &clients[i]->run[0], 100 + (uint64_t)i);
        plumb__generation_destroy(g);
        free(clients[i]);
    }
    close_scheduler(s);
}

/* Between any two quanta of a long prompt everybody else gets a token. */
static void test_long_prompt_beside(void) {
    plumb_scheduler *s = open_scheduler((plumb_scheduler_options){.slots = 2, .quantum = 32});
    client *decoding = new_client(), *reading = new_client();
    hold();
    CHECK(submit(s, decoding, continue_text("Once upon a time", 40)));
    wait_until_held();
    CHECK(submit(s, reading, continue_ids(600, 0, 1, 2)));
    let_go();
    until_ended(decoding);
    until_ended(reading);
    T_CHECK(reading->n_progress >= 18, "%d quanta", reading->n_progress);
    for (int i = 1; i < reading->n_progress; i++) {
        int between = 0;
        for (int t = 0; t < decoding->run[0].n_tokens; t++) {
            int64_t place = decoding->run[0].token[t].place;
            between += place > reading->progress_place[i - 1] && place < reading->progress_place[i];
        }
        T_CHECK(between == 1, "%d tokens between quanta %d and %d", between, i - 1, i);
        CHECK(reading->progress[i] - reading->progress[i - 1] <= 32);
    }
    CHECK(reading->progress[reading->n_progress - 1] == 600);
    free(decoding);
    free(reading);
    close_scheduler(s);
}

/* ---- Many prompts beside many answers ---- */

enum { ANSWERS = 2, READERS = 4, BOOK = 256, BOOK_QUANTUM = 32, QUANTA = READERS * BOOK / BOOK_QUANTUM };

typedef struct quantum {
    int reader;
    int64_t place;
} quantum;

/* What the readers were told of their prompts, in the order in which it was told. */
static int list_quanta(client *const *readers, quantum *list) {
    int n = 0, at[READERS] = {0};
    for (;;) {
        int next = -1;
        for (int i = 0; i < READERS; i++) {
            if (at[i] == readers[i]->n_progress) continue;
            if (next < 0 || readers[i]->progress_place[at[i]] < readers[next]->progress_place[at[next]]) next = i;
        }
        if (next < 0 || n == QUANTA) return n;
        list[n++] = (quantum){next, readers[next]->progress_place[at[next]++]};
    }
}

static int tokens_between(const client *c, int64_t from, int64_t to) {
    int n = 0;
    for (int t = 0; t < c->run[0].n_tokens; t++) n += c->run[0].token[t].place > from && c->run[0].token[t].place < to;
    return n;
}

/* Every answer gets a token between any two quanta, and every prompt its quantum in turn: nobody starves. */
static void test_prompts_beside_answers(void) {
    plumb_scheduler *s = open_scheduler((plumb_scheduler_options){.slots = ANSWERS + READERS, .most_waiting = 8,
                                                                  .quantum = BOOK_QUANTUM});
    client *answers[ANSWERS], *readers[READERS];
    quantum list[QUANTA];
    hold();
    for (int i = 0; i < ANSWERS; i++) {
        answers[i] = new_client();
        CHECK(submit(s, answers[i], continue_text(i == 0 ? "Once upon a time" : "A child", QUANTA + 8)));
    }
    wait_until_held();
    for (int i = 0; i < READERS; i++) {
        readers[i] = new_client();
        CHECK(submit(s, readers[i], continue_ids(BOOK, 0, i, 2)));
    }
    let_go();
    for (int i = 0; i < ANSWERS; i++) until_ended(answers[i]);
    for (int i = 0; i < READERS; i++) until_ended(readers[i]);
    CHECK(list_quanta(readers, list) == QUANTA);
    for (int i = 1; i < QUANTA; i++) {
        for (int a = 0; a < ANSWERS; a++) {
            if (answers[a]->run[0].token[0].place > list[i - 1].place) continue; /* it has not begun */
            int between = tokens_between(answers[a], list[i - 1].place, list[i].place);
            T_CHECK(between == 1, "%d tokens of answer %d between quanta %d and %d", between, a, i - 1, i);
        }
        for (int k = 1; k < READERS && k <= i; k++)
            T_CHECK(list[i].reader != list[i - k].reader, "quanta %d and %d are of one prompt", i - k, i);
    }
    for (int i = 0; i < ANSWERS; i++) free(answers[i]);
    for (int i = 0; i < READERS; i++) free(readers[i]);
    close_scheduler(s);
}

/* ---- Again, and otherwise ---------------------------------------------------------------------- */

static bool same_tokens(const client_run *a, const client_run *b) {
    if (a->n_tokens != b->n_tokens) return false;
    for (int i = 0; i < a->n_tokens; i++)
        if (a->token[i].id != b->token[i].id || a->token[i].logprob != b->token[i].logprob) return false;
    return true;
}

static void test_resend(void) {
    static const int64_t lengths[] = {1, 2, 127, 128, 129, 300};
    plumb_scheduler *s = open_scheduler((plumb_scheduler_options){.slots = 1});
    client *first = new_client(), *again = new_client();
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        int64_t n = lengths[i];
        run(s, first, continue_ids(n, 1, 1 + (int32_t)i, 6));
        int64_t rows = stats_of(s).prompt_rows;
        run(s, again, continue_ids(n, 1, 1 + (int32_t)i, 6));
        T_CHECK(again->run[0].usage.cached_tokens == n - 1 && again->run[0].cached_at_start == n - 1,
                "%" PRId64 " of %" PRId64, again->run[0].usage.cached_tokens, n);
        T_CHECK(stats_of(s).prompt_rows == rows + 1, "%" PRId64 " rows", stats_of(s).prompt_rows - rows);
        T_CHECK(same_tokens(&first->run[0], &again->run[0]), "other tokens after %" PRId64, n);
    }
    free(first);
    free(again);
    close_scheduler(s);
}

static void test_divergence(void) {
    static const int64_t back[] = {1, 2, 63, 129};
    plumb_scheduler *s = open_scheduler((plumb_scheduler_options){.slots = 2});
    client *c = new_client();
    for (size_t i = 0; i < sizeof back / sizeof *back; i++) {
        int64_t same = 260 - back[i];
        run(s, c, continue_ids(260, 0, 0, 3));
        run(s, c, continue_ids(260, same, 5, 3));
        T_CHECK(c->run[0].usage.cached_tokens == same, "%" PRId64 " of %" PRId64, c->run[0].usage.cached_tokens, same);
        plumb_generation *g = continue_ids(260, same, 5, 3);
        check_by_hand(g, &c->run[0], 0);
        plumb__generation_destroy(g);
    }
    free(c);
    close_scheduler(s);
}

/* What a busy slot has is copied, and its answer goes on. */
static void test_copy_of_a_busy_slot(void) {
    plumb_scheduler *s = open_scheduler((plumb_scheduler_options){.slots = 2});
    client *first = new_client(), *second = new_client();
    CHECK(submit(s, first, continue_ids(200, 0, 0, 40)));
    while (first->run[0].n_tokens == 0) {
        hold();
        turn(s);
        if (first->run[0].n_tokens == 0) let_go();
    }
    CHECK(submit(s, second, continue_ids(220, 200, 3, 4)));
    wait_until_held();
    let_go();
    until_ended(first);
    until_ended(second);
    T_CHECK(second->run[0].usage.cached_tokens == 200, "%" PRId64, second->run[0].usage.cached_tokens);
    plumb_generation *g = continue_ids(200, 0, 0, 40);
    check_by_hand(g, &first->run[0], 0);
    plumb__generation_destroy(g);
    g = continue_ids(220, 200, 3, 4);
    check_by_hand(g, &second->run[0], 0);
    plumb__generation_destroy(g);
    free(first);
    free(second);
    close_scheduler(s);
}

/* ---- The same beginning at the same time ------------------------------------------------------- */

static void check_ids(const client *c, int64_t count, int64_t same, int32_t seed, int64_t cached) {
    plumb_generation *g = continue_ids(count, same, seed, 4);
    T_CHECK(c->run[0].n_tokens == 4 && c->run[0].usage.cached_tokens == cached, "%d tokens, %" PRId64 " cached",
            c->run[0].n_tokens, c->run[0].usage.cached_tokens);
    check_by_hand(g, &c->run[0], 0);
    plumb__generation_destroy(g);
}

/* Rows that several prompts have at the beginning are evaluated for one of them; nobody is in the way of that one. */
static void test_common_beginning(void) {
    plumb_scheduler *s = open_scheduler((plumb_scheduler_options){.slots = 4, .most_waiting = 4, .quantum = 32});
    client *short_one = new_client(), *c[3];
    hold();
    CHECK(submit(s, short_one, continue_ids(3, 0, 9, 1)));
    wait_until_held();
    for (int i = 0; i < 3; i++) CHECK(submit(s, c[i] = new_client(), continue_ids(240, i == 2 ? 240 : 200, i, 4)));
    let_go();
    for (int i = 0; i < 3; i++) until_ended(c[i]);
    check_ids(c[0], 240, 200, 0, 0);
    check_ids(c[1], 240, 200, 1, 200);
    check_ids(c[2], 240, 240, 2, 239); /* all of the first one's, whose seed changes nothing */
    /* Told now and then, where a quantum would tell of 32. */
    T_CHECK(c[0]->progress[0] >= 128, "%" PRId64, c[0]->progress[0]);
    for (int i = 1; i < c[0]->n_progress; i++) CHECK(c[0]->progress[i] > c[0]->progress[i - 1]);
    T_CHECK(stats_of(s).prompt_rows == 3 + 240 + 40 + 1, "%" PRId64 " rows", stats_of(s).prompt_rows);
    for (int i = 0; i < 3; i++) free(c[i]);
    free(short_one);
    close_scheduler(s);
}

/* Who waits goes on where the paths part, not when the other's whole prompt is read; and less than two quanta are not
 * worth a wait. */
static void test_common_part(void) {
    for (int64_t same = 95; same <= 96; same++) {
        plumb_scheduler *s = open_scheduler((plumb_scheduler_options){.slots = 2, .most_waiting = 2, .quantum = 48});
        client *reading = new_client(), *waiting = new_client();
        hold();
        CHECK(submit(s, reading, continue_ids(320, 320, 0, 4)));
        CHECK(submit(s, waiting, continue_ids(100, same, 1, 4)));
        let_go();
        until_ended(reading);
        until_ended(waiting);
        check_ids(reading, 320, 320, 0, 0);
        check_ids(waiting, 100, same, 1, same == 96 ? 96 : 0);
        bool before = waiting->run[0].token[0].place < reading->progress_place[2];
        T_CHECK(before == (same == 96), "%d", before); /* otherwise they take turns */
        free(reading);
        free(waiting);
        close_scheduler(s);
    }
}

/* When the one that reads hangs up, the next one reads. */
static void test_common_beginning_given_up(void) {
    plumb_scheduler *s = open_scheduler((plumb_scheduler_options){.slots = 3, .most_waiting = 3, .quantum = 16});
    client *c[3];
    hold();
    for (int i = 0; i < 3; i++) CHECK(submit(s, c[i] = new_client(), continue_ids(320, 300, i, 4)));
    while (c[0]->n_progress == 0) {
        let_go();
        hold();
        turn(s);
    }
    T_CHECK(c[0]->progress[0] < 300, "%" PRId64, c[0]->progress[0]);
    cancel(c[0]);
    let_go();
    for (int i = 1; i < 3; i++) until_ended(c[i]);
    check_ids(c[1], 320, 300, 1, 0);
    check_ids(c[2], 320, 300, 2, 300);
    for (int i = 0; i < 3; i++) free(c[i]);
    close_scheduler(s);
}

/* Nobody waits for one who waits for its client. */
static void test_common_beginning_of_a_slow_reader(void) {
    plumb_scheduler *s = open_scheduler((plumb_scheduler_options){.slots = 2, .most_waiting = 2, .quantum = 16});
    client *slow = new_client(), *other = new_client();
    hold();
    CHECK(submit(s, slow, continue_ids(320, 300, 0, 4)));
    plumb__scheduler_set_unsent(s, slow->job, 2 << 20);
    CHECK(submit(s, other, continue_ids(320, 300, 1, 4)));
    let_go();
    until_ended(other);
    check_ids(other, 320, 300, 1, 0);
    plumb__scheduler_set_unsent(s, slow->job, 0);
    until_ended(slow);
    check_ids(slow, 320, 300, 0, 300);
    free(slow);
    free(other);
    close_scheduler(s);
}

/* ---- Runs, echoes, limits ---------------------------------------------------------------------- */

static plumb_generation *three_runs(void) {
    plumb_generation *g = with_seed(continue_ids(150, 0, 2, 6), 7);
    g->runs = 3;
    return g;
}

static void test_runs(void) {
    for (int slots = 1; slots <= 3; slots += 2) {
        plumb_scheduler *s = open_scheduler((plumb_scheduler_options){.slots = slots});
        client *c = new_client();
        plumb_generation *g = three_runs();
        run(s, c, three_runs());
        CHECK(c->runs_finished == 3);
        for (int i = 0; i < 3; i++) {
            CHECK(c->run[i].n_tokens == 6 && c->run[i].usage.completion_tokens == 6);
            T_CHECK(c->run[i].usage.cached_tokens == (i == 0 ? 0 : 149), "run %d: %" PRId64, i,
                    c->run[i].usage.cached_tokens);
            check_by_hand(g, &c->run[i], 7 + (uint64_t)i);
        }
        CHECK(!same_tokens(&c->run[0], &c->run[1]));
        T_CHECK(stats_of(s).prompt_rows == 152 && stats_of(s).jobs_finished == 1, "%" PRId64 " rows",
                stats_of(s).prompt_rows);
        plumb__generation_destroy(g);
        free(c);
        close_scheduler(s);
    }
}

/* Without a seed each draws its own. */
static void test_seeds(void) {
    plumb_scheduler *s = open_scheduler((plumb_scheduler_options){.slots = 1});
    client *a = new_client(), *b = new_client();
    for (int i = 0; i < 2; i++) {
        plumb_generation *g = with_seed(continue_text("The", 16), 1);
        g->seed_given = false;
        run(s, i == 0 ? a : b, g);
    }
    CHECK(!same_tokens(&a->run[0], &b->run[0]));
    free(a);
    free(b);
    close_scheduler(s);
}

static int keep_logits(void *user, int64_t position, const float *logits) {
    memcpy((float *)user + position * info.vocab_size, logits, (size_t)info.vocab_size * sizeof *logits);
    return 0;
}

static double log_probability(const float *logits, int32_t token) {
    double sum = 0, most = -INFINITY;
    for (int64_t i = 0; i < info.vocab_size; i++)
        if ((double)logits[i] > most) most = (double)logits[i];
    for (int64_t i = 0; i < info.vocab_size; i++) sum += exp((double)logits[i] - most);
    return (double)logits[token] - most - log(sum);
}

static void check_echo(const client_run *r, const plumb_tokens *prompt, bool scored) {
    float *logits = calloc((size_t)(prompt->count * info.vocab_size), sizeof *logits);
    plumb_session *session = NULL;
    plumb_error err;
    if (!logits) exit(1);
    must(plumb_session_create(model, NULL, &session, &err), &err, "session");
    must(plumb_session_eval_all(session, prompt->ids, prompt->count, keep_logits, logits, &err), &err, "prompt");
    for (int i = 0; i < prompt->count; i++) {
        const told_token *t = &r->token[i];
        T_CHECK(t->of_prompt && t->id == prompt->ids[i] && t->has_logprob == (scored && i > 0), "token %d", i);
        if (!scored || i == 0) continue;
        const float *row = logits + (i - 1) * info.vocab_size;
        double wanted = log_probability(row, t->id);
        T_CHECK(fabs((double)t->logprob - wanted) < 1e-4, "token %d: %g, not %g", i, (double)t->logprob, wanted);
        for (int64_t k = 0; k < info.vocab_size; k++) CHECK(row[k] <= row[t->best.token]);
    }
    plumb_session_destroy(session);
    free(logits);
}

static void test_echo(void) {
    for (int scored = 0; scored < 2; scored++)
        for (int64_t most = 0; most <= 3; most += 3) {
            plumb_scheduler *s = open_scheduler((plumb_scheduler_options){.slots = 1, .quantum = 5});
            client *c = new_client();
            plumb_generation *g = continue_text("Once upon a time, there was a lazy boy", most);
            plumb_tokens prompt = {0};
            g->echo = true;
            g->logprobs = scored;
            g->top_logprobs = scored ? 2 : 0;
            encode(g, &prompt);
            run(s, c, g);
            client_run *r = &c->run[0];
            T_CHECK(r->n_tokens == prompt.count + (scored ? most : 0), "%d tokens", r->n_tokens);
            CHECK(r->usage.completion_tokens == most && r->finish == PLUMB_FINISH_LENGTH);
            check_echo(r, &prompt, scored);
            if (scored && most > 0) {
                g = continue_text("Once upon a time, there was a lazy boy", most);
                memmove(r->token, r->token + prompt.count, (size_t)most * sizeof *r->token);
                r->n_tokens = (int)most;
                check_by_hand(g, r, 0);
                plumb__generation_destroy(g);
            }
            plumb_tokens_free(&prompt);
            free(c);
            close_scheduler(s);
        }
}

static void test_limits(void) {
    plumb_scheduler *s = open_scheduler((plumb_scheduler_options){.slots = 1, .context = 32});
    client *c = new_client();
    run(s, c, continue_ids(20, 0, 1, -1));
    CHECK(c->run[0].finish == PLUMB_FINISH_LENGTH && c->run[0].usage.completion_tokens == 12);
    run(s, c, continue_ids(31, 0, 1, 100));
    CHECK(c->run[0].usage.completion_tokens == 1);
    run(s, c, continue_ids(32, 0, 1, -1));
    T_CHECK(c->failed && c->error.refusal == PLUMB_REFUSAL_CONTEXT && strstr(c->error.message, "32 tokens"), "%s",
            c->error.message);
    run(s, c, continue_ids(700, 0, 1, 0));
    CHECK(c->failed && c->error.refusal == PLUMB_REFUSAL_CONTEXT && strstr(c->error.message, "700"));
    plumb_generation *echoed = continue_ids(32, 0, 1, 0);
    echoed->echo = true;
    run(s, c, echoed);
    CHECK(c->run[0].n_tokens == 32 && c->run[0].finish == PLUMB_FINISH_LENGTH);
    CHECK(stats_of(s).jobs_failed == 2 && stats_of(s).jobs_finished == 3);
    free(c);
    close_scheduler(s);
}

static void test_bad_prompts(void) {
    plumb_scheduler *s = open_scheduler((plumb_scheduler_options){.slots = 1});
    client *c = new_client();
    run(s, c, chat("[{\"role\": \"user\"", 4));
    T_CHECK(c->failed && c->error.refusal == PLUMB_REFUSAL_BAD_REQUEST && !strcmp(c->error.param, "messages"), "%s",
            c->error.message);
    run(s, c, continue_text("caf\xc3", 4));
    CHECK(c->failed && c->error.refusal == PLUMB_REFUSAL_BAD_REQUEST && !strcmp(c->error.param, "prompt"));
    plumb_generation *g = continue_ids(3, 0, 1, 4);
    g->ids.ids[2] = (int32_t)info.vocab_size;
    run(s, c, g);
    CHECK(c->failed && c->error.refusal == PLUMB_REFUSAL_BAD_REQUEST && strstr(c->error.message, "4096"));
    g = continue_ids(3, 0, 1, 4);
    g->ids.ids[1] = -1;
    run(s, c, g);
    CHECK(c->failed && c->error.refusal == PLUMB_REFUSAL_BAD_REQUEST && strstr(c->error.message, "-1 at place 1"));
    g = continue_ids(3, 0, 1, 4);
    g->ids.count = 0;
    run(s, c, g);
    CHECK(c->failed && c->error.refusal == PLUMB_REFUSAL_BAD_REQUEST);
    run(s, c, continue_text("", 2)); /* BOS alone */
    CHECK(!c->failed && c->run[0].usage.prompt_tokens == 1);
    free(c);
    close_scheduler(s);
}

static void test_refused_options(void) {
    static const plumb_scheduler_options bad[] = {
        {.slots = 0}, {.slots = 65}, {.slots = 1, .quantum = -1}, {.slots = 1, .most_waiting = -1},
        {.slots = 1, .context = 1 << 20}, {.slots = 1, .session_dir = "/nowhere/sessions"}};
    open_demo();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        plumb_scheduler_options options = bad[i];
        plumb_scheduler *s = NULL;
        plumb_error err;
        options.model = model;
        options.text = text;
        options.wake = wake;
        options.new_id = new_id;
        T_CHECK(plumb__scheduler_create(&options, &s, &err) != PLUMB_OK && !s, "options %zu", i);
    }
}

int main(int argc, char **argv) {
    static const t_test tests[] = {
        {"answer", test_answer}, {"manner", test_manner}, {"thinking", test_thinking},
        {"eight_at_once", test_eight_at_once}, {"long_prompt_beside", test_long_prompt_beside},
        {"prompts_beside_answers", test_prompts_beside_answers}, {"resend", test_resend}, {"divergence", test_divergence},
        {"copy_of_a_busy_slot", test_copy_of_a_busy_slot}, {"common_beginning", test_common_beginning},
        {"common_part", test_common_part}, {"common_beginning_given_up", test_common_beginning_given_up},
        {"common_beginning_of_a_slow_reader", test_common_beginning_of_a_slow_reader},
        {"runs", test_runs}, {"seeds", test_seeds},
        {"echo", test_echo}, {"limits", test_limits}, {"bad_prompts", test_bad_prompts},
        {"refused_options", test_refused_options}};
    int status = t_main(argc, argv, tests, (int)(sizeof tests / sizeof tests[0]));
    close_demo();
    return status;
}
