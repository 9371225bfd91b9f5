/* See responses_memory.h.  A few thousand turns at most: a list in order of use is searched quickly enough. */
#include "server/responses_memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define PREFIX "resp_"
enum { MARK_DIGITS = 8 };

struct plumb_turn {
    char id[PLUMB_RESPONSE_ID_SIZE];
    plumb_turn *before;        /* retained */
    int references;            /* 1 of them the memory's while it is in the list */
    char *messages, *output;   /* JSON arrays: as text they take the least room, and their size is known */
    int64_t bytes;
    plumb_turn *newer, *older; /* by last use */
};

struct plumb_responses_memory {
    plumb_turn *newest, *oldest;
    int64_t turns, bytes, most_turns, most_bytes;
    char key[PLUMB_RESPONSE_ID_SIZE]; /* of the marks; empty until the first id is made */
};

plumb_status plumb__responses_memory_create(int64_t most_turns, int64_t most_bytes,
                                            plumb_responses_memory **memory, plumb_error *err) {
    plumb_responses_memory *m = calloc(1, sizeof *m);
    if (!m) return plumb__fail_memory(err, "responses", sizeof *m);
    m->most_turns = most_turns;
    m->most_bytes = most_bytes;
    *memory = m;
    return PLUMB_OK;
}

/* ---- Marks: FNV-1a of key and id.  Nobody gains by forging one, so it need not be stronger. ---- */

static uint64_t fnv1a(uint64_t hash, const char *text, size_t size) {
    for (size_t i = 0; i < size; i++) hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static void write_mark(const plumb_responses_memory *m, const char *id, size_t size, char mark[MARK_DIGITS + 1]) {
    uint64_t hash = fnv1a(UINT64_C(0xcbf29ce484222325), m->key, strlen(m->key));
    hash = fnv1a(hash, id, size);
    snprintf(mark, MARK_DIGITS + 1, "%08" PRIx32, (uint32_t)(hash ^ hash >> 32));
}

void plumb__responses_memory_new_id(plumb_responses_memory *m, void (*new_id)(void *, const char *, char *),
                                    void *user, char id[PLUMB_RESPONSE_ID_SIZE]) {
    if (!m->key[0]) new_id(user, "key_", m->key);
    new_id(user, PREFIX, id);
    size_t size = strlen(id);
    if (size + MARK_DIGITS < PLUMB_RESPONSE_ID_SIZE) write_mark(m, id, size, id + size);
}

bool plumb__responses_memory_made(const plumb_responses_memory *m, const char *id) {
    char mark[MARK_DIGITS + 1];
    size_t size = strlen(id);
    if (!m->key[0] || size <= MARK_DIGITS || strncmp(id, PREFIX, strlen(PREFIX)) != 0) return false;
    write_mark(m, id, size - MARK_DIGITS, mark);
    return strcmp(mark, id + size - MARK_DIGITS) == 0;
}

/* ---- The list ---- */

static void unlink_turn(plumb_responses_memory *m, plumb_turn *turn) {
    *(turn->newer ? &turn->newer->older : &m->newest) = turn->older;
    *(turn->older ? &turn->older->newer : &m->oldest) = turn->newer;
    turn->newer = turn->older = NULL;
    m->turns--;
}

static void link_newest(plumb_responses_memory *m, plumb_turn *turn) {
    turn->older = m->newest;
    *(m->newest ? &m->newest->newer : &m->oldest) = turn;
    m->newest = turn;
    m->turns++;
}

/* A loop, since conversations may be longer than the stack is deep. */
void plumb__turn_release(plumb_responses_memory *m, plumb_turn *turn) {
    while (turn && --turn->references == 0) {
        plumb_turn *before = turn->before;
        m->bytes -= turn->bytes;
        free(turn->messages);
        free(turn->output);
        free(turn);
        turn = before;
    }
}

static void forget(plumb_responses_memory *m, plumb_turn *turn) {
    unlink_turn(m, turn);
    plumb__turn_release(m, turn);
}

void plumb__responses_memory_destroy(plumb_responses_memory *m) {
    if (!m) return;
    while (m->oldest) forget(m, m->oldest);
    free(m);
}

/* NULL, or the turn of this id, as the one used last. */
static plumb_turn *use(plumb_responses_memory *m, const char *id) {
    for (plumb_turn *turn = m->newest; turn; turn = turn->older) {
        if (strcmp(turn->id, id) != 0) continue;
        unlink_turn(m, turn);
        link_newest(m, turn);
        return turn;
    }
    return NULL;
}

plumb_turn *plumb__responses_memory_find(plumb_responses_memory *m, const char *id) {
    plumb_turn *turn = use(m, id);
    if (turn) turn->references++;
    return turn;
}

bool plumb__responses_memory_keep(plumb_responses_memory *m, const char *id, plumb_turn *before,
                                  const json_t *messages, const json_t *output) {
    char *text = json_dumps(messages, JSON_COMPACT), *items = json_dumps(output, JSON_COMPACT);
    plumb_turn *turn = text && items ? calloc(1, sizeof *turn) : NULL;
    if (!turn) {
        free(text);
        free(items);
        return false;
    }
    snprintf(turn->id, sizeof turn->id, "%s", id);
    turn->before = before;
    if (before) before->references++;
    turn->references = 2; /* the list's, and one while room is made */
    turn->messages = text;
    turn->output = items;
    turn->bytes = (int64_t)(sizeof *turn + strlen(text) + strlen(items));
    m->bytes += turn->bytes;
    link_newest(m, turn);
    /* The new turn goes last, if it and what it continues are too much by themselves. */
    while (m->oldest && (m->turns > m->most_turns || m->bytes > m->most_bytes)) forget(m, m->oldest);
    bool kept = m->newest == turn;
    plumb__turn_release(m, turn);
    return kept;
}

static json_t *parse_and_append(const plumb_turn *turn, json_t *messages) {
    json_t *own = json_loads(turn->messages, JSON_ALLOW_NUL, NULL);
    bool appended = json_array_extend(messages, own) == 0;
    json_decref(own);
    if (appended) return messages;
    json_decref(messages);
    return NULL;
}

json_t *plumb__turn_messages(const plumb_turn *turn) {
    int64_t count = 0;
    for (const plumb_turn *t = turn; t; t = t->before) count++;
    const plumb_turn **turns = malloc((size_t)count * sizeof *turns);
    json_t *messages = turns ? json_array() : NULL;
    for (int64_t i = 0; turns && i < count; i++, turn = turn->before) turns[i] = turn;
    for (int64_t i = count; messages && i > 0; i--) messages = parse_and_append(turns[i - 1], messages);
    free(turns);
    return messages;
}

/* ---- Items ---- */

void plumb__responses_memory_item_id(const char *response, const char *prefix, size_t place,
                                     char id[PLUMB_RESPONSE_ID_SIZE]) {
    snprintf(id, PLUMB_RESPONSE_ID_SIZE, "%s%s_%zu", prefix, response + strlen(PREFIX), place);
}

bool plumb__responses_memory_find_items(plumb_responses_memory *m, const char *item, json_t **items, bool *made) {
    char response[PLUMB_RESPONSE_ID_SIZE] = PREFIX;
    const char *name = strchr(item, '_'), *place = strrchr(item, '_');
    size_t size = name && place > name ? (size_t)(place - name - 1) : 0;
    *items = NULL;
    *made = false;
    if (size == 0 || strlen(PREFIX) + size >= sizeof response) return true;
    memcpy(response + strlen(PREFIX), name + 1, size);
    *made = plumb__responses_memory_made(m, response);
    const plumb_turn *turn = *made ? use(m, response) : NULL;
    if (turn) *items = json_loads(turn->output, JSON_ALLOW_NUL, NULL);
    return !turn || *items;
}

int64_t plumb__responses_memory_turns(const plumb_responses_memory *m) { return m->turns; }
int64_t plumb__responses_memory_bytes(const plumb_responses_memory *m) { return m->bytes; }
