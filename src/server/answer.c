/* One answer; see answer.h.
 *
 *      logits -> chooser -> token -> parser -> stop strings -> events
 *                              \-> queue of waiting tokens ---/
 *
 * A raw prompt's answer has a detokenizer in the parser's place.  What is told goes through one of two
 * functions at the end, tell_content and take_event, which also keep the message. */
#include "server/answer.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "server/answer_choice.h"
#include "server/answer_message.h"
#include "server/answer_stop.h"
#include "server/answer_tokens.h"

struct plumb_answer {
    plumb_answer_options options;
    plumb_chooser chooser;
    plumb_token_queue waiting; /* with log-probabilities */
    plumb_chat_parser *parser; /* NULL: the prompt was no conversation */
    int32_t mark_id;           /* of calls' markup, text where no markup is */
    int32_t think_id, think_end_id;
    plumb_detokenizer detokenizer;
    char *text; /* (text_capacity) what it wrote last */
    int64_t text_capacity;
    plumb_stop_filter *stops;
    plumb_told_message message; /* calls, and where tools are offered the text too */
    plumb_tokens said;
    int64_t sampled, reasoned;
    bool reasoning; /* the next token belongs to it */
    bool no_memory; /* found while events were told */
    bool over, failed, finished;
    plumb_finish finish;
};

/* ---- Events ------------------------------------------------------------------------------------ */

static void tell(const plumb_answer *a, plumb_generation_event event) {
    event.run = a->options.run;
    a->options.sink(a->options.sink_user, &event);
}

static void keep(plumb_answer *a, plumb_told_text *text, const char *bytes, size_t size) {
    if (a->options.generation->tools_offered && !plumb__told_text_add(text, bytes, size)) a->no_memory = true;
}

/* Visible text that is no stop. */
static void tell_content(void *user, const char *bytes, size_t size) {
    plumb_answer *a = user;
    plumb__token_queue_show(&a->waiting, size);
    keep(a, &a->message.content, bytes, size);
    tell(a, (plumb_generation_event){.kind = PLUMB_GENERATION_CONTENT, .bytes = bytes, .size = size});
}

static void tell_reasoning(plumb_answer *a, const plumb_chat_event *event) {
    a->reasoning = true;
    keep(a, &a->message.reasoning, event->bytes, event->size);
    tell(a, (plumb_generation_event){.kind = PLUMB_GENERATION_REASONING, .bytes = event->bytes, .size = event->size});
}

/* An event of a call.  Its index is its place in the message: the parser numbers them in order. */
static void tell_call(plumb_answer *a, const plumb_chat_event *event) {
    static const plumb_generation_event_kind kinds[] = {
        [PLUMB_CHAT_CALL_BEGIN] = PLUMB_GENERATION_CALL_BEGIN,
        [PLUMB_CHAT_CALL_ARGUMENTS] = PLUMB_GENERATION_CALL_ARGUMENTS,
        [PLUMB_CHAT_CALL_END] = PLUMB_GENERATION_CALL_END,
        [PLUMB_CHAT_CALL_DROPPED] = PLUMB_GENERATION_CALL_DROPPED,
    };
    plumb_told_call *call = NULL;
    if (event->kind == PLUMB_CHAT_CALL_BEGIN) {
        call = plumb__told_call_begin(&a->message, event->bytes, event->size);
        if (call)
            a->options.new_id(a->options.new_id_user, a->options.generation->call_prefix, call->id);
    } else {
        call = &a->message.calls[event->call];
    }
    if (!call || (event->kind == PLUMB_CHAT_CALL_ARGUMENTS &&
                  !plumb__told_text_add(&call->arguments, event->bytes, event->size))) {
        a->no_memory = true;
        return;
    }
    if (event->kind == PLUMB_CHAT_CALL_END) call->complete = true;
    tell(a, (plumb_generation_event){.kind = kinds[event->kind], .call = event->call, .id = call->id,
                                     .bytes = event->bytes, .size = event->size});
}

/* Of the answer's own parts or of the parser, whose events are not to be trusted then. */
static bool is_short_of_memory(const plumb_answer *a) {
    return a->no_memory || (a->parser && plumb_chat_parser_flags(a->parser) & PLUMB_CHAT_FLAG_NO_MEMORY);
}

/* What the parser makes of tokens.  Anything but content ends a run of visible text. */
static void take_event(void *user, const plumb_chat_event *event) {
    plumb_answer *a = user;
    if (is_short_of_memory(a) || plumb__stop_filter_found(a->stops)) return;
    if (event->kind == PLUMB_CHAT_CONTENT) {
        a->reasoning = false;
        plumb__stop_filter_push(a->stops, event->bytes, event->size);
        return;
    }
    plumb__stop_filter_release(a->stops);
    plumb__token_queue_flush(&a->waiting);
    if (event->kind == PLUMB_CHAT_REASONING) {
        tell_reasoning(a, event);
    } else {
        a->reasoning = false;
        tell_call(a, event);
    }
}

/* ---- Tokens ------------------------------------------------------------------------------------ */

/* The text that is complete with this token, in a->text; *hidden: it is none in itself. */
static bool detokenize(plumb_answer *a, int32_t token, bool *hidden, size_t *size) {
    size_t bytes = 0;
    if (!plumb_text_token_bytes(a->options.text, token, &bytes)) bytes = 0;
    *hidden = plumb_text_is_control(a->options.text, token) && !(a->parser && token == a->mark_id);
    *size = 0;
    if (*hidden) return true;
    int64_t needed = (int64_t)bytes * 3 + 3; /* as plumb_detokenizer_push asks for */
    char *grown = plumb__grow(a->text, &a->text_capacity, needed, 1);
    if (!grown) return false;
    a->text = grown;
    *size = plumb_detokenizer_push(&a->detokenizer, token, a->text, (size_t)needed);
    return true;
}

/* The token becomes text and events. */
static plumb_status feed(plumb_answer *a, const plumb_choice *choice, plumb_error *err) {
    bool hidden = false, logprobs = a->options.generation->logprobs;
    size_t size = 0;
    if (!a->parser || logprobs) {
        if (!detokenize(a, choice->token, &hidden, &size)) return plumb__fail_memory(err, "text", size);
        if (logprobs && !plumb__token_queue_add(&a->waiting, choice, hidden, size))
            return plumb__fail_memory(err, "log-probabilities", sizeof *choice);
    }
    if (a->parser) (void)plumb_chat_parser_push(a->parser, choice->token);
    else plumb__stop_filter_push(a->stops, a->text, size);
    /* While a stop may be beginning, the text before it is the oldest that waits, and not settled. */
    if (logprobs && plumb__stop_filter_held(a->stops) == 0)
        plumb__token_queue_settle(&a->waiting, a->parser ? plumb_chat_parser_held(a->parser) : 0);
    return PLUMB_OK;
}

/* The model, a limit or a stop string has ended the answer: tells what is still held. */
static void end(plumb_answer *a, bool ended_turn) {
    char tail[3];
    if (!a->parser)
        plumb__stop_filter_push(a->stops, tail, plumb_detokenizer_finish(&a->detokenizer, tail, sizeof tail));
    else if (!ended_turn)
        plumb_chat_parser_finish(a->parser);
    plumb__stop_filter_release(a->stops);
    plumb__token_queue_flush(&a->waiting);
    bool all_complete;
    a->over = true;
    if (plumb__stop_filter_found(a->stops)) a->finish = PLUMB_FINISH_STOP_STRING;
    else if (!ended_turn) a->finish = PLUMB_FINISH_LENGTH;
    else a->finish = plumb__told_calls(&a->message, &all_complete) > 0 ? PLUMB_FINISH_CALLS : PLUMB_FINISH_STOP;
}

static bool say(plumb_answer *a, int32_t token) {
    int32_t *grown = plumb__grow(a->said.ids, &a->said.capacity, a->said.count + 1, sizeof *grown);
    if (!grown) return false;
    a->said.ids = grown;
    grown[a->said.count++] = token;
    return true;
}

static plumb_status take_step(plumb_answer *a, const float *logits, int64_t position, int32_t *token,
                              plumb_error *err) {
    plumb_choice choice;
    plumb_status status = plumb__chooser_choose(&a->chooser, logits, position, &choice, err);
    if (status != PLUMB_OK) return status;
    bool ends_turn = plumb_text_is_stop(a->options.text, choice.token);
    if (!ends_turn && !say(a, choice.token)) return plumb__fail_memory(err, "tokens", sizeof choice.token);
    a->sampled++;
    if (a->reasoning) a->reasoned++;
    /* The parser's events correct it where the token is something else. */
    if (a->parser && choice.token == a->think_id) a->reasoning = true;
    if (a->parser && choice.token == a->think_end_id) a->reasoning = false;
    status = feed(a, &choice, err);
    if (status != PLUMB_OK) return status;
    if (ends_turn || plumb__stop_filter_found(a->stops) || a->sampled >= a->options.most_tokens) end(a, ends_turn);
    if (is_short_of_memory(a)) return plumb__fail_memory(err, "answer", (size_t)a->said.count);
    *token = choice.token;
    return PLUMB_OK;
}

plumb_status plumb__answer_step(plumb_answer *answer, const float *logits, int64_t position, int32_t *token,
                                bool *over, plumb_error *err) {
    if (answer->over || answer->failed)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "plumb__answer_step", -1, "an answer that has ended",
                           "one that goes on");
    plumb_status status = take_step(answer, logits, position, token, err);
    answer->failed = status != PLUMB_OK;
    if (status == PLUMB_OK) *over = answer->over;
    return status;
}

void plumb__answer_finish(plumb_answer *answer, const plumb_usage *measured) {
    if (!answer->over || answer->failed || answer->finished) return;
    answer->finished = true;
    plumb_usage usage = *measured;
    usage.completion_tokens = answer->sampled;
    usage.reasoning_tokens = answer->reasoned;
    tell(answer, (plumb_generation_event){.kind = PLUMB_GENERATION_FINISHED,
                                          .finish = answer->finish,
                                          .stop_string = plumb__stop_filter_found(answer->stops),
                                          .usage = &usage});
}

/* ---- Life -------------------------------------------------------------------------------------- */

static plumb_status check(const plumb_answer_options *o, plumb_error *err) {
    if (!o->generation || !o->text || !o->sink || !o->new_id)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "plumb__answer_create", -1, "NULL",
                           "generation, text, sink and new_id");
    if (o->vocab_size < 1 || o->most_tokens < 0)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "plumb__answer_create", -1,
                           plumb__format("%lld logits, %lld tokens", (long long)o->vocab_size,
                                         (long long)o->most_tokens).s,
                           "1 logit or more, 0 tokens or more");
    return PLUMB_OK;
}

static plumb_status prepare(plumb_answer *a, plumb_error *err) {
    const plumb_generation *g = a->options.generation;
    const plumb_text *text = a->options.text;
    a->reasoning = g->messages && g->thinking;
    a->mark_id = plumb_text_token_id(text, "｜DSML｜");
    a->think_id = plumb_text_token_id(text, "<think>");
    a->think_end_id = plumb_text_token_id(text, "</think>");
    a->waiting = (plumb_token_queue){.text = text, .run = a->options.run, .sink = a->options.sink,
                                     .user = a->options.sink_user};
    plumb_detokenizer_init(&a->detokenizer, text);
    /* Nothing to sample: the prompt was to be echoed, or fills the context. */
    a->over = a->options.most_tokens == 0;
    a->finish = PLUMB_FINISH_LENGTH;
    plumb_status status = plumb__chooser_init(&a->chooser, &a->options, a->reasoning, err);
    if (status == PLUMB_OK)
        status = plumb__stop_filter_create(g->stop, g->n_stop, tell_content, a, &a->stops, err);
    if (status == PLUMB_OK && g->messages)
        status = plumb_chat_parser_create(text, a->reasoning, g->tools_offered, take_event, a, &a->parser, err);
    return status;
}

plumb_status plumb__answer_create(const plumb_answer_options *options, plumb_answer **answer, plumb_error *err) {
    plumb_status status = check(options, err);
    if (status != PLUMB_OK) return status;
    plumb_answer *made = calloc(1, sizeof *made);
    if (!made) return plumb__fail_memory(err, "answer", sizeof *made);
    made->options = *options;
    status = prepare(made, err);
    if (status == PLUMB_OK) *answer = made;
    else plumb__answer_destroy(made);
    return status;
}

void plumb__answer_destroy(plumb_answer *answer) {
    if (!answer) return;
    plumb__chooser_free(&answer->chooser);
    plumb__token_queue_free(&answer->waiting);
    plumb_chat_parser_destroy(answer->parser);
    plumb__stop_filter_destroy(answer->stops);
    plumb__told_message_free(&answer->message);
    plumb_tokens_free(&answer->said);
    free(answer->text);
    free(answer);
}

/* ---- What has been said ------------------------------------------------------------------------ */

const plumb_tokens *plumb__answer_tokens(const plumb_answer *answer) { return &answer->said; }

/* A turn that was cut, or of which something was not told, must not stand for what was told of it. */
char *plumb__answer_message(const plumb_answer *answer) {
    bool all_complete;
    if (!answer->over || answer->failed || answer->finish != PLUMB_FINISH_CALLS) return NULL;
    if (plumb__told_calls(&answer->message, &all_complete) == 0 || !all_complete) return NULL;
    return plumb__told_message_json(&answer->message);
}
