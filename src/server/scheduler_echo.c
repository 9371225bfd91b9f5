/* Prompts that are told: each token, with what the row before it predicted. */
#include "server/scheduler_state.h"

#include "base/clock.h"

typedef struct echo {
    plumb_scheduler *s;
    plumb_slot *slot;
    plumb_status status; /* of telling */
    plumb_error *err;
} echo;

/* The log-probability of a given token is that of choosing it where no other may be chosen. */
static plumb_status score(plumb_scheduler *s, const float *logits, int64_t position, int32_t token, int n_top,
                          plumb_logprob *top, plumb_generation_event *event, plumb_error *err) {
    const plumb_sampling forced = {.top_p = 1.0f, .allowed = s->allowed};
    int32_t chosen;
    s->allowed[token / 32] = UINT32_C(1) << (token % 32);
    plumb_status status = plumb_sample(logits, s->model.vocab_size, &forced, position, &chosen, &event->token,
                                       n_top > 0 ? top : NULL, n_top, err);
    s->allowed[token / 32] = 0;
    event->top = n_top > 0 ? top : NULL;
    event->n_top = n_top;
    event->has_logprob = true;
    return status;
}

/* `logits` predict token `index`; NULL: nothing does. */
static plumb_status tell(plumb_scheduler *s, plumb_slot *slot, int64_t index, const float *logits,
                         plumb_error *err) {
    const plumb_generation *g = slot->job->generation;
    plumb_logprob top[20];
    int32_t token = slot->job->prompt.ids[index];
    plumb_generation_event event = {.kind = PLUMB_GENERATION_TOKEN, .run = slot->run, .of_prompt = true,
                                    .token = {.token = token}};
    plumb_status status = PLUMB_OK;
    if (logits && g->logprobs)
        status = score(s, logits, index, token, g->top_logprobs, top, &event, err);
    if (status != PLUMB_OK) return status;
    event.bytes = plumb_text_token_bytes(s->options.text, token, &event.size);
    if (!event.bytes) event.size = 0;
    if (!plumb__scheduler_tell(s, slot->job, &event)) slot->event_lost = true;
    return PLUMB_OK;
}

static int on_row(void *user, int64_t position, const float *logits) {
    echo *e = user;
    e->status = tell(e->s, e->slot, position + 1, logits, e->err);
    return e->status != PLUMB_OK;
}

/* Rows [from, to) tell the tokens behind them. */
static plumb_status tell_rows(plumb_scheduler *s, plumb_slot *slot, int64_t from, int64_t to, plumb_error *err) {
    plumb_error cut = {0};
    echo e = {.s = s, .slot = slot, .err = err};
    plumb_status status =
        plumb_session_eval_all(slot->session, slot->job->prompt.ids + from, to - from, on_row, &e, &cut);
    if (e.status != PLUMB_OK) return e.status;
    if (status != PLUMB_OK) *err = cut;
    return status;
}

void plumb__scheduler_echo(plumb_scheduler *s, plumb_slot *slot) {
    const plumb_tokens *prompt = &slot->job->prompt;
    int64_t from = slot->evaluated, last = prompt->count - 1, to = from + s->options.quantum;
    const float *logits = NULL;
    plumb_error err = {0};
    plumb_status status = PLUMB_OK;
    double begun = plumb__now();
    if (to > last) to = last;
    if (plumb_session_length(slot->session) == 0) status = tell(s, slot, 0, NULL, &err);
    if (status == PLUMB_OK && to > from) status = tell_rows(s, slot, from, to, &err);
    else if (status == PLUMB_OK)
        status = plumb_session_eval(slot->session, prompt->ids + last, 1, &logits, &err);
    if (status == PLUMB_ERROR_CANCELLED) return;
    if (status != PLUMB_OK) {
        plumb__scheduler_fail_slot(s, slot, &err);
        return;
    }
    plumb__scheduler_count_prompt(s, slot, to > from ? to - from : 1, plumb__now() - begun);
    plumb__scheduler_tell_progress(slot, to > from ? to : prompt->count);
    if (logits) plumb__scheduler_begin_answer(s, slot, logits);
}
