/* What the public handles hold.  Only src/engine and tests include this. */
#ifndef PLUMB_ENGINE_ENGINE_H
#define PLUMB_ENGINE_ENGINE_H

#include "model/network.h"

#include <pthread.h>

enum { PLUMB_MODEL_DIGEST_BYTES = 16 };

struct plumb_model {
    char *path;
    plumb_checkpoint *checkpoint;
    plumb_backend *backend;
    plumb_weight_source *source;
    int32_t *token_map;
    plumb_network network;
    pthread_mutex_t lock; /* one evaluation at a time: the network's working memory is shared */
    int threads;
    const char *cpu_level;
    /* Streaming (memory_budget.h). */
    bool streaming, layer_buffers;
    /* Sessions are made while the budget changes; nobody waits for an evaluation to end. */
    _Atomic int64_t memory_bytes;  /* budget, 0: none */
    _Atomic int64_t cache_experts; /* exact number of slots, 0: what the budget leaves */
    int64_t (*available_memory)(void);
    _Atomic int64_t session_bytes;  /* of all sessions now */
    _Atomic int64_t promised_bytes; /* of all sessions when their contexts are full */
    char *hot_list;           /* path or NULL */
    uint32_t *earlier_uses;   /* [layers * experts] what the hot list said at opening */
    /* Of the model that snapshots are of (model_digest.h). */
    pthread_mutex_t digest_lock;
    bool has_digest;
    uint8_t digest[PLUMB_MODEL_DIGEST_BYTES];
};

/* One line to whoever opens the model; nothing when nobody listens. */
void plumb__model_log(const plumb_model_options *options, plumb_log_level level, const char *line);

/* What only tests choose: how files are read. */
typedef struct plumb_reading {
    plumb_reader_kind reader;
    plumb_reader *(*wrap)(void *user, plumb_reader *inner); /* NULL: none */
    void *wrap_user;
} plumb_reading;
PLUMB_MUST_CHECK plumb_status plumb__model_open_reading(const char *path,
                                                        const plumb_model_options *options,
                                                        const plumb_reading *reading,
                                                        plumb_model **model, plumb_error *err);

/* Rings and carries at an earlier length: with the append-only caches, a place to resume from. */
typedef struct plumb_resume_point {
    int64_t length;
    uint8_t *fixed;
} plumb_resume_point;

enum { PLUMB_MAX_RESUME_POINTS = 16 };

/* How far a sync in parts has come: rings and carries that are good for going on to these tokens, as far as their end
 * or beyond, since rows which the end does not need were left out (docs/model.md section 7). */
typedef struct plumb_sync_part {
    int64_t length;   /* evaluated so far; 0: there is no such sync */
    int64_t end;      /* where it goes */
    int64_t cached;   /* tokens whose compressed keys were known when it began */
    int64_t first;    /* the first position that was evaluated */
    int64_t shared;   /* tokens that the session knew, for the report */
    uint8_t *fixed;   /* NULL until there was one */
} plumb_sync_part;

struct plumb_session {
    plumb_model *model;
    plumb_session_options options;
    plumb_state *state;
    int32_t *tokens; /* [known], and the tokens of the call at work */
    int64_t token_capacity;
    int64_t known;     /* tokens whose compressed keys are in the caches: the length, or more after a
                        * call that did not end */
    bool stepped_back; /* the rings are those of one position more: a second step needs others */
    float *logits;   /* [vocab] of the last token of the last plumb_session_eval */
    uint8_t *backup; /* fixed part at the start of a call, to undo it */
    plumb_sync_part part;
    int64_t counted_bytes, promised_bytes; /* in the model's sums */
    plumb_resume_point point[PLUMB_MAX_RESUME_POINTS]; /* ascending length */
    int n_points;
};

/* What a restored session holds from now on, all of it taken over. */
typedef struct plumb_session_contents {
    plumb_state *state;
    int32_t *tokens;
    int64_t token_capacity;
    bool stepped_back;
    plumb_resume_point point[PLUMB_MAX_RESUME_POINTS];
    int n_points;
} plumb_session_contents;

/* Parts of session.c that its neighbours share. */
PLUMB_MUST_CHECK plumb_status plumb__session_check_tokens(const plumb_session *session, int64_t length,
                                                          const int32_t *tokens, int64_t n,
                                                          plumb_error *err);
/* Puts tokens[n] behind the first `start` of the session's, of which those that it knows already stay
 * known.  They may be its own, from before going back, and growing moves these. */
PLUMB_MUST_CHECK plumb_status plumb__session_put_tokens(plumb_session *session, int64_t start,
                                                        const int32_t *tokens, int64_t n,
                                                        plumb_error *err);
void plumb__session_keep_logits(plumb_session *session, const float *logits);
/* After evaluating `n` tokens: a place to go back to, where one is due. */
void plumb__session_advanced(plumb_session *session, int64_t n);
void plumb__session_replace(plumb_session *session, const plumb_session_contents *contents);

#endif
