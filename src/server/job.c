/* Jobs and their events; see job.h.  Who may touch what, and when, is the scheduler's affair. */
#include "server/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { MOST_WAITING_BYTES = 1 << 20 };

/* ---- Events ---------------------------------------------------------------------------------- */

/* Copies `size` bytes to *room and moves it behind them. */
static const void *put(char **room, const void *from, size_t size) {
    char *place = *room;
    if (!from) return NULL;
    memcpy(place, from, size);
    *room += size;
    return place;
}

static size_t text_size(const char *text) { return text ? strlen(text) + 1 : 0; }

plumb_queued_event *plumb__queued_event_create(const plumb_generation_event *event) {
    size_t top = event->top ? (size_t)event->n_top * sizeof *event->top : 0;
    size_t id = text_size(event->id), stop = text_size(event->stop_string);
    size_t size = sizeof(plumb_queued_event) + top + event->size + id + stop;
    plumb_queued_event *copy = malloc(size);
    if (!copy) return NULL;
    *copy = (plumb_queued_event){.event = *event, .bytes = (int64_t)size};
    char *room = (char *)(copy + 1); /* aligned for what comes first, the log-probabilities */
    copy->event.top = put(&room, event->top, top);
    copy->event.bytes = put(&room, event->bytes, event->size);
    copy->event.id = put(&room, event->id, id);
    copy->event.stop_string = put(&room, event->stop_string, stop);
    if (event->usage) {
        copy->usage = *event->usage;
        copy->event.usage = &copy->usage;
    }
    if (event->error) {
        copy->error = *event->error;
        copy->event.error = &copy->error;
    }
    return copy;
}

/* ---- Life ------------------------------------------------------------------------------------ */

plumb_job *plumb__job_create(plumb_generation *generation, plumb_generation_sink sink, void *user) {
    const plumb_api_error unknown = {.refusal = PLUMB_REFUSAL_INTERNAL};
    const plumb_generation_event event = {.kind = PLUMB_GENERATION_FAILED, .error = &unknown};
    plumb_job *job = calloc(1, sizeof *job);
    if (!job) return NULL;
    *job = (plumb_job){.sink = sink, .user = user, .references = 1, .has_handle = true,
                       .failure = plumb__queued_event_create(&event)};
    if (!job->failure) {
        free(job);
        return NULL;
    }
    job->generation = generation;
    return job;
}

void plumb__job_destroy(plumb_job *job) {
    plumb__generation_destroy(job->generation);
    plumb_tokens_free(&job->prompt);
    free(job->failure);
    free(job);
}

bool plumb__job_is_full(const plumb_job *job) {
    return job->unsent > MOST_WAITING_BYTES || job->waiting_bytes > MOST_WAITING_BYTES - job->unsent;
}

/* ---- The prompt ------------------------------------------------------------------------------ */

/* What the request itself says wrongly is the client's fault, all else ours. */
static bool refuse(plumb_api_error *error, const plumb_error *fault, const char *param) {
    char line[sizeof error->message];
    bool bad = fault->status == PLUMB_ERROR_TEXT || fault->status == PLUMB_ERROR_ARGUMENT ||
               fault->status == PLUMB_ERROR_FORMAT;
    *error = (plumb_api_error){.refusal = bad ? PLUMB_REFUSAL_BAD_REQUEST : PLUMB_REFUSAL_INTERNAL};
    plumb_error_line(fault, line, sizeof line);
    (void)snprintf(error->message, sizeof error->message, "%s", line);
    if (bad) (void)snprintf(error->param, sizeof error->param, "%s", param);
    return false;
}

static bool encode_ids(plumb_job *job, int64_t vocab_size, plumb_api_error *error) {
    plumb_tokens *ids = &job->generation->ids;
    *error = (plumb_api_error){.refusal = PLUMB_REFUSAL_BAD_REQUEST, .param = "prompt"};
    for (int64_t i = 0; i < ids->count; i++) {
        if (ids->ids[i] >= 0 && ids->ids[i] < vocab_size) continue;
        (void)snprintf(error->message, sizeof error->message,
                       "token %ld at place %lld of the prompt is not in the vocabulary, which ends at %lld",
                       (long)ids->ids[i], (long long)i, (long long)vocab_size - 1);
        return false;
    }
    if (ids->count == 0) {
        (void)snprintf(error->message, sizeof error->message, "the prompt has no tokens");
        return false;
    }
    job->prompt = *ids;
    *ids = (plumb_tokens){0};
    return true;
}

/* Only BOS is put before raw text; what looks like a control token in it is text (as `plumb run` has it). */
static bool encode_raw(plumb_job *job, const plumb_job_encoding *encoding, plumb_api_error *error) {
    const plumb_generation *g = job->generation;
    plumb_error err = {0};
    job->prompt.ids = malloc(sizeof *job->prompt.ids);
    if (!job->prompt.ids) {
        err.status = PLUMB_ERROR_MEMORY;
        return refuse(error, &err, "prompt");
    }
    job->prompt.ids[0] = (int32_t)encoding->bos_id;
    job->prompt.count = job->prompt.capacity = 1;
    return plumb_text_encode(encoding->text, g->prompt, g->prompt_size, false, &job->prompt, &err) == PLUMB_OK ||
           refuse(error, &err, "prompt");
}

plumb_status plumb__messages_encode(const plumb_generation *g, const plumb_text *text,
                                    const plumb_call_memory *calls, plumb_tokens *tokens, plumb_error *err) {
    const plumb_chat_options options = {.thinking = g->thinking, .effort = g->effort,
                                        .keep_reasoning = g->keep_reasoning, .calls = calls};
    return plumb_chat_encode(text, g->messages, &options, tokens, err);
}

static bool encode_messages(plumb_job *job, const plumb_job_encoding *encoding, plumb_api_error *error) {
    plumb_error err = {0};
    return plumb__messages_encode(job->generation, encoding->text, encoding->calls, &job->prompt, &err) == PLUMB_OK ||
           refuse(error, &err, "messages");
}

/* Tools know by Anthropic's words, or by OpenAI's, that they must shorten their conversation. */
static bool fits(plumb_job *job, int64_t context, plumb_api_error *error) {
    int64_t wanted = job->generation->most_tokens, room = context - job->prompt.count;
    if (room < (wanted == 0 ? 0 : 1)) {
        *error = (plumb_api_error){.refusal = PLUMB_REFUSAL_CONTEXT};
        (void)snprintf(error->message, sizeof error->message,
                       "prompt is too long: %lld tokens > %lld maximum; this model's maximum context length is %lld "
                       "tokens, of prompt and answer", (long long)job->prompt.count, (long long)context - 1,
                       (long long)context);
        return false;
    }
    job->most_tokens = wanted < 0 || wanted > room ? room : wanted;
    return true;
}

static bool choose_seed(plumb_job *job, plumb_api_error *error) {
    job->seed = job->generation->sampling.seed;
    if (job->generation->seed_given || getentropy(&job->seed, sizeof job->seed) == 0) return true;
    *error = (plumb_api_error){.refusal = PLUMB_REFUSAL_INTERNAL, .message = "the system gives no random numbers"};
    return false;
}

bool plumb__job_encode(plumb_job *job, const plumb_job_encoding *encoding, plumb_api_error *error) {
    bool good = job->generation->messages ? encode_messages(job, encoding, error)
                : job->generation->prompt ? encode_raw(job, encoding, error)
                                          : encode_ids(job, encoding->vocab_size, error);
    return good && fits(job, encoding->context, error) && choose_seed(job, error);
}

/* ---- Lists ----------------------------------------------------------------------------------- */

void plumb__job_list_append(plumb_job_list *list, plumb_job *job) {
    job->previous = list->last;
    job->next = NULL;
    if (list->last) list->last->next = job;
    else list->first = job;
    list->last = job;
    list->count++;
}

void plumb__job_list_remove(plumb_job_list *list, plumb_job *job) {
    if (job->previous) job->previous->next = job->next;
    else list->first = job->next;
    if (job->next) job->next->previous = job->previous;
    else list->last = job->previous;
    job->previous = job->next = NULL;
    list->count--;
}
