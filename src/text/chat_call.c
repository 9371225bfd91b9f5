/* See chat_call.h. */
#include "text/chat_call.h"

#include <string.h>

#include <xxhash.h>

#include "text/python_json.h"

void plumb__call_init(plumb__chat_call *call, plumb__chat_events *events, unsigned *flags) {
    memset(call, 0, sizeof *call);
    call->events = events;
    call->flags = flags;
}

void plumb__call_free(plumb__chat_call *call) {
    plumb__buffer_free(&call->collected);
    plumb__buffer_free(&call->key_bytes);
}

static void emit(plumb__chat_call *call, const char *bytes, size_t size) {
    if (!call->muted)
        plumb__chat_emit(call->events, PLUMB_CHAT_CALL_ARGUMENTS, call->next - 1, bytes, size);
}

static void emit_text(plumb__chat_call *call, const char *text) {
    emit(call, text, strlen(text));
}

/* The inside of a string literal.  Bytes between escapes go out in one piece. */
static void emit_escaped(plumb__chat_call *call, const char *bytes, size_t size) {
    size_t plain = 0;
    if (size == 0) return; /* `bytes` may be NULL */
    for (size_t i = 0; i < size; i++) {
        char escaped[6];
        size_t length = plumb__python_json_escape_byte(bytes[i], escaped);
        if (length == 1) continue;
        emit(call, bytes + plain, i - plain);
        emit(call, escaped, length);
        plain = i + 1;
    }
    emit(call, bytes + plain, size - plain);
}

void plumb__call_begin(plumb__chat_call *call, const char *name, size_t size, bool muted) {
    call->open = true;
    call->muted = muted || size == 0;
    call->broken = call->bare = false;
    call->value = PLUMB__CALL_NO_VALUE;
    call->n_parameters = 0;
    call->key_bytes.size = call->collected.size = 0;
    call->key_bytes.failed = call->collected.failed = false;
    if (call->muted) return;
    plumb__chat_emit_mark(call->events, PLUMB_CHAT_CALL_BEGIN, call->next, name, size);
    call->next++;
}

/* Remembers the key; false if it is there already, or if the call has too many. */
static bool add_key(plumb__chat_call *call, const char *key, size_t size) {
    uint64_t hash = XXH3_64bits(key, size);
    for (int i = 0; i < call->n_parameters; i++) {
        const plumb__call_key *known = &call->keys[i];
        if (known->hash != hash || known->size != size) continue;
        if (size && memcmp(call->key_bytes.bytes + known->at, key, size) != 0) continue;
        *call->flags |= PLUMB_CHAT_FLAG_DUPLICATE_KEY;
        return false;
    }
    int64_t at = call->key_bytes.size;
    if (call->n_parameters == PLUMB__CALL_PARAMETERS_MAX)
        call->broken = true;
    else
        plumb__buffer_append(&call->key_bytes, key, size);
    if (call->key_bytes.failed) *call->flags |= PLUMB_CHAT_FLAG_NO_MEMORY;
    call->broken |= call->key_bytes.failed;
    if (call->broken) return false;
    call->keys[call->n_parameters++] = (plumb__call_key){hash, at, size};
    return true;
}

void plumb__call_parameter(plumb__chat_call *call, const char *key, size_t size, bool is_string) {
    if (call->bare || !add_key(call, key, size)) {
        call->broken |= call->bare;
        call->value = PLUMB__CALL_SKIPPED;
        return;
    }
    emit_text(call, call->n_parameters == 1 ? "{\"" : ", \"");
    emit_escaped(call, key, size);
    emit_text(call, is_string ? "\": \"" : "\": ");
    call->value = is_string ? PLUMB__CALL_STRING : PLUMB__CALL_JSON;
    call->collected.size = 0;
    call->collected.failed = false;
}

/* What was collected turns out to be no JSON: it goes on as a string. */
static void become_string(plumb__chat_call *call) {
    *call->flags |= PLUMB_CHAT_FLAG_INVALID_JSON;
    emit_text(call, "\"");
    emit_escaped(call, call->collected.bytes, (size_t)call->collected.size);
    call->value = PLUMB__CALL_STRING;
}

static bool collect(plumb__chat_call *call, const char *bytes, size_t size) {
    if (size > (size_t)(PLUMB__CALL_JSON_BYTES_MAX - call->collected.size)) return false;
    plumb__buffer_append(&call->collected, bytes, size);
    if (call->collected.failed) *call->flags |= PLUMB_CHAT_FLAG_NO_MEMORY;
    return !call->collected.failed;
}

void plumb__call_value_bytes(plumb__chat_call *call, const char *bytes, size_t size) {
    if (call->value == PLUMB__CALL_JSON && !collect(call, bytes, size)) become_string(call);
    if (call->value == PLUMB__CALL_STRING) emit_escaped(call, bytes, size);
}

/* Whether the collected text is JSON, and of the wanted kind (-1: any). */
static bool collected_is(plumb__chat_call *call, int kind) {
    plumb__python_json json;
    plumb_status status = plumb__python_json_read(
        call->collected.bytes, (size_t)call->collected.size, true, "value", &json, NULL);
    if (status == PLUMB_ERROR_MEMORY) *call->flags |= PLUMB_CHAT_FLAG_NO_MEMORY;
    if (status != PLUMB_OK) return false;
    bool fits = kind < 0 || json.root->kind == (plumb__python_kind)kind;
    if (fits && json.has_duplicates) *call->flags |= PLUMB_CHAT_FLAG_DUPLICATE_KEY;
    plumb__python_json_free(&json);
    return fits;
}

void plumb__call_value_end(plumb__chat_call *call) {
    if (call->value == PLUMB__CALL_JSON) {
        if (collected_is(call, -1))
            emit(call, call->collected.bytes, (size_t)call->collected.size);
        else
            become_string(call);
    }
    if (call->value == PLUMB__CALL_STRING) emit_text(call, "\"");
    call->value = PLUMB__CALL_NO_VALUE;
}

void plumb__call_body_bytes(plumb__chat_call *call, const char *bytes, size_t size) {
    call->bare = true;
    if (!call->broken && !collect(call, bytes, size)) call->broken = true;
}

bool plumb__call_body_is_object(plumb__chat_call *call) {
    return call->bare && !call->broken && collected_is(call, PLUMB__PYTHON_DICT);
}

/* The arguments of a bare body: the object itself or, as the encoder does it, one parameter that
 * holds what was no object. */
static void emit_body(plumb__chat_call *call) {
    if (plumb__call_body_is_object(call)) {
        int64_t size = call->collected.size;
        while (call->collected.bytes[size - 1] != '}') size--; /* white space */
        emit(call, call->collected.bytes, (size_t)size);
        return;
    }
    emit_text(call, "{\"arguments\": ");
    become_string(call);
    emit_text(call, "\"}");
}

void plumb__call_end(plumb__chat_call *call) {
    if (call->broken) {
        plumb__call_drop(call);
        return;
    }
    if (call->bare)
        emit_body(call);
    else
        emit_text(call, call->n_parameters ? "}" : "{}");
    if (!call->muted)
        plumb__chat_emit_mark(call->events, PLUMB_CHAT_CALL_END, call->next - 1, "", 0);
    call->open = false;
}

void plumb__call_drop(plumb__chat_call *call) {
    *call->flags |= PLUMB_CHAT_FLAG_INCOMPLETE_CALL;
    if (!call->muted)
        plumb__chat_emit_mark(call->events, PLUMB_CHAT_CALL_DROPPED, call->next - 1, "", 0);
    call->open = false;
}
