/* The parts of a session store that only compute: beginnings and names, worth and decisions, the ledger.
 * Values of the policy are worked out by hand from the formula in docs/sessions.md. */
#include <stdlib.h>

#include "store/ledger.h"
#include "store/policy.h"
#include "t.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { LENGTH = 200, BLOCK = PLUMB_PREFIX_BLOCK };

static plumb_prefix_chain chain_of(const int32_t *tokens, int64_t length) {
    plumb_prefix_chain chain = {0};
    T_CHECK(plumb__prefix_chain(tokens, length, &chain, NULL) == PLUMB_OK, "chain");
    return chain;
}

/* ---- Beginnings ------------------------------------------------------------------------------------ */

/* Two sequences that part at each position in turn, of each length around a block. */
static void chains_part_where_tokens_do(void) {
    int32_t a[LENGTH], b[LENGTH];
    for (int i = 0; i < LENGTH; i++) a[i] = b[i] = i * 7 % 50;
    for (int parts = 0; parts < LENGTH; parts++) {
        b[parts] ^= 1;
        for (int64_t length = LENGTH - BLOCK; length <= LENGTH; length++) {
            plumb_prefix_chain x = chain_of(a, LENGTH), y = chain_of(b, length);
            int64_t common = plumb__prefix_common(a, LENGTH, b, length);
            int64_t wanted = (parts < length ? parts : length);
            T_CHECK(common == wanted, "common %" PRId64, common);
            T_CHECK(plumb__prefix_shared(&x, &y) == wanted / BLOCK * BLOCK, "parts at %d of %" PRId64, parts, length);
            plumb__prefix_chain_free(&x);
            plumb__prefix_chain_free(&y);
        }
        b[parts] ^= 1;
    }
    plumb_prefix_chain none = chain_of(a, 0), all = chain_of(a, LENGTH);
    T_CHECK(plumb__prefix_shared(&none, &all) == 0 && none.blocks == 0, "an empty one");
    plumb__prefix_chain_free(&none);
    plumb__prefix_chain_free(&all);
}

/* Equal tokens under equal rules have equal names; a token, its place, a length, a model or a revision
 * makes another. */
static void names_stand_for_contents(void) {
    const uint8_t model[16] = {1}, other[16] = {2};
    const int32_t tokens[] = {5, 6, 7, 0}, swapped[] = {6, 5, 7, 0};
    plumb_prefix_id id = plumb__prefix_id(model, 3, tokens, 3);
    T_CHECK(plumb__prefix_id_equal(id, plumb__prefix_id(model, 3, tokens, 3)), "the same");
    T_CHECK(!plumb__prefix_id_equal(id, plumb__prefix_id(model, 3, tokens, 4)), "length");
    T_CHECK(!plumb__prefix_id_equal(id, plumb__prefix_id(model, 3, swapped, 3)), "order");
    T_CHECK(!plumb__prefix_id_equal(id, plumb__prefix_id(other, 3, tokens, 3)), "model");
    T_CHECK(!plumb__prefix_id_equal(id, plumb__prefix_id(model, 4, tokens, 3)), "revision");
    /* XXH3-128 of model, revision and tokens one behind the other. */
    uint8_t bytes[16 + 4 + 12] = {1};
    bytes[16] = 3;
    bytes[20] = 5;
    bytes[24] = 6;
    bytes[28] = 7;
    XXH128_hash_t hash = XXH3_128bits(bytes, sizeof bytes);
    T_CHECK(id.high == hash.high64 && id.low == hash.low64 && id.length == 3, "the hash");
}

static void names_parse_back(void) {
    static const char *const refused[] = {
        "", "lock", "ledger", "000055572-00112233445566778899aabbccddeeff.plumb-session.part",
        "55572-00112233445566778899aabbccddeeff.plumb-session",
        "+00055572-00112233445566778899aabbccddeeff.plumb-session",
        " 00055572-00112233445566778899aabbccddeeff.plumb-session",
        "-00055572-00112233445566778899aabbccddeeff.plumb-session",
        "000055572-00112233445566778899AABBCCDDEEFF.plumb-session",
        "000055572-0x112233445566778899aabbccddeeff.plumb-session",
        "000055572-00112233445566778899aabbccddeeff.plumb-sessiom",
        "000055572+00112233445566778899aabbccddeeff.plumb-session",
        "00005557200112233445566778899aabbccddeeff0.plumb-session",
        "000055572-00112233445566778899aabbccddeef.plumb-session",
        "000055572-00112233445566778899aabbccddeeff0.plumb-session"};
    const plumb_prefix_id id = {55572, 0x0011223344556677, 0x8899aabbccddeeff};
    char name[PLUMB_PREFIX_NAME_SIZE];
    plumb_prefix_id back = {0};
    plumb__prefix_name(id, name);
    T_CHECK(!strcmp(name, "000055572-00112233445566778899aabbccddeeff.plumb-session"), "%s", name);
    T_CHECK(plumb__prefix_parse(name, &back) && plumb__prefix_id_equal(id, back), "back");
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        T_CHECK(!plumb__prefix_parse(refused[i], &back), "%s", refused[i]);
}

/* ---- Policy ---------------------------------------------------------------------------------------- */

static void values_by_hand(void) {
    enum { HOUR = 3600, NOW = 1000000 };
    static const struct {
        const char *name;
        plumb_store_worth worth;
        double value;
    } cases[] = {
        {"new", {.length = 8000, .bytes = 1000, .used = NOW}, 8},
        {"an hour old", {.length = 8000, .bytes = 1000, .used = NOW - HOUR}, 4},
        {"three hours old, wanted once", {.length = 8000, .bytes = 1000, .hits = 1, .used = NOW - 3 * HOUR}, 4},
        {"half an hour old", {.length = 9000, .bytes = 1000, .used = NOW - HOUR / 2}, 6},
        {"from the future", {.length = 8000, .bytes = 1000, .used = NOW + HOUR}, 8},
        {"twice as large", {.length = 8000, .bytes = 2000, .used = NOW}, 4},
        {"all but 200 tokens shared", {.length = 50200, .shared = 50000, .bytes = 100, .used = NOW}, 2},
        {"all but 32", {.length = 1032, .shared = 1000, .bytes = 16, .used = NOW}, 2},
        {"all of it", {.length = 1000, .shared = 1000, .bytes = 16, .used = NOW}, 2},
        {"nobody can restore it", {.length = 0, .bytes = 1000, .hits = 9, .used = NOW}, 0},
        {"an empty file", {.length = 10, .bytes = 0, .used = NOW}, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double value = plumb__store_value(&cases[i].worth, NOW);
        T_CHECK(value == cases[i].value, "%s: %g, not %g", cases[i].name, value, cases[i].value);
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
            const plumb_store_worth *a = &cases[i].worth, *b = &cases[k].worth;
            bool first = cases[i].value < cases[k].value ||
                         (cases[i].value == cases[k].value && a->used < b->used);
            T_CHECK(plumb__store_gives_way(a, b, NOW) == first, "%s, %s", cases[i].name, cases[k].name);
        }
}

static void decisions(void) {
    static const struct {
        plumb_store_write write;
        plumb_store_decision decision;
    } cases[] = {
        {{31, 32, 100, 1000, 0, 1000}, PLUMB_STORE_FEW_TOKENS},
        {{32, 32, 100, 1000, 0, 1000}, PLUMB_STORE_WRITTEN},
        {{32, 32, 1000, 1000, 0, 1000}, PLUMB_STORE_WRITTEN},
        {{32, 32, 1001, 1000, 0, 9999}, PLUMB_STORE_TOO_LARGE},
        {{32, 32, 100, 1000, 900, 1000}, PLUMB_STORE_WRITTEN},
        {{32, 32, 101, 1000, 900, 1000}, PLUMB_STORE_DAILY_BUDGET},
        {{32, 32, 1, 1000, 5000, 1000}, PLUMB_STORE_DAILY_BUDGET},
        {{31, 32, 5000, 1000, 5000, 1000}, PLUMB_STORE_FEW_TOKENS},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        T_CHECK(plumb__store_decide(&cases[i].write) == cases[i].decision, "case %zu", i);
}

static void days(void) {
    T_CHECK(plumb__store_day(0) == 0 && plumb__store_day(86399) == 0 && plumb__store_day(86400) == 1, "from 1970");
    T_CHECK(plumb__store_day(-1) == -1 && plumb__store_day(-86400) == -1, "before");
    T_CHECK(plumb__store_day(1764527237) == 20422, "2025-11-30"); /* date -ud @1764527237 */
}

/* ---- The ledger -------------------------------------------------------------------------------------- */

static void wear_by_day(void) {
    enum { DAY = 86400 };
    plumb_ledger ledger = {0};
    plumb__ledger_count(&ledger, 10 * DAY + 5, 100);
    plumb__ledger_count(&ledger, 11 * DAY - 1, 20);
    T_CHECK(plumb__ledger_today(&ledger, 11 * DAY - 1) == 120, "one day");
    T_CHECK(plumb__ledger_today(&ledger, 11 * DAY) == 0, "midnight");
    plumb__ledger_count(&ledger, 11 * DAY, 7);
    T_CHECK(plumb__ledger_today(&ledger, 11 * DAY + 9) == 7 && ledger.ever_bytes == 127, "the next");
    /* A clock that is set back does not begin a budget anew, nor a later day early. */
    T_CHECK(plumb__ledger_today(&ledger, 10 * DAY) == 7, "back");
    plumb__ledger_count(&ledger, 10 * DAY, 1);
    T_CHECK(plumb__ledger_today(&ledger, 11 * DAY) == 8 && ledger.ever_bytes == 128, "counted all the same");
    /* By more than that it was wrong before, and must not use up the days until then. */
    T_CHECK(plumb__ledger_today(&ledger, 10 * DAY - 1) == 0, "far back");
    plumb__ledger_count(&ledger, 10 * DAY - 1, 3);
    T_CHECK(plumb__ledger_today(&ledger, 9 * DAY) == 3 && ledger.ever_bytes == 131, "counted from there");
    T_CHECK(plumb__ledger_today(&ledger, 10 * DAY) == 0, "and the day after is another");
    plumb__ledger_free(&ledger);
}

static void continuations(void) {
    int32_t tokens[100], other[100];
    for (int i = 0; i < 100; i++) tokens[i] = other[i] = i;
    other[63] = -1;
    plumb_ledger_entry e = {0};
    plumb__ledger_went_on(&e, tokens, 0);
    T_CHECK(e.next_tokens == 0 && !e.shared, "the same prompt again says nothing");
    plumb__ledger_went_on(&e, tokens, 20);
    plumb__ledger_went_on(&e, tokens, 90);
    plumb__ledger_went_on(&e, other, 90);
    T_CHECK(e.next_tokens == 20 && !e.shared, "longer is the same conversation");
    plumb_ledger_entry again = e;
    plumb__ledger_went_on(&again, tokens, 19);
    T_CHECK(again.shared, "a shorter one is not: conversations grow");
    plumb__ledger_went_on(&e, tokens + 1, 90);
    T_CHECK(e.shared, "another one");
    plumb__ledger_went_on(&e, tokens, 90);
    T_CHECK(e.shared, "for good");
    e = (plumb_ledger_entry){0};
    plumb__ledger_went_on(&e, tokens, 100);
    T_CHECK(e.next_tokens == 64, "the first 64 tell");
    plumb__ledger_went_on(&e, other, 100);
    T_CHECK(e.shared, "the 64th differs");
}

static plumb_ledger example(void) {
    plumb_ledger ledger = {.day = 20422, .day_bytes = 2715648, .ever_bytes = 1048576000};
    plumb_ledger_entry *e = plumb__ledger_add(&ledger, (plumb_prefix_id){55572, 0x0011223344556677, 0x8899aabbccddeeff});
    *e = (plumb_ledger_entry){.id = e->id, .used = 1764527237, .hits = 3, .next_tokens = 64, .next_hash = 0xf1e2d3c4b5a697,
                              .shared = true};
    (void)plumb__ledger_add(&ledger, (plumb_prefix_id){7, 1, 2});
    return ledger;
}

#define TEXT                                                                                               \
    "plumb-ledger 1\n"                                                                                     \
    "day 20422 bytes 2715648 ever 1048576000\n"                                                            \
    "000000007-00000000000000010000000000000002.plumb-session used 0 hits 0 next 0 0000000000000000 shared 0\n" \
    "000055572-00112233445566778899aabbccddeeff.plumb-session used 1764527237 hits 3 next 64 00f1e2d3c4b5a697"  \
    " shared 1\n"

static void printed_and_parsed(void) {
    plumb_ledger ledger = example(), back = {0};
    char *text = NULL;
    size_t size = 0;
    char check[32];
    T_CHECK(plumb__ledger_print(&ledger, &text, &size, NULL) == PLUMB_OK, "print");
    (void)snprintf(check, sizeof check, "check %016" PRIx64 "\n", (uint64_t)XXH3_64bits(TEXT, sizeof TEXT - 1));
    T_CHECK(size == sizeof TEXT - 1 + strlen(check) && !memcmp(text, TEXT, sizeof TEXT - 1) &&
                !memcmp(text + sizeof TEXT - 1, check, strlen(check)), "%.*s", (int)size, text);
    T_CHECK(plumb__ledger_parse(text, size, "ledger", &back, NULL) == PLUMB_OK, "parse");
    T_CHECK(back.day == 20422 && back.day_bytes == 2715648 && back.ever_bytes == 1048576000 && back.n_entries == 2,
            "counts");
    const plumb_ledger_entry *e = plumb__ledger_find(&back, (plumb_prefix_id){55572, 0x0011223344556677, 0x8899aabbccddeeff});
    T_CHECK(e && e->used == 1764527237 && e->hits == 3 && e->next_tokens == 64 && e->next_hash == 0xf1e2d3c4b5a697 &&
                e->shared, "entry");
    T_CHECK(!plumb__ledger_find(&back, (plumb_prefix_id){55572, 0, 0}), "no other");
    plumb__ledger_free(&back);

    plumb_error err = {0};
    for (size_t cut = 0; cut < size; cut++)
        T_CHECK(plumb__ledger_parse(text, cut, "ledger", &back, &err) == PLUMB_ERROR_FORMAT && !back.entry, "%zu", cut);
    for (size_t i = 0; i < size; i++) {
        /* In its first line it is somebody else's. */
        plumb_status wanted = i < 13 ? PLUMB_ERROR_ARGUMENT : i < 15 ? PLUMB_ERROR_UNSUPPORTED : PLUMB_ERROR_FORMAT;
        text[i] ^= 1;
        T_CHECK(plumb__ledger_parse(text, size, "ledger", &back, &err) == wanted && !back.entry, "byte %zu", i);
        text[i] ^= 1;
    }
    free(text);
    plumb__ledger_free(&ledger);
}

#define HEAD "plumb-ledger 1\n"
#define COUNTS "day 1 bytes 2 ever 3\n"
#define NAME "000000007-00000000000000010000000000000002.plumb-session"
#define REST " used 0 hits 0 next 0 0000000000000000 shared 0\n"

/* With a checksum that is right. */
static void refusals(void) {
    static const struct {
        const char *text;
        bool good;
    } cases[] = {
        {HEAD COUNTS, true},
        {HEAD COUNTS NAME REST, true},
        {"plumb-ledger 2\n" COUNTS, false},
        {HEAD, false},
        {HEAD "day 1 bytes 2\n", false},
        {HEAD "day 1 bytes -2 ever 3\n", false},
        {HEAD "day 1 bytes 4 ever 3\n", false},
        {HEAD "day 1 bytes 2 ever 9999999999999999999\n", false},
        {HEAD "day 99999999999999 bytes 2 ever 3\n", false},
        {HEAD "day +1 bytes 2 ever 3\n", false},
        {HEAD "day  1 bytes 2 ever 3\n", false},
        {HEAD "day 1 bytes 2 ever 3 \n", false},
        {HEAD COUNTS "\n", false},
        {HEAD COUNTS NAME " used 0 hits 0\n", false},
        {HEAD COUNTS "x" NAME REST, false},
        {HEAD COUNTS NAME REST NAME REST, false},
        {HEAD COUNTS NAME " used 0 hits -1 next 0 0000000000000000 shared 0\n", false},
        {HEAD COUNTS NAME " used 0 hits 0 next 65 0000000000000000 shared 0\n", false},
        {HEAD COUNTS NAME " used 0 hits 0 next 0 0000000000000000 shared 2\n", false},
        {HEAD COUNTS NAME " used 99999999999999 hits 0 next 0 0000000000000000 shared 0\n", false},
        {HEAD COUNTS NAME " used 0 hits 0 next 0 000000000000000G shared 0\n", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[1024];
        plumb_ledger ledger = {0};
        size_t size = strlen(cases[i].text);
        (void)snprintf(text, sizeof text, "%scheck %016" PRIx64 "\n", cases[i].text,
                       (uint64_t)XXH3_64bits(cases[i].text, size));
        plumb_status status = plumb__ledger_parse(text, strlen(text), "ledger", &ledger, NULL);
        T_CHECK((status == PLUMB_OK) == cases[i].good, "%s", cases[i].text);
        plumb__ledger_free(&ledger);
    }
}

/* Added in any order they are found, and printed in one. */
static void many_entries(void) {
    enum { COUNT = 300 };
    plumb_ledger ledger = {0}, back = {0};
    for (int64_t i = 0; i < COUNT; i++) {
        plumb_ledger_entry *e = plumb__ledger_add(&ledger, (plumb_prefix_id){i * 7 % COUNT / 3, 1, (uint64_t)(i * 7 % COUNT)});
        if (e) e->hits = i;
    }
    for (int64_t i = 0; i < COUNT; i++) {
        plumb_ledger_entry *e = plumb__ledger_find(&ledger, (plumb_prefix_id){i * 7 % COUNT / 3, 1, (uint64_t)(i * 7 % COUNT)});
        T_CHECK(e && e->hits == i, "%" PRId64, i);
    }
    char *text = NULL;
    size_t size = 0;
    T_CHECK(plumb__ledger_print(&ledger, &text, &size, NULL) == PLUMB_OK, "print");
    T_CHECK(plumb__ledger_parse(text, size, "ledger", &back, NULL) == PLUMB_OK && back.n_entries == COUNT, "parse");
    free(text);
    plumb__ledger_free(&ledger);
    plumb__ledger_free(&back);
}

T_MAIN({"chains_part_where_tokens_do", chains_part_where_tokens_do}, {"names_stand_for_contents", names_stand_for_contents},
       {"names_parse_back", names_parse_back}, {"values_by_hand", values_by_hand}, {"decisions", decisions}, {"days", days},
       {"wear_by_day", wear_by_day}, {"continuations", continuations}, {"printed_and_parsed", printed_and_parsed},
       {"refusals", refusals}, {"many_entries", many_entries})
