/* Waiting jobs into idle slots.
 *
 * Jobs come in the order of their submission.  Further runs of a job go first, once its first run has evaluated the
 * prompt that they share: then each is a copy and one token's evaluation. */
#include "server/scheduler_state.h"

/* ---- Which job ------------------------------------------------------------------------------- */

bool plumb__scheduler_has_idle_slot(const plumb_scheduler *s) {
    for (int i = 0; i < s->usable_slots; i++)
        if (!s->slots[i].job) return true;
    return false;
}

static plumb_job *first_ready(const plumb_scheduler *s) {
    plumb_job *job = s->begun.first;
    while (job && (job->dead || (job->runs_begun > 0 && !job->prompt_evaluated))) job = job->next;
    return job;
}

bool plumb__scheduler_has_ready_run(const plumb_scheduler *s) { return first_ready(s) != NULL; }

static plumb_job *take_from_queue(plumb_scheduler *s) {
    pthread_mutex_lock(&s->lock);
    plumb_job *job = s->queue.first;
    if (job) {
        plumb__job_list_remove(&s->queue, job);
        job->queued = false;
    }
    pthread_mutex_unlock(&s->lock);
    return job;
}

/* The next job that a slot may take; it stays in `begun`.  Those that cannot be done are told so. */
static plumb_job *next_job(plumb_scheduler *s) {
    const plumb_job_encoding encoding = {.text = s->options.text, .calls = s->calls,
                                         .vocab_size = s->model.vocab_size, .bos_id = s->model.bos_id,
                                         .context = s->options.context};
    plumb_api_error error = {0};
    plumb_job *job = first_ready(s);
    while (!job) {
        job = take_from_queue(s);
        if (!job) return NULL;
        if (plumb__job_encode(job, &encoding, &error)) {
            plumb__job_list_append(&s->begun, job);
            return job;
        }
        plumb__scheduler_fail(s, job, &error);
        plumb__scheduler_release(s, job);
        job = NULL;
    }
    return job;
}

/* ---- Which slot ------------------------------------------------------------------------------ */

static plumb_slot_view look_at(const plumb_scheduler *s, const plumb_slot *slot, const plumb_job *job) {
    plumb_slot_view v = {.idle = !slot->job, .has_session = slot->session != NULL};
    if (!slot->session) return v;
    v.age = s->admissions - slot->used;
    v.length = plumb_session_length(slot->session);
    v.known = slot->known > v.length ? slot->known : v.length;
    if (!job->generation->echo) /* which evaluates all of its prompt anyway */
        v.shared = plumb_session_known(slot->session, job->prompt.ids, job->prompt.count);
    return v;
}

bool plumb__scheduler_copy(plumb_scheduler *s, plumb_slot *slot, const plumb_slot *source) {
    plumb_error err = {0};
    plumb_status status = plumb_session_copy(slot->session, source->session, &err);
    if (status != PLUMB_OK) plumb__scheduler_log(s, PLUMB_LOG_WARNING, "a session was not copied", &err);
    return status == PLUMB_OK;
}

/* An idle slot with a session for the job, what it shares copied to it; NULL: there is none any more. */
static plumb_slot *place(plumb_scheduler *s, const plumb_job *job) {
    for (;;) {
        plumb_slot_view views[PLUMB_MOST_SLOTS];
        plumb_error err = {0};
        for (int i = 0; i < s->usable_slots; i++) views[i] = look_at(s, &s->slots[i], job);
        plumb_placement chosen = plumb__slots_choose(views, s->usable_slots);
        if (chosen.slot < 0) return NULL;
        plumb_slot *slot = &s->slots[chosen.slot];
        if (!slot->session && plumb__scheduler_open_slot(s, chosen.slot, &err) != PLUMB_OK) {
            plumb__scheduler_log(s, PLUMB_LOG_WARNING, "no memory for another slot", &err);
            s->usable_slots = chosen.slot; /* they are opened in order */
            continue;
        }
        if (plumb_session_length(slot->session) > views[chosen.slot].shared) plumb__scheduler_keep(s, slot);
        if (chosen.source >= 0) (void)plumb__scheduler_copy(s, slot, &s->slots[chosen.source]);
        return slot;
    }
}

/* ---- Beginning ------------------------------------------------------------------------------- */

static void on_event(void *user, const plumb_generation_event *event) {
    plumb_slot *slot = user;
    if (!plumb__scheduler_tell(slot->scheduler, slot->job, event)) slot->event_lost = true;
}

static plumb_status create_answer(plumb_scheduler *s, plumb_slot *slot, plumb_error *err) {
    const plumb_job *job = slot->job;
    const plumb_answer_options options = {.generation = job->generation, .run = slot->run,
                                          .text = s->options.text, .trie = s->trie,
                                          .vocab_size = s->model.vocab_size, .most_tokens = job->most_tokens,
                                          .seed = job->seed,
                                          .new_id = s->options.new_id, .new_id_user = s->options.new_id_user,
                                          .sink = on_event, .sink_user = slot};
    return plumb__answer_create(&options, &slot->answer, err);
}

/* Told before anything is evaluated, so that nobody waits for a long prompt to learn what it costs. */
static void tell_started(plumb_slot *slot) {
    int64_t total = slot->job->prompt.count;
    int64_t known = slot->job->generation->echo
                        ? 0
                        : plumb_session_known(slot->session, slot->job->prompt.ids, total);
    slot->usage.prompt_tokens = total;
    plumb__slot_set_cached(slot, known);
    plumb__scheduler_publish(slot->scheduler); /* whoever has been told finds it so */
    on_event(slot, &(plumb_generation_event){.kind = PLUMB_GENERATION_STARTED, .run = slot->run,
                                             .total = total, .usage = &slot->usage});
}

static void begin_run(plumb_scheduler *s, plumb_slot *slot, plumb_job *job) {
    plumb_error err = {0};
    plumb__scheduler_retain(s, job);
    slot->job = job;
    slot->run = job->runs_begun++;
    slot->doing = PLUMB_SLOT_PROMPT;
    slot->used = ++s->admissions;
    slot->known = slot->evaluated = slot->generated = 0;
    slot->usage = (plumb_usage){0};
    slot->interrupted = slot->event_lost = slot->full = false;
    plumb_status status = create_answer(s, slot, &err);
    if (job->generation->echo) {
        if (status == PLUMB_OK) status = plumb_session_rewind(slot->session, 0, &err);
    } else {
        plumb__scheduler_recall(s, slot, &job->prompt);
    }
    if (status == PLUMB_OK) tell_started(slot);
    else plumb__scheduler_fail_slot(s, slot, &err);
}

void plumb__scheduler_admit(plumb_scheduler *s) {
    while (plumb__scheduler_has_idle_slot(s)) {
        plumb_job *job = next_job(s);
        plumb_slot *slot = job ? place(s, job) : NULL;
        if (!slot) return;
        begin_run(s, slot, job);
        if (job->runs_begun < job->generation->runs) continue;
        plumb__job_list_remove(&s->begun, job);
        plumb__scheduler_release(s, job);
    }
}
