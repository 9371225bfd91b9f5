/* plumb: run DeepSeek-V4.1-Flash checkpoints as released.
 *
 * Three ideas: a MODEL is a loaded checkpoint, a SESSION is one timeline of tokens evaluated
 * by it, a TEXT handle turns strings into token ids and back.  Same tokens, same bits: logits
 * never depend on threads, chunk sizes or what other sessions do (docs/arithmetic.md).
 *
 * Ownership, once and for all: what a function creates through an out pointer belongs to the
 * caller, who gives it back to the matching close/destroy/free function; what is passed in is
 * borrowed for the call unless the comment says "kept".  Every function that can fail returns
 * a plumb_status and, when `err` is not NULL, fills it; out parameters are then untouched.
 *
 * Threads: a session is used by one thread at a time.  Sessions of one model may be used from
 * several threads; the model runs one evaluation at a time.  A text handle is immutable after
 * opening and may be shared; its streams, parsers and token buffers may not.
 */
#ifndef PLUMB_H
#define PLUMB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PLUMB_VERSION "0.1.0"
#define PLUMB_ARITHMETIC_REVISION 1

#if defined(__GNUC__)
#define PLUMB_MUST_CHECK __attribute__((warn_unused_result))
#else
#define PLUMB_MUST_CHECK
#endif

/* ---- Errors ------------------------------------------------------------------------- */

/* Values are pinned: they never change meaning. */
typedef enum plumb_status {
    PLUMB_OK = 0,
    PLUMB_ERROR_ARGUMENT = 1,    /* the caller passed something impossible */
    PLUMB_ERROR_IO = 2,          /* open, read, write, vanished or short file */
    PLUMB_ERROR_FORMAT = 3,      /* a file is not what its name says */
    PLUMB_ERROR_CONFIG = 4,      /* config.json describes something we must refuse */
    PLUMB_ERROR_TENSOR = 5,      /* tensor missing, unknown, or of wrong dtype or shape */
    PLUMB_ERROR_VALUE = 6,       /* NaN or non-finite number where none may be */
    PLUMB_ERROR_MEMORY = 7,      /* allocation failed or would exceed the machine */
    PLUMB_ERROR_CONTEXT = 8,     /* more positions than the context holds */
    PLUMB_ERROR_TEXT = 9,        /* invalid UTF-8, messages or tokenizer use */
    PLUMB_ERROR_UNSUPPORTED = 10,/* valid, but this build or backend cannot do it */
    PLUMB_ERROR_CANCELLED = 11   /* stopped by the caller */
} plumb_status;

/* One fault, in parts.  Empty strings and offset -1 mean "does not apply". */
typedef struct plumb_error {
    plumb_status status;
    int64_t offset;      /* byte offset in `file`, or index in `field` */
    char file[256];      /* path */
    char field[192];     /* tensor name, config key, option, ... */
    char found[192];
    char expected[192];
} plumb_error;

/* Writes the error as one line without newline: "file: field at offset N: found X, expected Y". */
void plumb_error_line(const plumb_error *err, char *line, size_t size);
const char *plumb_status_name(plumb_status status);

/* ---- Log ---------------------------------------------------------------------------- */

typedef enum plumb_log_level { PLUMB_LOG_INFO, PLUMB_LOG_WARNING } plumb_log_level;
typedef void (*plumb_log_fn)(void *user, plumb_log_level level, const char *line);

/* ---- Model -------------------------------------------------------------------------- */

typedef struct plumb_model plumb_model;

/* Sees which routed experts ids[n], ascending, a layer chose for the token at `position`. */
typedef void (*plumb_route_fn)(void *user, int64_t position, int64_t layer, const int32_t *ids,
                               int64_t n);

typedef enum plumb_device {
    PLUMB_DEVICE_BEST, /* Metal where the build has it and it works, else the CPU */
    PLUMB_DEVICE_CPU,
    PLUMB_DEVICE_METAL
} plumb_device;

typedef struct plumb_model_options {
    plumb_device device; /* never changes a result */
    int threads;      /* 0: one per core this process may use */
    /* NULL: best; or portable, avx2, avx512, avx512_bf16, neon (PLUMB_CPU overrides) */
    const char *cpu_level;
    plumb_log_fn log; /* NULL: silent */
    void *log_user;

    /* Streaming: routed experts come from the files as they are needed, and memory stays within a
     * budget that also pays for dense weights, sessions and working memory (docs/streaming.md). */
    bool streaming;
    int64_t memory_bytes;   /* the budget; 0: what this machine can spare */
    int64_t cache_experts;  /* so many experts in memory, fewer when the system runs short; the budget must
                             * have room for them; 0: what fits */
    bool layer_buffers;     /* keep no expert for later: buffers for a layer and the next */
    bool no_read_ahead;     /* do not read the next layer's likely experts ahead */
    const char *hot_list;   /* file of the experts used most: read first at opening, where it exists,
                             * and written at closing; NULL: none */
    bool cold;              /* start with no expert in memory all the same */
    plumb_route_fn routes;  /* may be NULL */
    void *routes_user;
} plumb_model_options;

typedef struct plumb_model_info {
    int64_t vocab_size, hidden_size, layers, experts, experts_per_token;
    int64_t max_positions;
    int64_t bos_id, eos_id;
    int64_t resident_bytes;     /* weights held in memory now */
    bool streaming;
    int threads;
    const char *device;         /* "cpu" or "metal" */
    const char *cpu_level;      /* static string; NULL where the CPU does not compute */
    const char *path;           /* lives as long as the model */
} plumb_model_info;

/* Opens a folder with config.json and safetensors in the released layout, or a converted file, one
 * GGUF that `plumb convert` wrote.  Everything is checked before any compute: config, names, dtypes,
 * shapes, offsets, NaN codes of dense weights. */
PLUMB_MUST_CHECK plumb_status plumb_model_open(const char *path, const plumb_model_options *options,
                                               plumb_model **model, plumb_error *err);
void plumb_model_close(plumb_model *model); /* all its sessions must be gone; NULL is fine */
void plumb_model_get_info(const plumb_model *model, plumb_model_info *info);

/* What streaming has done since the model was opened; a request's share is a difference of two. */
typedef struct plumb_stream_stats {
    int64_t expert_slots, experts_held, expert_bytes; /* now: slots, those with an expert, bytes of one */
    int64_t hits, misses;        /* experts asked for that were in memory, that had to be read */
    int64_t bytes_read;          /* of experts */
    double read_seconds;         /* while a read was waited for */
    int64_t read_bytes;          /* that came in that time: their quotient is the speed of the drive */
    double wait_seconds;         /* in which nothing was computed, for want of an expert */
    double unpack_seconds;       /* that threads spent on experts of a converted file, beside all this */
    int64_t ahead_useful, ahead_wasted; /* experts read ahead that were then asked for, or not */
    /* Rows of Engram tables: asked for, once per batch, of these in memory; reads for the others. */
    int64_t engram_rows, engram_distinct, engram_cached, engram_reads;
    int64_t peak_memory_bytes;   /* of the whole process, by the system's account */
} plumb_stream_stats;
void plumb_model_get_stream_stats(plumb_model *model, plumb_stream_stats *stats);

/* Changes the budget, or (cache_experts > 0) the number of experts in memory, of a streaming model;
 * takes effect at once, or before the next batch when one is being evaluated.  Refused where it cannot hold
 * weights and experts; sessions that are open keep what they have.  Never changes a bit. */
PLUMB_MUST_CHECK plumb_status plumb_model_set_cache(plumb_model *model, int64_t memory_bytes,
                                                    int64_t cache_experts, plumb_error *err);

/* ---- Session ------------------------------------------------------------------------ */

typedef struct plumb_session plumb_session;

typedef struct plumb_session_options {
    int64_t context; /* most positions; 0: the model's max_position_embeddings */
    int64_t chunk;   /* most rows evaluated at once; 0: default.  Never changes a bit. */
    /* Called between layers, and before waiting for experts from the disk, with rows done and rows
     * asked for; nonzero cancels.  May be NULL. */
    int (*progress)(void *user, int64_t done, int64_t total);
    void *progress_user;
} plumb_session_options;

PLUMB_MUST_CHECK plumb_status plumb_session_create(plumb_model *model,
                                                   const plumb_session_options *options,
                                                   plumb_session **session, plumb_error *err);
void plumb_session_destroy(plumb_session *session);

/* Appends tokens.  On return `*logits` (if logits is not NULL) points at vocab_size floats for
 * the last token, owned by the session, valid until its next call.  A failed call leaves the
 * session where it was before it; the same tokens given again go on where it failed.  Rows that
 * neither the logits nor later positions need are left out, and with them the weights that only those
 * rows would have read and checked. */
PLUMB_MUST_CHECK plumb_status plumb_session_eval(plumb_session *session, const int32_t *tokens,
                                                 int64_t n_tokens, const float **logits,
                                                 plumb_error *err);
/* The same, and hands every row's logits (vocab_size floats) to `sink`, in position order.
 * A nonzero return of sink cancels. */
typedef int (*plumb_logits_sink)(void *user, int64_t position, const float *logits);
PLUMB_MUST_CHECK plumb_status plumb_session_eval_all(plumb_session *session, const int32_t *tokens,
                                                     int64_t n_tokens, plumb_logits_sink sink,
                                                     void *user, plumb_error *err);
/* Goes back to any earlier length, 0 <= length <= current.  What follows has the bits of a fresh
 * session.  May evaluate tokens again, in part: not more than the layers' windows reach back to, 5,081
 * at the released shape (docs/sessions.md).  A failed call leaves the session where it was. */
PLUMB_MUST_CHECK plumb_status plumb_session_rewind(plumb_session *session, int64_t length,
                                                   plumb_error *err);

typedef struct plumb_sync_report {
    int64_t cached;    /* tokens that the session knew, at most n_tokens - 1 */
    int64_t replayed;  /* of these, evaluated in part again since their window keys were gone */
    int64_t evaluated; /* the others: cached + evaluated = n_tokens */
} plumb_sync_report;

/* Brings the session to exactly these tokens, with the logits of the last (see plumb_session_eval): keeps
 * the longest beginning that it knows, also of calls that were cut short, and evaluates the rest; the
 * same tokens again are one evaluation.  Bits are those of a fresh session.  `report` may be NULL.
 * After a failure the session holds a beginning of what it held, and knows as much as it can use. */
PLUMB_MUST_CHECK plumb_status plumb_session_sync(plumb_session *session, const int32_t *tokens,
                                                 int64_t n_tokens, const float **logits,
                                                 plumb_sync_report *report, plumb_error *err);
/* How many of these tokens the session knows the beginning of: at most so many does a sync report as cached. */
int64_t plumb_session_known(const plumb_session *session, const int32_t *tokens, int64_t n_tokens);
/* plumb_session_sync in parts: evaluates at most `most_rows` rows more towards these tokens.  *done: all is
 * evaluated, and `logits` and `report` are as above, the report counting all parts.  Otherwise, and after a
 * failure, the session holds a beginning of what it held, and the same call, with all the tokens again, goes
 * on from here, also after other calls that left it knowing those that were evaluated. */
PLUMB_MUST_CHECK plumb_status plumb_session_sync_part(plumb_session *session, const int32_t *tokens,
                                                      int64_t n_tokens, int64_t most_rows, bool *done,
                                                      const float **logits, plumb_sync_report *report,
                                                      plumb_error *err);
/* Appends one token to each of n (1 to 64) different sessions of one model, as one batch: weights are read once for
 * all.  Bits are those of n single calls.  logits[i] as plumb_session_eval has it.  After a failure no session
 * has moved. */
PLUMB_MUST_CHECK plumb_status plumb_sessions_step(plumb_session *const *sessions, const int32_t *tokens,
                                                  int64_t n, const float **logits, plumb_error *err);
/* Makes `session` hold what `other` holds, which is of the same model: a copy of its state, not an
 * evaluation.  Refused where its context is too small; after any failure it is as before. */
PLUMB_MUST_CHECK plumb_status plumb_session_copy(plumb_session *session, const plumb_session *other,
                                                 plumb_error *err);
int64_t plumb_session_length(const plumb_session *session);
int64_t plumb_session_context(const plumb_session *session);
/* Bytes of what the tokens have left behind, without room kept for more: caches by the token, window
 * rings and carries of a fixed size, which is all that an empty session has. */
int64_t plumb_session_state_bytes(const plumb_session *session);
/* Length of them, valid until the session's next call, to which they may be given. */
const int32_t *plumb_session_tokens(const plumb_session *session);

/* ---- Sampling ----------------------------------------------------------------------- */

typedef struct plumb_logit_bias {
    int32_t token;
    float bias;
} plumb_logit_bias;

typedef struct plumb_sampling {
    float temperature; /* 0: greedy */
    int32_t top_k;     /* 0: off */
    float top_p;       /* 1: off */
    float min_p;       /* 0: off; relative to the best token's probability */
    uint64_t seed;     /* same seed, same position, same logits: same token, on every platform */
    const plumb_logit_bias *bias; /* may be NULL */
    int32_t n_bias;
    const uint32_t *allowed; /* bit i % 32 of word i / 32: token i may be chosen; NULL: all.  Not saved */
} plumb_sampling;

typedef struct plumb_logprob {
    int32_t token;
    float logprob; /* natural logarithm, over the whole vocabulary at temperature 1 */
} plumb_logprob;

plumb_sampling plumb_sampling_default(void); /* temperature 1, top_p 0.95, seed 0 */

/* Chooses the token that follows `position` evaluated tokens.  NaN among the logits is an error.
 * `top` (n_top entries, may be NULL) receives the best log-probabilities, `chosen` (may be NULL)
 * the chosen token's; both are of the logits as given, before bias and temperature. */
PLUMB_MUST_CHECK plumb_status plumb_sample(const float *logits, int64_t vocab_size,
                                           const plumb_sampling *sampling, int64_t position,
                                           int32_t *token, plumb_logprob *chosen,
                                           plumb_logprob *top, int32_t n_top, plumb_error *err);

/* ---- Snapshots ---------------------------------------------------------------------- */

/* What rides along with a session in a file (docs/snapshots.md). */
typedef struct plumb_snapshot_extra {
    const plumb_sampling *sampling; /* NULL: none; bias included */
    const void *note;               /* the caller's own bytes (a conversation, say), kept as they are;
                                     * NULL: none */
    int64_t note_bytes;
    bool resume_points; /* also the places the session can go back to at no cost: one ring size each */
} plumb_snapshot_extra;

/* Writes what the session holds to `path`: whole or not at all, over a file that is there, through
 * PATH.part.  Equal sessions give equal files.  extra may be NULL. */
PLUMB_MUST_CHECK plumb_status plumb_session_save(const plumb_session *session, const char *path,
                                                 const plumb_snapshot_extra *extra, plumb_error *err);

/* How large that file is; -1 without memory. */
int64_t plumb_session_snapshot_bytes(const plumb_session *session, const plumb_snapshot_extra *extra);

/* An opened file.  Header, tokens, sampling and note are read and checked at once, whatever model they
 * are of; the caches, nearly all of the file, when a session is restored. */
typedef struct plumb_snapshot plumb_snapshot;
PLUMB_MUST_CHECK plumb_status plumb_snapshot_open(const char *path, plumb_snapshot **snapshot,
                                                  plumb_error *err);
void plumb_snapshot_close(plumb_snapshot *snapshot); /* NULL is fine */
int64_t plumb_snapshot_length(const plumb_snapshot *snapshot);
const int32_t *plumb_snapshot_tokens(const plumb_snapshot *snapshot); /* length of them */
/* Both live as long as the snapshot; NULL: none was saved. */
const plumb_sampling *plumb_snapshot_sampling(const plumb_snapshot *snapshot);
const void *plumb_snapshot_note(const plumb_snapshot *snapshot, int64_t *bytes /* may be NULL */);

/* Whether the header alone forbids to restore it into this session: another arithmetic revision, model
 * or layout, too small a context. */
PLUMB_MUST_CHECK plumb_status plumb_snapshot_check(const plumb_snapshot *snapshot,
                                                   const plumb_session *session, plumb_error *err);
/* Replaces what the session holds; what follows has the bits of a fresh session that evaluated the same
 * tokens.  After any failure the session is as before.  Its last logits are of what it held before. */
PLUMB_MUST_CHECK plumb_status plumb_session_restore(plumb_session *session,
                                                    const plumb_snapshot *snapshot, plumb_error *err);

/* ---- Session store ------------------------------------------------------------------ */

/* A folder of snapshots in which the longest beginning of a prompt is found again, by this process or a
 * later one, within budgets of space and of bytes written (docs/sessions.md).  Several processes may use
 * one folder.  One call at a time.  A call that waits for another process is ended by a signal that has a
 * handler without SA_RESTART: PLUMB_ERROR_CANCELLED. */
typedef struct plumb_store plumb_store;

typedef struct plumb_store_options {
    int64_t size_bytes;  /* of all entries; 0: 20 GB */
    int64_t daily_bytes; /* written in a day, by UTC; 0: 50 GB */
    int64_t least_tokens; /* fewer new ones are not worth a write, nor a read; 32 (0) or more */
    double free_share;   /* of the file system that stays free; 0: 0.05 */
    int64_t (*now)(void *user); /* seconds since 1970, UTC; NULL: the system's clock */
    void *now_user;
    plumb_log_fn log; /* of entries that cannot be used; NULL: silent */
    void *log_user;
} plumb_store_options;

/* Makes the folder if it is not there, inside one that is.  The model must outlive the store. */
PLUMB_MUST_CHECK plumb_status plumb_store_open(const char *folder, plumb_model *model,
                                               const plumb_store_options *options /* may be NULL */,
                                               plumb_store **store, plumb_error *err);
void plumb_store_close(plumb_store *store); /* NULL is fine */

/* Restores into the session, which is of the store's model, the entry that has most of the prompt's
 * beginning, if it has least_tokens more of it than the session.  *shared (may be NULL): how many tokens
 * of the prompt the entry begins with; 0: the session was left as it is, which is no error.  The entry
 * may be longer or end differently: plumb_session_sync takes what is of use. */
PLUMB_MUST_CHECK plumb_status plumb_store_restore(plumb_store *store, plumb_session *session,
                                                  const int32_t *tokens, int64_t n_tokens,
                                                  int64_t *shared, plumb_error *err);

typedef enum plumb_store_decision {
    PLUMB_STORE_WRITTEN,
    PLUMB_STORE_FEW_TOKENS,   /* nearly all of it is stored already, or it is short */
    PLUMB_STORE_TOO_LARGE,    /* larger than the whole store may be */
    PLUMB_STORE_DAILY_BUDGET, /* it would be passed today */
    PLUMB_STORE_DISK_FULL     /* the file system has no more than the share that stays free */
} plumb_store_decision;
const char *plumb_store_decision_text(plumb_store_decision decision); /* a phrase */

/* Writes what the session holds, with resume points, unless the policy declines, which is no error.
 * What was superseded goes once the new entry has its name; entries of little value make room. */
PLUMB_MUST_CHECK plumb_status plumb_store_save(plumb_store *store, const plumb_session *session,
                                               plumb_store_decision *decision /* may be NULL */,
                                               plumb_error *err);

typedef struct plumb_store_stats {
    int64_t entries, bytes;              /* in the folder now, whatever model they are of */
    int64_t usable;                      /* of them by this model */
    int64_t written_today, written_ever; /* bytes, by all processes */
} plumb_store_stats;
PLUMB_MUST_CHECK plumb_status plumb_store_get_stats(plumb_store *store, plumb_store_stats *stats,
                                                    plumb_error *err);

/* ---- Text --------------------------------------------------------------------------- */

typedef struct plumb_text plumb_text;

/* A growing list of ids.  Start from {0}; free with plumb_tokens_free. */
typedef struct plumb_tokens {
    int32_t *ids;
    int64_t count, capacity;
} plumb_tokens;
void plumb_tokens_free(plumb_tokens *tokens);

/* Opens tokenizer.json of a model: a folder, a converted file, or the file itself. */
PLUMB_MUST_CHECK plumb_status plumb_text_open(const char *path, plumb_text **text, plumb_error *err);
void plumb_text_close(plumb_text *text);
int64_t plumb_text_vocab_size(const plumb_text *text);

/* Appends the ids of `bytes` (must be UTF-8).  match_added: also cut out added tokens (template
 * text); false for people's text, whose "<think>" is ordinary characters. */
PLUMB_MUST_CHECK plumb_status plumb_text_encode(const plumb_text *text, const char *bytes,
                                                size_t size, bool match_added,
                                                plumb_tokens *tokens, plumb_error *err);
/* Raw bytes of one token, not NUL-terminated, owned by text; NULL for an unknown id. */
const char *plumb_text_token_bytes(const plumb_text *text, int32_t id, size_t *size);
int32_t plumb_text_token_id(const plumb_text *text, const char *content); /* added token, or -1 */
bool plumb_text_is_control(const plumb_text *text, int32_t id); /* never shown to people */
/* True for ids that end a turn: EOS, and the openers of a next turn. */
bool plumb_text_is_stop(const plumb_text *text, int32_t id);

/* Streaming detokenisation: never splits a UTF-8 sequence. */
typedef struct plumb_detokenizer {
    const plumb_text *text;
    unsigned char tail[4];
    int tail_size;
} plumb_detokenizer;
void plumb_detokenizer_init(plumb_detokenizer *d, const plumb_text *text);
/* Writes what is complete, at most `size` bytes; returns the bytes written.  `size` must be at
 * least 3 * the token's bytes + 3 (each broken byte may become U+FFFD, three bytes for one); what
 * does not fit is lost.  Over a whole stream the output does not depend on where tokens were cut. */
size_t plumb_detokenizer_push(plumb_detokenizer *d, int32_t id, char *out, size_t size);
/* The end of the stream: a character that never completed becomes U+FFFD (size >= 3). */
size_t plumb_detokenizer_finish(plumb_detokenizer *d, char *out, size_t size);

/* ---- Chat --------------------------------------------------------------------------- */

/* The tokens of answers with tool calls, as they were sampled.  A client sends such an answer back as
 * JSON, with its keys in another order, other white space, or without the reasoning; rendered anew it
 * would differ from what the session holds, and all that follows would have to be evaluated again.
 * Whoever names a turn by its ids and calls gets its reasoning into the prompt: people who must not read
 * each other's need memories of their own, or ids that cannot be guessed. */
typedef struct plumb_call_memory plumb_call_memory;

/* Tokens must be below vocab_size.  Keeps at most `most_bytes` (0: 64 MiB); the oldest turns give way. */
PLUMB_MUST_CHECK plumb_status plumb_call_memory_create(int64_t vocab_size, int64_t most_bytes,
                                                       plumb_call_memory **memory, plumb_error *err);
void plumb_call_memory_destroy(plumb_call_memory *memory);
/* Remembers one turn.  `message` is the answer as the client was given it: a message object of role
 * "assistant" in JSON, each of its tool_calls with an id.  `tokens` are what was sampled after the
 * header, without the one that ended the turn; `thinking`: that header opened <think>.
 * Not to be called while another thread uses the memory; encoding only reads it. */
PLUMB_MUST_CHECK plumb_status plumb_call_memory_add(plumb_call_memory *memory, const char *message,
                                                    bool thinking, const int32_t *tokens,
                                                    int64_t n_tokens, plumb_error *err);
int64_t plumb_call_memory_turns(const plumb_call_memory *memory);
/* All of it as JSON text, which a later process can read; free() it. */
PLUMB_MUST_CHECK plumb_status plumb_call_memory_write(const plumb_call_memory *memory, char **text,
                                                      size_t *size, plumb_error *err);
/* Adds what was written.  Text that is damaged is refused as a whole. */
PLUMB_MUST_CHECK plumb_status plumb_call_memory_read(plumb_call_memory *memory, const char *text,
                                                     size_t size, plumb_error *err);

typedef struct plumb_chat_options {
    bool thinking;           /* false: chat mode */
    int effort;              /* 1..100; 0: default 75.  Thinking mode only. */
    bool keep_reasoning;     /* false: earlier reasoning is dropped (unless tools are present) */
    bool match_added_tokens; /* compatibility: also match control tokens inside people's text */
    /* A turn of it whose ids, functions, arguments (as JSON values) and content a message has, in the
     * same order, and whose reasoning it has or leaves out, stands in the prompt as it was sampled;
     * only where reasoning is kept as it was then.  May be NULL. */
    const plumb_call_memory *calls;
} plumb_chat_options;

/* Encodes a conversation: `messages` is a JSON array of the published message objects (role,
 * content, tool_calls, reasoning_content, tools, response_format, task, wo_eos). */
PLUMB_MUST_CHECK plumb_status plumb_chat_encode(const plumb_text *text, const char *messages,
                                                const plumb_chat_options *options,
                                                plumb_tokens *tokens, plumb_error *err);

typedef enum plumb_chat_event_kind {
    PLUMB_CHAT_REASONING,      /* bytes: more reasoning */
    PLUMB_CHAT_CONTENT,        /* bytes: more visible text */
    PLUMB_CHAT_CALL_BEGIN,     /* bytes: function name */
    PLUMB_CHAT_CALL_ARGUMENTS, /* bytes: next piece of the call's JSON arguments object */
    PLUMB_CHAT_CALL_END,       /* a complete call: its argument pieces form one JSON object */
    PLUMB_CHAT_CALL_DROPPED    /* the call that was open did not finish: discard it */
} plumb_chat_event_kind;

typedef struct plumb_chat_event {
    plumb_chat_event_kind kind;
    int call;          /* index of the call, from 0 */
    const char *bytes; /* valid during the callback, not NUL-terminated */
    size_t size;
} plumb_chat_event;
typedef void (*plumb_chat_sink)(void *user, const plumb_chat_event *event);

/* What the strict grammar would have refused (bits). */
enum {
    PLUMB_CHAT_FLAG_CALL_IN_REASONING = 1,
    PLUMB_CHAT_FLAG_TEXT_AFTER_CALLS = 2,
    PLUMB_CHAT_FLAG_INVALID_JSON = 4,
    PLUMB_CHAT_FLAG_DUPLICATE_KEY = 8,
    PLUMB_CHAT_FLAG_INCOMPLETE_CALL = 16,
    PLUMB_CHAT_FLAG_TOLERATED = 32,       /* damaged markup that was recovered */
    PLUMB_CHAT_FLAG_NO_END = 64,          /* ended without EOS */
    PLUMB_CHAT_FLAG_NO_MEMORY = 128       /* memory was short: what was told of calls is not what was said */
};

/* Incremental parser of an answer: text, thinking and tool-call blocks. */
typedef struct plumb_chat_parser plumb_chat_parser;
PLUMB_MUST_CHECK plumb_status plumb_chat_parser_create(const plumb_text *text, bool in_reasoning,
                                                       bool tools_offered, plumb_chat_sink sink,
                                                       void *user, plumb_chat_parser **parser,
                                                       plumb_error *err);
void plumb_chat_parser_destroy(plumb_chat_parser *parser);
/* Returns false once the answer has ended (EOS or another stop id). */
bool plumb_chat_parser_push(plumb_chat_parser *parser, int32_t token);
void plumb_chat_parser_finish(plumb_chat_parser *parser);
unsigned plumb_chat_parser_flags(const plumb_chat_parser *parser);
/* Bytes of text that are held back, since with what follows they may be markup: the newest ones pushed.
 * Control tokens count as what they spell, half a character not at all. */
size_t plumb_chat_parser_held(const plumb_chat_parser *parser);

#ifdef __cplusplus
}
#endif
#endif
