/* What is remembered of responses: bounds, order of use, turns that are shared, ids that are one's own. */
#include "server/responses_memory.h"

#include "t.h"

#include <stdlib.h>

static plumb_responses_memory *create(int64_t most_turns, int64_t most_bytes) {
    plumb_responses_memory *memory = NULL;
    plumb_error err;
    T_CHECK(plumb__responses_memory_create(most_turns, most_bytes, &memory, &err) == PLUMB_OK, "no memory");
    return memory;
}

/* Keeps one message with this text after `before`, which is released. */
static bool keep(plumb_responses_memory *memory, const char *id, plumb_turn *before, const char *text) {
    json_t *messages = json_pack("[{s:s}]", "content", text), *output = json_array();
    bool kept = plumb__responses_memory_keep(memory, id, before, messages, output);
    json_decref(messages);
    json_decref(output);
    plumb__turn_release(memory, before);
    return kept;
}

/* The texts of a conversation, joined; "-": it is not held. */
static void check(plumb_responses_memory *memory, const char *id, const char *wanted) {
    char found[200] = "-";
    plumb_turn *turn = plumb__responses_memory_find(memory, id);
    if (turn) {
        json_t *messages = plumb__turn_messages(turn), *message;
        size_t i;
        found[0] = 0;
        json_array_foreach(messages, i, message)
            strncat(found, json_string_value(json_object_get(message, "content")), 8);
        json_decref(messages);
    }
    plumb__turn_release(memory, turn);
    T_CHECK(strcmp(found, wanted) == 0, "%s is %s, not %s", id, found, wanted);
}

static void least_recently_used(void) {
    plumb_responses_memory *memory = create(3, 1 << 20);
    T_CHECK(keep(memory, "a", NULL, "A") && keep(memory, "b", NULL, "B") && keep(memory, "c", NULL, "C"), "not kept");
    check(memory, "a", "A"); /* which is a use */
    T_CHECK(keep(memory, "d", NULL, "D") && plumb__responses_memory_turns(memory) == 3, "d");
    check(memory, "b", "-");
    check(memory, "a", "A");
    check(memory, "c", "C");
    check(memory, "d", "D");
    plumb__responses_memory_destroy(memory);
}

/* A turn that was forgotten stays as long as one that continues it. */
static void shared_turns(void) {
    plumb_responses_memory *memory = create(2, 1 << 20);
    T_CHECK(keep(memory, "a", NULL, "A"), "a");
    int64_t one = plumb__responses_memory_bytes(memory);
    T_CHECK(keep(memory, "b", plumb__responses_memory_find(memory, "a"), "B"), "b");
    T_CHECK(plumb__responses_memory_bytes(memory) == 2 * one, "the first turn is held twice");
    T_CHECK(keep(memory, "c", plumb__responses_memory_find(memory, "a"), "C"), "c");
    check(memory, "b", "-");
    T_CHECK(keep(memory, "d", plumb__responses_memory_find(memory, "c"), "D"), "d");
    check(memory, "a", "-");
    check(memory, "d", "ACD");
    check(memory, "c", "AC");
    T_CHECK(plumb__responses_memory_bytes(memory) == 3 * one, "%lld", (long long)plumb__responses_memory_bytes(memory));
    T_CHECK(keep(memory, "e", NULL, "E") && keep(memory, "f", NULL, "F"), "e, f");
    T_CHECK(plumb__responses_memory_bytes(memory) == 2 * one, "a conversation that is gone is held");
    plumb__responses_memory_destroy(memory);
}

/* One that is being continued outlives its id. */
static void retained(void) {
    plumb_responses_memory *memory = create(1, 1 << 20);
    T_CHECK(keep(memory, "a", NULL, "A"), "a");
    plumb_turn *turn = plumb__responses_memory_find(memory, "a");
    T_CHECK(keep(memory, "b", NULL, "B"), "b");
    check(memory, "a", "-");
    T_CHECK(keep(memory, "c", turn, "C"), "c");
    check(memory, "c", "AC");
    plumb__responses_memory_destroy(memory);
}

static void bounded_bytes(void) {
    char large[1500];
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = 0;
    plumb_responses_memory *memory = create(100, 4000);
    T_CHECK(keep(memory, "a", NULL, "A") && keep(memory, "b", NULL, large) && keep(memory, "c", NULL, large), "kept");
    T_CHECK(keep(memory, "d", plumb__responses_memory_find(memory, "c"), large), "d");
    check(memory, "a", "-"); /* made room, as did b */
    check(memory, "b", "-");
    T_CHECK(plumb__responses_memory_turns(memory) == 2, "%lld", (long long)plumb__responses_memory_turns(memory));
    /* With what it continues it is too large, and says so. */
    T_CHECK(!keep(memory, "e", plumb__responses_memory_find(memory, "d"), large), "e was kept");
    check(memory, "e", "-");
    T_CHECK(plumb__responses_memory_bytes(memory) <= 4000, "%lld", (long long)plumb__responses_memory_bytes(memory));
    plumb__responses_memory_destroy(memory);
}

/* As many as there is room for: no recursion, no leak. */
static void long_chain(void) {
    enum { TURNS = 20000 };
    plumb_responses_memory *memory = create(2, 1 << 30);
    char id[32] = "";
    for (int i = 0; i < TURNS; i++) {
        plumb_turn *before = plumb__responses_memory_find(memory, id);
        snprintf(id, sizeof id, "turn%d", i);
        if (!keep(memory, id, before, "x")) break;
    }
    plumb_turn *turn = plumb__responses_memory_find(memory, id);
    json_t *messages = plumb__turn_messages(turn);
    T_CHECK(json_array_size(messages) == TURNS, "%zu", json_array_size(messages));
    json_decref(messages);
    plumb__turn_release(memory, turn);
    T_CHECK(keep(memory, "x", NULL, "X") && keep(memory, "y", NULL, "Y"), "x, y");
    T_CHECK(plumb__responses_memory_bytes(memory) < 4096, "the chain is still held");
    plumb__responses_memory_destroy(memory);
}

static void numbered_id(void *user, const char *prefix, char *id) {
    snprintf(id, 64, "%s%024d", prefix, ++*(int *)user);
}

static void own_ids(void) {
    int ids = 0, other_ids = 100;
    char id[PLUMB_RESPONSE_ID_SIZE], other[PLUMB_RESPONSE_ID_SIZE];
    plumb_responses_memory *memory = create(2, 1000), *another = create(2, 1000);
    T_CHECK(!plumb__responses_memory_made(memory, "resp_000000000000000000000001deadbeef"), "none was made yet");
    plumb__responses_memory_new_id(memory, numbered_id, &ids, id);
    plumb__responses_memory_new_id(another, numbered_id, &other_ids, other);
    T_CHECK(strncmp(id, "resp_", 5) == 0 && strlen(id) == 5 + 24 + 8, "%s", id);
    T_CHECK(plumb__responses_memory_made(memory, id) && plumb__responses_memory_made(another, other), "own ids");
    T_CHECK(!plumb__responses_memory_made(memory, other) && !plumb__responses_memory_made(another, id), "others' ids");
    for (size_t i = 0; id[i]; i++) {
        char changed[PLUMB_RESPONSE_ID_SIZE];
        memcpy(changed, id, sizeof changed);
        changed[i] ^= 1;
        T_CHECK(!plumb__responses_memory_made(memory, changed), "%s", changed);
        changed[i] = 0;
        T_CHECK(!plumb__responses_memory_made(memory, changed), "%s", changed);
    }
    plumb__responses_memory_destroy(memory);
    plumb__responses_memory_destroy(another);
}

T_MAIN({"least_recently_used", least_recently_used}, {"shared_turns", shared_turns}, {"retained", retained},
       {"bounded_bytes", bounded_bytes}, {"long_chain", long_chain}, {"own_ids", own_ids})
