/* The thread that evaluates.
 *
 * Each pass takes new jobs in, decodes one token of every running answer as one batch, and evaluates a quantum of
 * one prompt; so answers go on while somebody's book is read.  A prompt that is alone is read in larger pieces, as
 * is good for reading, and a newcomer cuts one short. */
#include "server/scheduler_state.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>

enum {
    QUANTA_WHEN_ALONE = 16,
    TOLD_TOKENS = 128 /* of a prompt, between two words of it */
};

/* ---- Whether to go on, asked between layers --------------------------------------------------- */

static bool all_cancelled(const plumb_scheduler *s) {
    for (int i = 0; i < s->n_watched; i++)
        if (!s->watched[i]->cancelled) return false;
    return s->n_watched > 0;
}

/* Of a prompt that is read alone: how far it is, from time to time. */
static void tell_how_far(plumb_scheduler *s, int64_t done, int64_t total) {
    plumb_slot *slot = s->read;
    if (!slot) return;
    int64_t evaluated = s->read_end - total + done;
    if (evaluated >= slot->evaluated + TOLD_TOKENS && done < total) plumb__scheduler_tell_progress(slot, evaluated);
}

static int watch(void *user, int64_t done, int64_t total) {
    plumb_scheduler *s = user;
    tell_how_far(s, done, total);
    pthread_mutex_lock(&s->lock);
    s->gave_way = s->gives_way && s->queue.first;
    bool stop = s->ending || s->gave_way || all_cancelled(s);
    pthread_mutex_unlock(&s->lock);
    return stop;
}

static void watch_for(plumb_scheduler *s, plumb_slot *const *slots, int n) {
    for (int i = 0; i < n; i++) s->watched[i] = slots[i]->job;
    s->n_watched = n;
    s->read = NULL;
    s->gives_way = s->gave_way = false;
}

/* ---- Slots ------------------------------------------------------------------------------------ */

plumb_status plumb__scheduler_open_slot(plumb_scheduler *s, int index, plumb_error *err) {
    const plumb_session_options options = {.context = s->options.context, .progress = watch, .progress_user = s};
    plumb_status status = plumb_session_create(s->options.model, &options, &s->slots[index].session, err);
    if (status == PLUMB_OK) s->slots[index].scheduler = s;
    return status;
}

/* The job has ended here, one way or another.  What the session holds stays. */
static void free_slot(plumb_scheduler *s, plumb_slot *slot) {
    plumb_job *job = slot->job;
    if (slot->doing == PLUMB_SLOT_PROMPT && !job->generation->echo)
        slot->known = plumb_session_known(slot->session, job->prompt.ids, job->prompt.count);
    plumb__answer_destroy(slot->answer);
    slot->answer = NULL;
    slot->job = NULL;
    slot->doing = PLUMB_SLOT_IDLE;
    slot->unsaved = true;
    slot->used = s->admissions;
    plumb__scheduler_release(s, job);
}

void plumb__scheduler_fail_slot(plumb_scheduler *s, plumb_slot *slot, const plumb_error *err) {
    plumb_api_error error = {.refusal = PLUMB_REFUSAL_INTERNAL};
    plumb_error_line(err, error.message, sizeof error.message);
    slot->job->dead = true;
    plumb__scheduler_fail(s, slot->job, &error);
}

static void fail_for_memory(plumb_scheduler *s, plumb_slot *slot) {
    plumb__scheduler_fail_slot(s, slot, &(plumb_error){.status = PLUMB_ERROR_MEMORY, .offset = -1,
                                                       .found = "no memory", .expected = "room for an event"});
}

void plumb__scheduler_publish(plumb_scheduler *s) {
    plumb_scheduler_stats *to = &s->stats;
    const plumb_scheduler_stats *from = &s->counted;
    pthread_mutex_lock(&s->lock);
    to->prompt_tokens = from->prompt_tokens;
    to->cached_tokens = from->cached_tokens;
    to->generated_tokens = from->generated_tokens;
    to->prefill_seconds = from->prefill_seconds;
    to->decode_seconds = from->decode_seconds;
    to->decode_steps = from->decode_steps;
    to->decoded_rows = from->decoded_rows;
    to->prompt_rows = from->prompt_rows;
    to->busy = 0;
    for (int i = 0; i < s->usable_slots; i++) {
        const plumb_slot *slot = &s->slots[i];
        plumb_slot_stats *shown = &s->slot_stats[i];
        *shown = (plumb_slot_stats){.doing = slot->doing,
                                    .length = slot->session ? plumb_session_length(slot->session) : 0};
        if (slot->doing == PLUMB_SLOT_IDLE) continue;
        to->busy++;
        shown->prompt_done = slot->evaluated;
        shown->prompt_tokens = slot->usage.prompt_tokens;
        shown->cached_tokens = slot->usage.cached_tokens;
        shown->generated_tokens = slot->generated;
    }
    pthread_mutex_unlock(&s->lock);
}

/* ---- Answers ---------------------------------------------------------------------------------- */

static void finish(plumb_scheduler *s, plumb_slot *slot) {
    slot->doing = PLUMB_SLOT_IDLE; /* whoever has been told of the end finds it so */
    plumb__scheduler_publish(s);
    if (!slot->event_lost) plumb__scheduler_remember_calls(s, slot); /* and finds its calls */
    plumb__answer_finish(slot->answer, &slot->usage);
    if (slot->event_lost) fail_for_memory(s, slot);
    else free_slot(s, slot);
}

/* Chooses the next token, or ends the answer. */
static void sample(plumb_scheduler *s, plumb_slot *slot, const float *logits) {
    bool over = false;
    plumb_error err = {0};
    plumb_status status = plumb__answer_step(slot->answer, logits, plumb_session_length(slot->session),
                                             &slot->token, &over, &err);
    slot->generated++;
    s->counted.generated_tokens++;
    if (status != PLUMB_OK) plumb__scheduler_fail_slot(s, slot, &err);
    else if (slot->event_lost) fail_for_memory(s, slot);
    else if (over) finish(s, slot);
}

/* ---- Decoding --------------------------------------------------------------------------------- */

static void count_step(plumb_scheduler *s, plumb_slot *const *slots, int n, double seconds) {
    for (int i = 0; i < n; i++) slots[i]->usage.decode_seconds += seconds;
    s->counted.decode_steps++;
    s->counted.decoded_rows += n;
    s->counted.decode_seconds += seconds;
}

/* A batch that failed has moved nobody: each alone shows whose fault it was. */
static void step_singly(plumb_scheduler *s, plumb_slot *const *slots, int n) {
    for (int i = 0; i < n; i++) {
        const float *logits = NULL;
        plumb_error err = {0};
        double begun = plumb__now();
        watch_for(s, &slots[i], 1);
        plumb_status status = plumb_session_eval(slots[i]->session, &slots[i]->token, 1, &logits, &err);
        if (status == PLUMB_ERROR_CANCELLED) continue;
        if (status == PLUMB_OK) {
            count_step(s, &slots[i], 1, plumb__now() - begun);
            sample(s, slots[i], logits);
        } else {
            plumb__scheduler_fail_slot(s, slots[i], &err);
        }
    }
}

static void decode(plumb_scheduler *s) {
    plumb_slot *slots[PLUMB_MOST_SLOTS];
    plumb_session *sessions[PLUMB_MOST_SLOTS];
    int32_t tokens[PLUMB_MOST_SLOTS];
    const float *logits[PLUMB_MOST_SLOTS];
    plumb_error err = {0};
    int n = 0;
    for (int i = 0; i < s->usable_slots; i++) {
        plumb_slot *slot = &s->slots[i];
        if (!plumb__slot_runs(slot, PLUMB_SLOT_DECODING)) continue;
        slots[n] = slot;
        sessions[n] = slot->session;
        tokens[n++] = slot->token;
    }
    if (n == 0) return;
    double begun = plumb__now();
    watch_for(s, slots, n);
    plumb_status status = plumb_sessions_step(sessions, tokens, n, logits, &err);
    if (status == PLUMB_ERROR_CANCELLED) return; /* by everybody */
    if (status != PLUMB_OK) {
        step_singly(s, slots, n);
        return;
    }
    count_step(s, slots, n, plumb__now() - begun);
    for (int i = 0; i < n; i++) sample(s, slots[i], logits[i]);
}

/* ---- Prompts ---------------------------------------------------------------------------------- */

void plumb__scheduler_count_prompt(plumb_scheduler *s, plumb_slot *slot, int64_t rows, double seconds) {
    slot->usage.prefill_seconds += seconds;
    s->counted.prompt_rows += rows;
    s->counted.prefill_seconds += seconds;
}

void plumb__scheduler_begin_answer(plumb_scheduler *s, plumb_slot *slot, const float *logits) {
    s->counted.prompt_tokens += slot->usage.prompt_tokens;
    s->counted.cached_tokens += slot->usage.cached_tokens;
    slot->job->prompt_evaluated = true;
    slot->doing = PLUMB_SLOT_DECODING;
    if (slot->event_lost) fail_for_memory(s, slot);
    else if (slot->job->most_tokens == 0) finish(s, slot);
    else sample(s, slot, logits);
}

void plumb__scheduler_tell_progress(plumb_slot *slot, int64_t done) {
    slot->evaluated = done;
    const plumb_generation_event event = {.kind = PLUMB_GENERATION_PROGRESS, .run = slot->run, .done = done,
                                          .total = slot->job->prompt.count};
    if (!plumb__scheduler_tell(slot->scheduler, slot->job, &event)) slot->event_lost = true;
}

static void read_prompt(plumb_scheduler *s, plumb_slot *slot, int64_t most_rows) {
    const plumb_tokens *prompt = &slot->job->prompt;
    const int64_t stop = plumb__scheduler_next_stop(s, slot);
    const float *logits = NULL;
    plumb_sync_report report = {0};
    plumb_error err = {0};
    bool stopped = false;
    s->read = slot;
    s->read_end = stop;
    double begun = plumb__now();
    plumb_status status = plumb_session_sync_part(slot->session, prompt->ids, stop, most_rows, &stopped,
                                                  stop == prompt->count ? &logits : NULL, &report, &err);
    bool done = stopped && stop == prompt->count;
    /* The report also counts parts that another job evaluated, before it was cancelled. */
    int64_t rows = report.replayed + (done ? prompt->count - slot->usage.cached_tokens : 0);
    plumb__scheduler_count_prompt(s, slot, rows, plumb__now() - begun);
    if (status == PLUMB_ERROR_CANCELLED) {
        slot->interrupted |= s->gave_way;
        return;
    }
    if (status != PLUMB_OK) {
        plumb__scheduler_fail_slot(s, slot, &err);
        return;
    }
    plumb__scheduler_tell_progress(slot, plumb_session_known(slot->session, prompt->ids, prompt->count));
    if (done) plumb__scheduler_begin_answer(s, slot, logits);
}

/* Whether nobody else has anything to do. */
static bool is_alone(const plumb_scheduler *s, const plumb_slot *slot) {
    for (int i = 0; i < s->usable_slots; i++) {
        const plumb_slot *other = &s->slots[i];
        if (other->job && other != slot && !plumb__scheduler_waits(s, other)) return false;
    }
    return true;
}

static void evaluate_quantum(plumb_scheduler *s) {
    for (int i = 1; i <= s->usable_slots; i++) {
        int index = (s->last_prompt + i) % s->usable_slots;
        plumb_slot *slot = &s->slots[index];
        if (!plumb__slot_runs(slot, PLUMB_SLOT_PROMPT) || plumb__scheduler_waits(s, slot)) continue;
        s->last_prompt = index;
        watch_for(s, &slot, 1);
        if (slot->job->generation->echo) {
            plumb__scheduler_echo(s, slot);
            return;
        }
        plumb__scheduler_take_common(s, slot);
        bool large = is_alone(s, slot) && !slot->interrupted;
        s->gives_way = large && plumb__scheduler_has_idle_slot(s);
        read_prompt(s, slot, large ? QUANTA_WHEN_ALONE * s->options.quantum : s->options.quantum);
        return;
    }
}

/* ---- The loop --------------------------------------------------------------------------------- */

/* Under the lock: notes what the loop's thread has said of the jobs.  Whether there is anything to do. */
static bool look_around(plumb_scheduler *s) {
    bool work = s->ending;
    for (int i = 0; i < s->usable_slots; i++) {
        plumb_slot *slot = &s->slots[i];
        if (!slot->job) continue;
        slot->full = plumb__job_is_full(slot->job);
        slot->job->dead |= slot->job->cancelled;
        work |= slot->job->dead || !slot->full;
    }
    for (plumb_job *job = s->begun.first; job; job = job->next) {
        job->dead |= job->cancelled;
        work |= job->dead;
    }
    return work || (plumb__scheduler_has_idle_slot(s) && (s->queue.first || plumb__scheduler_has_ready_run(s)));
}

/* False: the end.  What is not urgent is done while there is nothing else. */
static bool wait_for_work(plumb_scheduler *s) {
    for (;;) {
        pthread_mutex_lock(&s->lock);
        bool work = look_around(s);
        while (!work && !plumb__scheduler_has_unsaved(s)) {
            (void)pthread_cond_wait(&s->changed, &s->lock);
            work = look_around(s);
        }
        bool ending = s->ending;
        pthread_mutex_unlock(&s->lock);
        if (ending) return false;
        if (work) return true;
        plumb__scheduler_save_one(s);
    }
}

static void release_dead(plumb_scheduler *s) {
    for (int i = 0; i < s->usable_slots; i++)
        if (s->slots[i].job && s->slots[i].job->dead) free_slot(s, &s->slots[i]);
    plumb_job *next;
    for (plumb_job *job = s->begun.first; job; job = next) {
        next = job->next;
        if (!job->dead) continue;
        plumb__job_list_remove(&s->begun, job);
        plumb__scheduler_release(s, job);
    }
}

void *plumb__scheduler_work(void *user) {
    plumb_scheduler *s = user;
    while (wait_for_work(s)) {
        release_dead(s);
        watch_for(s, NULL, 0);
        plumb__scheduler_admit(s);
        decode(s);
        evaluate_quantum(s);
        plumb__scheduler_publish(s);
    }
    plumb__scheduler_save_all(s);
    return NULL;
}
