/* See call_memory.h and plumb.h.
 *
 * A turn's key is its message in a normal form, JSON text: content as one string, calls with ids,
 * names and parsed arguments, keys of objects sorted, numbers and white space as the encoder prints
 * them.  Messages that a client may send back for the same turn have the same key, so finding one
 * is a look into a hash table.  Reasoning is no part of it: clients may leave it out.
 *
 * Turns form a queue, oldest first, which is also the order in which they give way; the chains of
 * the table have the newest first.  Written, a turn is {"message": its key, "reasoning",
 * "thinking", "tokens"}: a key is a message, so reading takes the way of adding. */
#include "text/call_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/error.h"

#define DEFAULT_BYTES ((int64_t)64 << 20)

enum { FIRST_BUCKETS = 64 };

typedef struct turn {
    struct turn *newer; /* in the queue */
    struct turn *chain; /* older, in the same bucket */
    uint64_t hash;
    plumb__buffer key, reasoning;
    int32_t *tokens; /* (n_tokens) */
    int64_t n_tokens;
    bool thinking;
} turn;

struct plumb_call_memory {
    int64_t vocab_size, most_bytes;
    turn *oldest, *newest;
    int64_t n_turns, bytes;
    turn **bucket; /* (n_buckets), a power of two */
    int64_t n_buckets;
};

static int64_t bytes_of(const turn *t) {
    return (int64_t)sizeof *t + t->key.capacity + t->reasoning.capacity +
           t->n_tokens * (int64_t)sizeof *t->tokens;
}

static void turn_free(turn *t) {
    if (!t) return;
    plumb__buffer_free(&t->key);
    plumb__buffer_free(&t->reasoning);
    free(t->tokens);
    free(t);
}

/* ---- Keys ------------------------------------------------------------------------------------ */

static void escaped(plumb__buffer *key, const plumb__python_value *string) {
    if (string) plumb__python_json_escape(string->bytes, string->size, key);
}

/* The content as it is rendered: blocks of a list are joined by an empty line. */
static void add_content(plumb__buffer *key, const plumb__python_value *content) {
    plumb__buffer_text(key, "\"");
    if (!content || content->kind == PLUMB__PYTHON_STR) {
        escaped(key, content);
    } else {
        for (const plumb__python_value *block = content->child; block; block = block->next) {
            if (block != content->child) plumb__buffer_text(key, "\\n\\n");
            escaped(key, plumb__python_member(block, "text"));
        }
    }
    plumb__buffer_text(key, "\"");
}

/* A string that holds the object's JSON, so that a key is never nested deeper than what was parsed. */
static void add_arguments(plumb__buffer *key, const plumb__python_value *given) {
    plumb__python_json parsed[2];
    plumb__buffer text = {0};
    const plumb__python_value *object = plumb__chat_arguments(given, parsed, &key->failed);
    if (!object) plumb__buffer_text(&text, "{\"arguments\": ");
    plumb__python_json_print_sorted(object ? object : given, &text);
    if (!object) plumb__buffer_text(&text, "}");
    plumb__buffer_text(key, "\"");
    plumb__python_json_escape(text.bytes, (size_t)text.size, key);
    plumb__buffer_text(key, "\"");
    key->failed |= text.failed;
    plumb__buffer_free(&text);
    plumb__python_json_free(&parsed[0]);
    plumb__python_json_free(&parsed[1]);
}

/* False: a call has no id, so that nobody can know which turn this is. */
static bool make_key(const plumb__chat_message *message, plumb__buffer *key) {
    plumb__buffer_text(key, "{\"role\": \"assistant\", \"content\": ");
    add_content(key, message->content);
    plumb__buffer_text(key, ", \"tool_calls\": [");
    for (const plumb__python_value *call = message->calls->child; call; call = call->next) {
        const plumb__python_value *id = plumb__python_member(call, "id");
        const plumb__python_value *function = plumb__python_member(call, "function");
        if (!id || id->kind != PLUMB__PYTHON_STR || id->size == 0) return false;
        plumb__buffer_text(key, call == message->calls->child ? "{\"id\": \"" : ", {\"id\": \"");
        escaped(key, id);
        plumb__buffer_text(key, "\", \"function\": {\"name\": \"");
        escaped(key, plumb__python_member(function, "name"));
        plumb__buffer_text(key, "\", \"arguments\": ");
        add_arguments(key, plumb__python_member(function, "arguments"));
        plumb__buffer_text(key, "}}");
    }
    plumb__buffer_text(key, "]}");
    return true;
}

/* ---- The table ------------------------------------------------------------------------------- */

static turn **bucket_of(const plumb_call_memory *memory, uint64_t hash) {
    return &memory->bucket[hash & (uint64_t)(memory->n_buckets - 1)];
}

static void put_into_bucket(plumb_call_memory *memory, turn *t) {
    turn **bucket = bucket_of(memory, t->hash);
    t->chain = *bucket;
    *bucket = t;
}

/* Chains stay short; without memory for more buckets they grow a little instead. */
static void grow_table(plumb_call_memory *memory) {
    turn **grown = calloc((size_t)memory->n_buckets * 2, sizeof *grown);
    if (!grown) return;
    free(memory->bucket);
    memory->bucket = grown;
    memory->n_buckets *= 2;
    for (turn *t = memory->oldest; t; t = t->newer) put_into_bucket(memory, t);
}

static void drop_oldest(plumb_call_memory *memory) {
    turn *gone = memory->oldest;
    turn **link = bucket_of(memory, gone->hash);
    while (*link != gone) link = &(*link)->chain;
    *link = gone->chain;
    memory->oldest = gone->newer;
    if (!memory->oldest) memory->newest = NULL;
    memory->n_turns--;
    memory->bytes -= bytes_of(gone);
    turn_free(gone);
}

/* Takes the turn.  One that is larger than the whole memory drops everything, itself at last. */
static void insert(plumb_call_memory *memory, turn *t) {
    if (memory->n_turns == memory->n_buckets) grow_table(memory);
    t->newer = NULL;
    if (memory->newest)
        memory->newest->newer = t;
    else
        memory->oldest = t;
    memory->newest = t;
    put_into_bucket(memory, t);
    memory->n_turns++;
    memory->bytes += bytes_of(t);
    while (memory->bytes > memory->most_bytes) drop_oldest(memory);
}

static bool reasoning_fits(const turn *t, const plumb__python_value *given) {
    if (!given || given->size == 0) return true;
    return (int64_t)given->size == t->reasoning.size &&
           memcmp(given->bytes, t->reasoning.bytes, given->size) == 0;
}

plumb__remembered_turn plumb__call_memory_find(const plumb_call_memory *memory,
                                               const plumb__chat_message *message, bool thinking) {
    plumb__remembered_turn found = {0};
    plumb__buffer key = {0};
    bool named = make_key(message, &key);
    found.no_memory = key.failed;
    if (named && !key.failed) {
        uint64_t hash = XXH3_64bits(key.bytes, (size_t)key.size);
        const turn *t = *bucket_of(memory, hash);
        while (t && (t->hash != hash || t->thinking != thinking || t->key.size != key.size ||
                     memcmp(t->key.bytes, key.bytes, (size_t)key.size) != 0 ||
                     !reasoning_fits(t, message->reasoning)))
            t = t->chain;
        if (t) found = (plumb__remembered_turn){.tokens = t->tokens, .n_tokens = t->n_tokens};
    }
    plumb__buffer_free(&key);
    return found;
}

/* ---- Adding ---------------------------------------------------------------------------------- */

plumb_status plumb_call_memory_create(int64_t vocab_size, int64_t most_bytes,
                                      plumb_call_memory **memory, plumb_error *err) {
    if (vocab_size < 1 || most_bytes < 0)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "plumb_call_memory_create", -1,
                           plumb__format("a vocabulary of %lld, %lld bytes", (long long)vocab_size,
                                         (long long)most_bytes)
                               .s,
                           "a vocabulary, and no less than 0 bytes");
    plumb_call_memory *made = calloc(1, sizeof *made);
    turn **bucket = calloc(FIRST_BUCKETS, sizeof *bucket);
    if (!made || !bucket) {
        free(made);
        free(bucket);
        return plumb__fail_memory(err, "call memory", sizeof *made);
    }
    *made = (plumb_call_memory){.vocab_size = vocab_size,
                                .most_bytes = most_bytes ? most_bytes : DEFAULT_BYTES,
                                .bucket = bucket,
                                .n_buckets = FIRST_BUCKETS};
    *memory = made;
    return PLUMB_OK;
}

void plumb_call_memory_destroy(plumb_call_memory *memory) {
    if (!memory) return;
    while (memory->oldest) drop_oldest(memory);
    free(memory->bucket);
    free(memory);
}

int64_t plumb_call_memory_turns(const plumb_call_memory *memory) {
    return memory->n_turns;
}

static plumb_status check_tokens(const plumb_call_memory *memory, const int32_t *tokens, int64_t n,
                                 plumb_error *err) {
    if (n < 1)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "tokens", -1, "none",
                           "those of the turn");
    for (int64_t i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= memory->vocab_size)
            return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "token", i,
                               plumb__format("%d", (int)tokens[i]).s, "0 to %lld",
                               (long long)memory->vocab_size - 1);
    return PLUMB_OK;
}

/* Fills the turn from the one message of a conversation, and `reasoning`, or else the message's. */
static plumb_status fill(turn *t, const plumb__chat_conversation *conversation,
                         const plumb__python_value *reasoning, plumb_error *err) {
    const plumb__chat_message *message = &conversation->messages[0];
    if (conversation->n_messages != 1 || message->role != PLUMB__ROLE_ASSISTANT || !message->calls)
        return plumb__fail(err, PLUMB_ERROR_TEXT, NULL, "message", -1, "another one",
                           "one message of the assistant with tool_calls");
    if (!make_key(message, &t->key))
        return plumb__fail(err, PLUMB_ERROR_TEXT, NULL, "message.tool_calls", -1,
                           "a call without id", "an id, a string, in each call");
    if (!reasoning) reasoning = message->reasoning;
    if (reasoning) plumb__buffer_append(&t->reasoning, reasoning->bytes, reasoning->size);
    if (t->key.failed || t->reasoning.failed)
        return plumb__fail_memory(err, "message", (size_t)t->key.size);
    t->hash = XXH3_64bits(t->key.bytes, (size_t)t->key.size);
    return PLUMB_OK;
}

/* A turn that holds `tokens`, which become its own also on failure, and the message of `text`. */
static plumb_status make_turn(const plumb__buffer *text, bool thinking,
                              const plumb__python_value *reasoning, int32_t *tokens,
                              int64_t n_tokens, turn **made, plumb_error *err) {
    plumb__chat_conversation conversation = {0};
    turn *t = calloc(1, sizeof *t);
    if (!t || text->failed) {
        free(tokens);
        free(t);
        return plumb__fail_memory(err, "call memory", sizeof *t);
    }
    *t = (turn){.tokens = tokens, .n_tokens = n_tokens, .thinking = thinking};
    plumb_status status =
        plumb__chat_conversation_read(text->bytes, (size_t)text->size, &conversation, err);
    if (status == PLUMB_OK) status = fill(t, &conversation, reasoning, err);
    plumb__chat_conversation_free(&conversation);
    if (status == PLUMB_OK)
        *made = t;
    else
        turn_free(t);
    return status;
}

plumb_status plumb_call_memory_add(plumb_call_memory *memory, const char *message, bool thinking,
                                   const int32_t *tokens, int64_t n_tokens, plumb_error *err) {
    if (!memory || !message || !tokens)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "plumb_call_memory_add", -1, "NULL",
                           "memory, message and tokens");
    plumb_status status = check_tokens(memory, tokens, n_tokens, err);
    if (status != PLUMB_OK) return status;
    int32_t *copy = malloc((size_t)n_tokens * sizeof *copy);
    if (!copy) return plumb__fail_memory(err, "tokens", (size_t)n_tokens * sizeof *copy);
    memcpy(copy, tokens, (size_t)n_tokens * sizeof *copy);
    plumb__buffer list = {0};
    turn *made = NULL;
    plumb__buffer_text(&list, "[");
    plumb__buffer_text(&list, message);
    plumb__buffer_text(&list, "]");
    status = make_turn(&list, thinking, NULL, copy, n_tokens, &made, err);
    plumb__buffer_free(&list);
    if (status == PLUMB_OK) insert(memory, made);
    return status;
}

/* ---- Written and read ------------------------------------------------------------------------ */

static void write_turn(const turn *t, plumb__buffer *out) {
    char number[16];
    plumb__buffer_text(out, "{\"message\": ");
    plumb__buffer_append(out, t->key.bytes, (size_t)t->key.size);
    plumb__buffer_text(out, ", \"reasoning\": \"");
    plumb__python_json_escape(t->reasoning.bytes, (size_t)t->reasoning.size, out);
    plumb__buffer_text(out, t->thinking ? "\", \"thinking\": true, \"tokens\": ["
                                        : "\", \"thinking\": false, \"tokens\": [");
    for (int64_t i = 0; i < t->n_tokens; i++) {
        (void)snprintf(number, sizeof number, i > 0 ? ",%d" : "%d", (int)t->tokens[i]);
        plumb__buffer_text(out, number);
    }
    plumb__buffer_text(out, "]}");
}

plumb_status plumb_call_memory_write(const plumb_call_memory *memory, char **text, size_t *size,
                                     plumb_error *err) {
    plumb__buffer out = {0};
    plumb__buffer_text(&out, "[");
    for (const turn *t = memory->oldest; t; t = t->newer) {
        if (t != memory->oldest) plumb__buffer_text(&out, ",\n");
        write_turn(t, &out);
    }
    plumb__buffer_text(&out, "]\n");
    if (out.failed) {
        plumb_status status = plumb__fail_memory(err, "call memory", (size_t)out.size);
        plumb__buffer_free(&out);
        return status;
    }
    *text = out.bytes;
    *size = (size_t)out.size;
    return PLUMB_OK;
}

static plumb_status refuse(plumb_error *err, int64_t i, const char *member, const char *expected) {
    return plumb__fail(err, PLUMB_ERROR_TEXT, NULL, plumb__format("calls.%s", member).s, i,
                       "something else", "%s", expected);
}

/* The number of an INT node as a token; anything that is none is out of range. */
static int32_t token_of(const plumb__python_value *number) {
    int64_t value = 0;
    if (number->kind != PLUMB__PYTHON_INT || number->size > 10) return -1;
    for (size_t i = 0; i < number->size; i++) {
        if (number->bytes[i] < '0' || number->bytes[i] > '9') return -1;
        value = value * 10 + (number->bytes[i] - '0');
    }
    return value > INT32_MAX ? -1 : (int32_t)value;
}

static plumb_status read_tokens(const plumb_call_memory *memory, const plumb__python_value *list,
                                int32_t **tokens, plumb_error *err) {
    size_t bytes = (size_t)list->count * sizeof **tokens;
    int64_t n = 0;
    *tokens = malloc(bytes);
    if (!*tokens) return plumb__fail_memory(err, "tokens", bytes);
    for (const plumb__python_value *id = list->child; id; id = id->next)
        (*tokens)[n++] = token_of(id);
    plumb_status status = check_tokens(memory, *tokens, n, err);
    if (status != PLUMB_OK) free(*tokens);
    return status;
}

/* The i-th turn of the text. */
static plumb_status read_turn(plumb_call_memory *memory, const plumb__python_value *node, int64_t i,
                              plumb_error *err) {
    const plumb__python_value *message = plumb__python_member(node, "message");
    const plumb__python_value *reasoning = plumb__python_member(node, "reasoning");
    const plumb__python_value *thinking = plumb__python_member(node, "thinking");
    const plumb__python_value *list = plumb__python_member(node, "tokens");
    if (!message || message->kind != PLUMB__PYTHON_DICT)
        return refuse(err, i, "message", "an object");
    if (!reasoning || reasoning->kind != PLUMB__PYTHON_STR)
        return refuse(err, i, "reasoning", "a string");
    if (!thinking ||
        (thinking->kind != PLUMB__PYTHON_TRUE && thinking->kind != PLUMB__PYTHON_FALSE))
        return refuse(err, i, "thinking", "true or false");
    if (!list || list->kind != PLUMB__PYTHON_LIST || list->count == 0)
        return refuse(err, i, "tokens", "an array of ids");
    int32_t *tokens = NULL;
    plumb_status status = read_tokens(memory, list, &tokens, err);
    if (status != PLUMB_OK) return status;

    plumb__buffer text = {0};
    turn *made = NULL;
    plumb__buffer_text(&text, "[");
    plumb__python_json_print(message, &text);
    plumb__buffer_text(&text, "]");
    bool thought = thinking->kind == PLUMB__PYTHON_TRUE;
    status = make_turn(&text, thought, reasoning, tokens, list->count, &made, err);
    plumb__buffer_free(&text);
    if (status == PLUMB_OK) insert(memory, made);
    return status;
}

plumb_status plumb_call_memory_read(plumb_call_memory *memory, const char *text, size_t size,
                                    plumb_error *err) {
    plumb__python_json json = {0};
    plumb_call_memory *read = NULL;
    plumb_status status = plumb__python_json_read(text, size, false, "calls", &json, err);
    if (status == PLUMB_OK && json.root->kind != PLUMB__PYTHON_LIST)
        status = plumb__fail(err, PLUMB_ERROR_TEXT, NULL, "calls", -1,
                             plumb__python_kind_name(json.root->kind), "an array of turns");
    if (status == PLUMB_OK)
        status = plumb_call_memory_create(memory->vocab_size, memory->most_bytes, &read, err);
    int64_t i = 0;
    if (status == PLUMB_OK)
        for (const plumb__python_value *node = json.root->child; node && status == PLUMB_OK;
             node = node->next)
            status = read_turn(read, node, i++, err);
    if (status == PLUMB_OK) {
        /* Moved, oldest first; what is left of `read` is its empty table. */
        for (turn *t = read->oldest, *next; t; t = next) {
            next = t->newer;
            insert(memory, t);
        }
        read->oldest = read->newest = NULL;
    }
    plumb_call_memory_destroy(read);
    plumb__python_json_free(&json);
    return status;
}
