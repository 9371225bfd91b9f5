/* The scheduler as the loop's thread sees it: jobs go into a queue, events come out of another.
 *
 * Whatever the loop's thread asks for it gets at once.  A job that is cancelled leaves the queue, or is marked for
 * the worker, which looks between the layers of whatever it evaluates. */
#include "server/scheduler_state.h"

#include "base/error.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_QUANTUM = 256 };

/* ---- References ------------------------------------------------------------------------------ */

/* Under the lock.  Whether it was the last one: then the caller destroys the job, without the lock. */
static bool drop(plumb_job *job) { return --job->references == 0; }

void plumb__scheduler_retain(plumb_scheduler *s, plumb_job *job) {
    pthread_mutex_lock(&s->lock);
    job->references++;
    pthread_mutex_unlock(&s->lock);
}

void plumb__scheduler_release(plumb_scheduler *s, plumb_job *job) {
    pthread_mutex_lock(&s->lock);
    bool last = drop(job);
    pthread_mutex_unlock(&s->lock);
    if (last) plumb__job_destroy(job);
}

/* ---- Events ---------------------------------------------------------------------------------- */

/* Under the lock: puts an event behind the others.  Whether the loop has to be woken for it. */
static bool append_event(plumb_scheduler *s, plumb_job *job, plumb_queued_event *e) {
    bool first = !s->first_event;
    plumb_generation_event_kind kind = e->event.kind;
    e->job = job;
    e->last = kind == PLUMB_GENERATION_FAILED ||
              (kind == PLUMB_GENERATION_FINISHED && ++job->runs_finished == job->generation->runs);
    job->references++;
    job->waiting_bytes += e->bytes;
    if (first) s->first_event = e;
    else s->last_event->next = e;
    s->last_event = e;
    if (e->last) {
        job->over = true;
        s->open_jobs--;
        if (kind == PLUMB_GENERATION_FINISHED) s->stats.jobs_finished++;
        else s->stats.jobs_failed++;
    }
    return first;
}

bool plumb__scheduler_tell(plumb_scheduler *s, plumb_job *job, const plumb_generation_event *event) {
    plumb_queued_event *copy = plumb__queued_event_create(event);
    if (!copy) return false;
    pthread_mutex_lock(&s->lock);
    bool told = !job->cancelled && !job->over;
    bool wakes = told && append_event(s, job, copy);
    pthread_mutex_unlock(&s->lock);
    if (!told) free(copy);
    if (wakes) s->options.wake(s->options.wake_user);
    return true;
}

/* Under the lock; as append_event. */
static bool append_failure(plumb_scheduler *s, plumb_job *job, const plumb_api_error *error) {
    plumb_queued_event *failure = job->failure;
    if (job->cancelled || job->over) return false;
    job->failure = NULL;
    failure->error = *error;
    return append_event(s, job, failure);
}

void plumb__scheduler_fail(plumb_scheduler *s, plumb_job *job, const plumb_api_error *error) {
    pthread_mutex_lock(&s->lock);
    bool wakes = append_failure(s, job, error);
    pthread_mutex_unlock(&s->lock);
    if (wakes) s->options.wake(s->options.wake_user);
}

/* The event was told, or is not to be. */
static void retire_event(plumb_scheduler *s, plumb_queued_event *e) {
    plumb_job *job = e->job;
    pthread_mutex_lock(&s->lock);
    bool was_full = plumb__job_is_full(job);
    job->waiting_bytes -= e->bytes;
    if (was_full && !plumb__job_is_full(job)) pthread_cond_signal(&s->changed);
    if (e->last && job->has_handle) {
        job->has_handle = false;
        (void)drop(job); /* the event has another one */
    }
    bool last = drop(job);
    pthread_mutex_unlock(&s->lock);
    if (last) plumb__job_destroy(job);
    free(e);
}

static plumb_queued_event *take_events(plumb_scheduler *s) {
    pthread_mutex_lock(&s->lock);
    plumb_queued_event *first = s->first_event;
    s->first_event = s->last_event = NULL;
    pthread_mutex_unlock(&s->lock);
    return first;
}

void plumb__scheduler_deliver(plumb_scheduler *s) {
    plumb_queued_event *next;
    for (plumb_queued_event *e = take_events(s); e; e = next) {
        next = e->next;
        /* Only this thread cancels, also from within a sink. */
        if (!e->job->cancelled) e->job->sink(e->job->user, &e->event);
        retire_event(s, e);
    }
}

/* ---- Jobs ------------------------------------------------------------------------------------ */

static void refuse(plumb_api_error *error, plumb_refusal refusal, const char *message) {
    *error = (plumb_api_error){.refusal = refusal};
    (void)snprintf(error->message, sizeof error->message, "%s", message);
}

plumb_job *plumb__scheduler_submit(plumb_scheduler *s, plumb_generation *generation, plumb_generation_sink sink,
                                   void *user, plumb_api_error *error) {
    plumb_job *job = plumb__job_create(generation, sink, user);
    bool has_memory = job != NULL;
    pthread_mutex_lock(&s->lock);
    bool stopping = s->door_closed;
    bool accepted = job && !stopping && s->open_jobs < s->options.slots + s->options.most_waiting;
    if (accepted) {
        job->queued = true;
        job->references++;
        plumb__job_list_append(&s->queue, job);
        s->open_jobs++;
        pthread_cond_signal(&s->changed);
    } else {
        s->stats.jobs_refused++;
    }
    pthread_mutex_unlock(&s->lock);
    if (accepted) return job;
    if (job) plumb__job_destroy(job);
    else plumb__generation_destroy(generation);
    if (!has_memory) refuse(error, PLUMB_REFUSAL_INTERNAL, "no memory for the request");
    else if (stopping) refuse(error, PLUMB_REFUSAL_STOPPING, "the server is stopping");
    else refuse(error, PLUMB_REFUSAL_BUSY, "too many requests are waiting; try again later");
    return NULL;
}

void plumb__scheduler_cancel(plumb_scheduler *s, plumb_job *job) {
    bool last = false;
    pthread_mutex_lock(&s->lock);
    job->cancelled = true;
    if (!job->over) {
        s->open_jobs--;
        s->stats.jobs_cancelled++;
        pthread_cond_signal(&s->changed);
    }
    if (job->queued) {
        plumb__job_list_remove(&s->queue, job);
        job->queued = false;
        last = drop(job);
    }
    job->has_handle = false;
    last = drop(job) || last;
    pthread_mutex_unlock(&s->lock);
    if (last) plumb__job_destroy(job);
}

void plumb__scheduler_set_unsent(plumb_scheduler *s, plumb_job *job, int64_t bytes) {
    pthread_mutex_lock(&s->lock);
    bool was_full = plumb__job_is_full(job);
    job->unsent = bytes;
    if (was_full && !plumb__job_is_full(job)) pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

void plumb__scheduler_close_door(plumb_scheduler *s) {
    static const plumb_api_error stopping = {.refusal = PLUMB_REFUSAL_STOPPING,
                                             .message = "the server is stopping"};
    bool wakes = false;
    pthread_mutex_lock(&s->lock);
    s->door_closed = true;
    while (s->queue.first) {
        plumb_job *job = s->queue.first;
        plumb__job_list_remove(&s->queue, job);
        job->queued = false;
        wakes = append_failure(s, job, &stopping) || wakes;
        (void)drop(job); /* the handle and the event have others */
    }
    pthread_mutex_unlock(&s->lock);
    if (wakes) s->options.wake(s->options.wake_user);
}

/* ---- Counting -------------------------------------------------------------------------------- */

plumb_status plumb__scheduler_encode(plumb_scheduler *s, const plumb_generation *generation, plumb_tokens *tokens,
                                     plumb_error *err) {
    pthread_mutex_lock(&s->calls_lock);
    plumb_status status = plumb__messages_encode(generation, s->options.text, s->calls, tokens, err);
    pthread_mutex_unlock(&s->calls_lock);
    return status;
}

/* ---- Statistics ------------------------------------------------------------------------------ */

void plumb__scheduler_get_stats(plumb_scheduler *s, plumb_scheduler_stats *stats) {
    pthread_mutex_lock(&s->lock);
    *stats = s->stats;
    stats->waiting = s->queue.count;
    stats->stopping = s->door_closed;
    pthread_mutex_unlock(&s->lock);
}

int plumb__scheduler_get_slots(plumb_scheduler *s, plumb_slot_stats *slots, int most) {
    int n = s->options.slots;
    pthread_mutex_lock(&s->lock);
    if (most > 0) memcpy(slots, s->slot_stats, (size_t)(most < n ? most : n) * sizeof *slots);
    pthread_mutex_unlock(&s->lock);
    return n;
}

/* ---- Life ------------------------------------------------------------------------------------ */

static plumb_status check_options(const plumb_scheduler_options *o, plumb_error *err) {
    if (o->slots < 1 || o->slots > PLUMB_MOST_SLOTS)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "slots", -1, plumb__format("%d", o->slots).s,
                           "1 to %d", PLUMB_MOST_SLOTS);
    if (o->quantum < 0)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "quantum", -1,
                           plumb__format("%lld", (long long)o->quantum).s, "1 or more, or 0");
    if (o->most_waiting < 0)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "most_waiting", -1,
                           plumb__format("%d", o->most_waiting).s, "0 or more");
    return PLUMB_OK;
}

static plumb_status allocate(plumb_scheduler *s, plumb_error *err) {
    size_t n = (size_t)s->options.slots, words = (size_t)(s->model.vocab_size + 31) / 32;
    const char *folder = s->options.session_dir;
    s->slots = calloc(n, sizeof *s->slots);
    s->slot_stats = calloc(n, sizeof *s->slot_stats);
    s->allowed = calloc(words, sizeof *s->allowed);
    if (folder) s->folder = strdup(folder);
    if (!s->slots || !s->slot_stats || !s->allowed || (folder && !s->folder))
        return plumb__fail_memory(err, "scheduler", n * sizeof *s->slots + words * sizeof *s->allowed);
    s->options.session_dir = s->folder;
    return PLUMB_OK;
}

/* Signals are for whoever waits for them, and no call of the worker's may be ended by one. */
static plumb_status start_worker(plumb_scheduler *s, plumb_error *err) {
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&s->worker, NULL, plumb__scheduler_work, s);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return plumb__fail(err, PLUMB_ERROR_MEMORY, NULL, "thread", -1, strerror(failed), "a thread");
    return PLUMB_OK;
}

static void destroy_parts(plumb_scheduler *s) {
    for (int i = 0; s->slots && i < s->options.slots; i++) plumb_session_destroy(s->slots[i].session);
    plumb__scheduler_close_store(s);
    plumb__token_trie_destroy(s->trie);
    (void)pthread_mutex_destroy(&s->lock);
    (void)pthread_mutex_destroy(&s->calls_lock);
    (void)pthread_cond_destroy(&s->changed);
    free(s->slots);
    free(s->slot_stats);
    free(s->allowed);
    free(s->folder);
    free(s);
}

plumb_status plumb__scheduler_create(const plumb_scheduler_options *options, plumb_scheduler **scheduler,
                                     plumb_error *err) {
    plumb_status status = check_options(options, err);
    if (status != PLUMB_OK) return status;
    plumb_scheduler *s = calloc(1, sizeof *s);
    if (!s) return plumb__fail_memory(err, "scheduler", sizeof *s);
    s->options = *options;
    if (s->options.quantum == 0) s->options.quantum = DEFAULT_QUANTUM;
    s->usable_slots = options->slots;
    s->last_prompt = options->slots - 1; /* the first slot is next */
    plumb_model_get_info(options->model, &s->model);
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_mutex_init(&s->calls_lock, NULL);
    (void)pthread_cond_init(&s->changed, NULL);
    status = allocate(s, err);
    if (status == PLUMB_OK) status = plumb__token_trie_create(options->text, &s->trie, err);
    if (status == PLUMB_OK) status = plumb__scheduler_open_store(s, err);
    /* One slot there must be; the others wait until they are wanted. */
    if (status == PLUMB_OK) status = plumb__scheduler_open_slot(s, 0, err);
    if (status == PLUMB_OK) {
        s->options.context = plumb_session_context(s->slots[0].session);
        s->stats.slots = options->slots;
        s->stats.context = s->options.context;
        status = start_worker(s, err);
    }
    if (status != PLUMB_OK) {
        destroy_parts(s);
        return status;
    }
    *scheduler = s;
    return PLUMB_OK;
}

/* Drops the handle, which is void now, and one reference more. */
static void abandon(plumb_scheduler *s, plumb_job *job) {
    if (job->has_handle) {
        job->has_handle = false;
        plumb__scheduler_release(s, job);
    }
    plumb__scheduler_release(s, job);
}

void plumb__scheduler_destroy(plumb_scheduler *s) {
    if (!s) return;
    pthread_mutex_lock(&s->lock);
    s->door_closed = s->ending = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    (void)pthread_join(s->worker, NULL);
    plumb_job_list *lists[] = {&s->queue, &s->begun};
    for (int i = 0; i < 2; i++)
        while (lists[i]->first) {
            plumb_job *job = lists[i]->first;
            plumb__job_list_remove(lists[i], job);
            abandon(s, job);
        }
    for (int i = 0; i < s->options.slots; i++) {
        plumb__answer_destroy(s->slots[i].answer);
        if (s->slots[i].job) abandon(s, s->slots[i].job);
    }
    plumb_queued_event *next;
    for (plumb_queued_event *e = take_events(s); e; e = next) {
        next = e->next;
        retire_event(s, e); /* takes the handle with the last one */
    }
    destroy_parts(s);
}
