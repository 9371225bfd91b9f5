/* A request for tokens and what becomes of it, in the words of no API.
 *
 * An API reads its JSON into a plumb_generation; the scheduler evaluates it and tells events, which the API
 * writes in its own shape.  Neither side knows of the other's. */
#ifndef PLUMB_SERVER_GENERATION_H
#define PLUMB_SERVER_GENERATION_H

#include "grammar/grammar.h"
#include "plumb.h"

typedef struct plumb_stop_string {
    char *bytes; /* at least one */
    size_t size;
} plumb_stop_string;

/* Everything it points at is its own; made by plumb__generation_create. */
typedef struct plumb_generation {
    /* The prompt: one of three. */
    char *messages;          /* JSON array as plumb_chat_encode takes it, or NULL */
    char *prompt;            /* (prompt_size) raw text after BOS, or NULL */
    size_t prompt_size;
    plumb_tokens ids;        /* the ids themselves, where both are NULL */

    /* Of a conversation. */
    bool thinking;
    int effort;              /* 1..100 */
    bool keep_reasoning;     /* as plumb_chat_options has it */
    bool tools_offered;      /* calls are told as calls, not as text */
    const char *call_prefix; /* static: "call_", "toolu_": ids of calls begin with it */

    plumb_sampling sampling; /* without `bias` and `allowed` */
    bool seed_given;         /* else each run draws its own */
    plumb_logit_bias *bias;
    int32_t n_bias;
    plumb_grammar *grammar;  /* of what follows the reasoning; NULL: anything */

    int64_t most_tokens;     /* to generate; -1: what the context holds.  0 is for echoing a prompt */
    plumb_stop_string *stop; /* n_stop of them: none of their bytes is told */
    int n_stop;
    bool streamed;           /* the client is told as it comes, and gets a sign of life while it waits */
    int runs;                /* independent answers, 1 or more ("n", "best of") */
    bool logprobs;           /* tell PLUMB_GENERATION_TOKEN events */
    int top_logprobs;        /* 0..20 */
    bool echo;               /* tell the prompt's tokens first, as PLUMB_GENERATION_TOKEN with `of_prompt` */
} plumb_generation;

plumb_generation *plumb__generation_create(void); /* with the defaults of the model card; NULL: no memory */
void plumb__generation_destroy(plumb_generation *generation); /* NULL is fine */

typedef enum plumb_finish {
    PLUMB_FINISH_STOP,        /* the model ended its turn */
    PLUMB_FINISH_STOP_STRING, /* `stop_string` of the event */
    PLUMB_FINISH_LENGTH,      /* most_tokens, or the context is full */
    PLUMB_FINISH_CALLS        /* the model ended its turn, which has calls */
} plumb_finish;

typedef struct plumb_usage {
    int64_t prompt_tokens, cached_tokens; /* the first include the second */
    int64_t completion_tokens, reasoning_tokens;
    double prefill_seconds, decode_seconds;
} plumb_usage;

typedef enum plumb_generation_event_kind {
    PLUMB_GENERATION_STARTED,        /* a slot works on it; usage.prompt_tokens and cached_tokens are known */
    PLUMB_GENERATION_PROGRESS,       /* prompt tokens evaluated: done of total */
    PLUMB_GENERATION_TOKEN,          /* one token, with log-probabilities; before the text it becomes */
    PLUMB_GENERATION_REASONING,      /* bytes: more reasoning, whole characters */
    PLUMB_GENERATION_CONTENT,        /* bytes: more visible text, whole characters */
    PLUMB_GENERATION_CALL_BEGIN,     /* call, id, bytes: function name */
    PLUMB_GENERATION_CALL_ARGUMENTS, /* call, bytes: next piece of a JSON object */
    PLUMB_GENERATION_CALL_END,       /* call */
    PLUMB_GENERATION_CALL_DROPPED,   /* call: did not finish; what was told of it is void */
    PLUMB_GENERATION_FINISHED,       /* finish, stop_string, usage: the last event of a run */
    PLUMB_GENERATION_FAILED          /* error: the last event of the whole generation */
} plumb_generation_event_kind;

/* Why a request got no answer, or not all of it. */
typedef enum plumb_refusal {
    PLUMB_REFUSAL_BAD_REQUEST,  /* 400 */
    PLUMB_REFUSAL_UNAUTHORIZED, /* 401 */
    PLUMB_REFUSAL_FORBIDDEN,    /* 403 */
    PLUMB_REFUSAL_NOT_FOUND,    /* 404 */
    PLUMB_REFUSAL_METHOD,       /* 405 */
    PLUMB_REFUSAL_CONFLICT,     /* 409 */
    PLUMB_REFUSAL_TOO_LARGE,    /* 413 */
    PLUMB_REFUSAL_CONTEXT,      /* 400: prompt and answer do not fit into the context */
    PLUMB_REFUSAL_BUSY,         /* 429: the queue is full */
    PLUMB_REFUSAL_INTERNAL,     /* 500 */
    PLUMB_REFUSAL_STOPPING      /* 503 */
} plumb_refusal;

/* `param` names the JSON field, with a path like messages[2].content; empty: none. */
typedef struct plumb_api_error {
    plumb_refusal refusal;
    char param[128];
    char message[400];
} plumb_api_error;

/* Pointers are valid during the call that tells the event. */
typedef struct plumb_generation_event {
    plumb_generation_event_kind kind;
    int run;                /* 0..runs - 1 */
    int call;               /* index of the call within the run's answer */
    const char *id;         /* of the call; NUL-terminated */
    const char *bytes;      /* not NUL-terminated */
    size_t size;
    int64_t done, total;
    /* PLUMB_GENERATION_TOKEN: `bytes` are the token's own, maybe half a character. */
    plumb_logprob token;    /* logprob is 0 for the first token of a prompt, which has none: has_logprob */
    bool has_logprob, of_prompt;
    bool of_content;        /* visible text, not reasoning, markup of calls or the end */
    const plumb_logprob *top; /* n_top of them, best first */
    int n_top;
    plumb_finish finish;
    const char *stop_string; /* NUL-terminated; which one it was */
    const plumb_usage *usage;
    const plumb_api_error *error;
} plumb_generation_event;

#endif
