/* What the public handles hold.  Only src/engine and tests include this. */
#ifndef PLUMB_ENGINE_ENGINE_H
#define PLUMB_ENGINE_ENGINE_H

#include "model/network.h"

#include <pthread.h>

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
};

/* Rings and carries at an earlier length: with the append-only caches, a place to resume from. */
typedef struct plumb_resume_point {
    int64_t length;
    uint8_t *fixed;
} plumb_resume_point;

enum { PLUMB_MAX_RESUME_POINTS = 16 };

struct plumb_session {
    plumb_model *model;
    plumb_session_options options;
    plumb_state *state;
    int32_t *tokens; /* [state->length], and the tokens of the call at work */
    int64_t token_capacity;
    float *logits;   /* [vocab] of the last token of the last plumb_session_eval */
    uint8_t *backup; /* fixed part at the start of a call, to undo it */
    plumb_resume_point point[PLUMB_MAX_RESUME_POINTS]; /* ascending length */
    int n_points;
};

#endif
