/* One tool call on its way out: parameters become the members of one JSON object, piece by piece
 * (spec: tokenizer-and-chat.md section 7.1).
 *
 * Invariant: at CALL_END the pieces form one JSON object.  So a string value streams, escaped as
 * json.dumps does it; any other value is collected and validated, and becomes a string if it is
 * no JSON.  The value is inserted as written.  NaN and Infinity are Python's JSON but nobody
 * else's, so they become strings too.
 *
 * A repeated key: the first value stays, since it has been delivered already. */
#ifndef PLUMB_TEXT_CHAT_CALL_H
#define PLUMB_TEXT_CHAT_CALL_H

#include "plumb.h"
#include "text/chat_buffer.h"
#include "text/chat_events.h"

/* Limits of what one call makes the parser keep.  A longer JSON value streams as a string; a call
 * with more parameters, or a longer bare body, is dropped. */
#define PLUMB__CALL_JSON_BYTES_MAX ((int64_t)8 << 20)
#define PLUMB__CALL_PARAMETERS_MAX 1024

typedef enum plumb__call_value {
    PLUMB__CALL_NO_VALUE,
    PLUMB__CALL_STRING, /* streams */
    PLUMB__CALL_JSON,   /* is collected */
    PLUMB__CALL_SKIPPED /* of a repeated key */
} plumb__call_value;

typedef struct plumb__call_key {
    uint64_t hash;
    int64_t at;
    size_t size;
} plumb__call_key;

typedef struct plumb__chat_call {
    plumb__chat_events *events;
    unsigned *flags;
    int next; /* index of the next call */
    bool open;
    bool muted;  /* nothing is delivered */
    bool broken; /* will be dropped at its end */
    bool bare;   /* the body is a JSON object instead of parameters */
    plumb__call_value value;
    int n_parameters;
    plumb__buffer collected;
    plumb__buffer key_bytes;
    plumb__call_key keys[PLUMB__CALL_PARAMETERS_MAX];
} plumb__chat_call;

void plumb__call_init(plumb__chat_call *call, plumb__chat_events *events, unsigned *flags);
void plumb__call_free(plumb__chat_call *call);

/* A call without a name cannot be delivered and counts as muted. */
void plumb__call_begin(plumb__chat_call *call, const char *name, size_t size, bool muted);
void plumb__call_parameter(plumb__chat_call *call, const char *key, size_t size, bool is_string);
void plumb__call_value_bytes(plumb__chat_call *call, const char *bytes, size_t size);
void plumb__call_value_end(plumb__chat_call *call);
/* Text of a bare JSON body. */
void plumb__call_body_bytes(plumb__chat_call *call, const char *bytes, size_t size);
bool plumb__call_body_is_object(plumb__chat_call *call);
/* Ends the open call: delivered, or dropped if it is broken. */
void plumb__call_end(plumb__chat_call *call);
void plumb__call_drop(plumb__chat_call *call);

#endif
