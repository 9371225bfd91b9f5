/* Stop strings: a table, every text over a small alphabet against a search by hand, and whole answers. */
#include "answer_run.h"
#include "server/answer_stop.h"

enum { MOST_STOPS = 4 };

static void gather(void *user, const char *bytes, size_t size) {
    T_CHECK(size > 0, "an empty piece");
    plumb__buffer_append(user, bytes, size);
}

/* ---- The filter alone -------------------------------------------------------------------------- */

static const struct stop_case {
    const char *stops[MOST_STOPS], *text, *told, *found; /* found NULL: none, and `told` is what goes on at once */
} cases[] = {
    {{"END"}, "one END two", "one ", "END"},
    {{"END"}, "END", "", "END"},
    {{"END"}, "one END", "one ", "END"},
    {{"END"}, "one EN", "one ", NULL},
    {{"END"}, "one EN two", "one EN two", NULL},
    {{"END"}, "one EEND", "one E", "END"},
    {{"aab"}, "aaab", "a", "aab"},
    {{"aab"}, "aaaaaac", "aaaaaac", NULL},
    {{"abab"}, "abaabab", "aba", "abab"},
    {{"aa"}, "aaa", "", "aa"},
    {{"\n\n"}, "a\n\n\nb", "a", "\n\n"},
    {{"x", "yz"}, "ayxz", "ay", "x"},
    {{"yz", "x"}, "ayzx", "a", "yz"},
    {{"abcd", "bc"}, "abcd", "a", "bc"},      /* complete first */
    {{"bc", "abc"}, "xabc", "x", "abc"},      /* complete together: the longer */
    {{"abc", "bc"}, "xabc", "x", "abc"},
    {{"ab", "abc"}, "abc", "", "ab"},
    {{"abc", "bd"}, "abd", "a", "bd"},        /* the end of a failed one begins another */
    {{"abcx", "cd"}, "abcd", "ab", "cd"},
    {{"stop", "stop"}, "a stop", "a ", "stop"},
    {{"京"}, "北京", "北", "京"},
    {{"京"}, "北亭", "北亭", NULL},           /* same first bytes */
    {{"é!"}, "aé?é!", "aé?", "é!"},
    {{NULL}, "text", "text", NULL},
};

static plumb_stop_filter *new_filter(const char *const *stops, plumb__buffer *told) {
    plumb_stop_string given[MOST_STOPS];
    plumb_stop_filter *filter = NULL;
    int n = 0;
    for (; n < MOST_STOPS && stops[n]; n++) {
        size_t size = strlen(stops[n]);
        given[n] = (plumb_stop_string){malloc(size), size};
        if (!given[n].bytes) abort();
        memcpy(given[n].bytes, stops[n], size);
    }
    T_CHECK(plumb__stop_filter_create(given, n, gather, told, &filter, NULL) == PLUMB_OK, "create");
    while (n-- > 0) free(given[n].bytes);
    return filter;
}

static void table(void) {
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t size = strlen(cases[i].text);
        for (size_t chunk = 1; chunk <= size; chunk++) {
            plumb__buffer told = {0};
            plumb_stop_filter *filter = new_filter(cases[i].stops, &told);
            for (size_t at = 0; at < size; at += chunk)
                plumb__stop_filter_push(filter, cases[i].text + at, chunk < size - at ? chunk : size - at);
            const char *found = plumb__stop_filter_found(filter), *wanted = cases[i].found;
            T_CHECK(wanted ? found && !strcmp(found, wanted) : !found, "%s: %s", cases[i].text, found ? found : "none");
            T_CHECK((size_t)told.size == strlen(cases[i].told) &&
                        !memcmp(told.size ? told.bytes : "", cases[i].told, (size_t)told.size),
                    "%s by %zu: %.*s", cases[i].text, chunk, (int)told.size, told.bytes);
            T_CHECK(found || told.size + (int64_t)plumb__stop_filter_held(filter) == (int64_t)size, "what is held");
            plumb__stop_filter_release(filter);
            T_CHECK(found || told.size == (int64_t)size, "released");
            plumb__stop_filter_push(filter, "later", 5);
            T_CHECK(!found || told.size == (int64_t)strlen(cases[i].told), "nothing behind a stop");
            plumb__stop_filter_destroy(filter);
            plumb__buffer_free(&told);
        }
    }
    plumb__stop_filter_destroy(NULL);
}

/* ---- Every text against a search by hand --------------------------------------------------------- */

static bool ends_with(const char *text, size_t size, const char *stop, size_t length) {
    return length <= size && memcmp(text + size - length, stop, length) == 0;
}

/* How much of text[0..size) may be told; *found: the stop that ended it. */
static size_t tellable(const char *text, size_t size, const char *const *stops, const char **found) {
    *found = NULL;
    size_t held = 0;
    for (size_t end = 1; end <= size; end++) {
        for (int s = 0; s < MOST_STOPS && stops[s]; s++)
            if (ends_with(text, end, stops[s], strlen(stops[s])) && (!*found || strlen(stops[s]) > strlen(*found)))
                *found = stops[s];
        if (*found) return end - strlen(*found);
    }
    for (int s = 0; s < MOST_STOPS && stops[s]; s++)
        for (size_t length = 1; length < strlen(stops[s]); length++)
            if (length > held && ends_with(text, size, stops[s], length)) held = length;
    return size - held;
}

static void every_text(void) {
    static const char *const sets[][MOST_STOPS] = {
        {"aab"}, {"abab"}, {"aba", "bb"}, {"abaa", "ba", "bbb"}, {"a"}, {"abba", "bab", "aaaa", "bbab"},
        {"aabaab", "abb"},
    };
    enum { LENGTH = 10 };
    for (size_t set = 0; set < sizeof sets / sizeof sets[0]; set++)
        for (unsigned bits = 0; bits < 1u << LENGTH; bits++) {
            char text[LENGTH + 1] = "";
            for (int i = 0; i < LENGTH; i++) text[i] = bits >> i & 1 ? 'b' : 'a';
            size_t chunk = 1 + bits % 3, wanted = 0;
            plumb__buffer told = {0};
            plumb_stop_filter *filter = new_filter(sets[set], &told);
            const char *stop = NULL;
            bool same = true;
            for (size_t at = 0; at < LENGTH && !stop; at += chunk) {
                size_t size = chunk < LENGTH - at ? chunk : LENGTH - at;
                plumb__stop_filter_push(filter, text + at, size);
                wanted = tellable(text, at + size, sets[set], &stop);
                const char *found = plumb__stop_filter_found(filter);
                same &= told.size == (int64_t)wanted && !memcmp(told.size ? told.bytes : "", text, wanted);
                same &= stop ? found && !strcmp(found, stop) : !found;
            }
            T_CHECK(same, "set %zu, %s by %zu: told %" PRId64 ", not %zu", set, text, chunk, told.size, wanted);
            plumb__stop_filter_destroy(filter);
            plumb__buffer_free(&told);
        }
}

/* ---- Whole answers ------------------------------------------------------------------------------- */

#define CALL "\n\n<{D} calls>\n<{D} invoke name=\"f\">\n<{D} parameter name=\"k\" string=\"true\">a STOP b</{D} parameter>\n" \
             "</{D} invoke>\n</{D} calls>"

static const struct answer_case {
    const char *name;
    bool thinking, raw;
    const char *stops[2], *answer, *wanted;
} answers[] = {
    {"in the middle", false, false, {"STOP"}, "one STOP two{E}", "C(one ) =string(STOP)"},
    {"the whole answer", false, false, {"STOP"}, "STOP{E}", "=string(STOP)"},
    {"at the end", false, false, {"STOP"}, "one STOP{E}", "C(one ) =string(STOP)"},
    {"half of it, then the end", false, false, {"STOP"}, "one STO{E}", "C(one STO) =stop"},
    {"not in reasoning", true, false, {"STOP"}, "a STOP b{/T}c{E}", "R(a STOP b) C(c) =stop"},
    {"not across its end", true, false, {"STOP"}, "ST{/T}OP{E}", "R(ST) C(OP) =stop"},
    {"behind reasoning", true, false, {"STOP"}, "a{/T}b STOP{E}", "R(a) C(b ) =string(STOP)"},
    {"not in arguments", false, false, {"STOP"}, CALL "{E}", "0:f{\"k\": \"a STOP b\"}. =calls"},
    {"not in markup", false, false, {"invoke"}, "a" CALL "{E}", "C(a) 0:f{\"k\": \"a STOP b\"}. =calls"},
    {"not across a call", false, false, {"STOP"}, "ST" CALL "OP{E}", "C(ST) 0:f{\"k\": \"a STOP b\"}. C(OP) =calls"},
    {"behind a call", false, false, {"STOP"}, CALL "STOP{E}", "0:f{\"k\": \"a STOP b\"}. =string(STOP)"},
    {"what a call may begin with", false, false, {"\n\n"}, "a\n\nb{E}", "C(a) =string(\n\n)"},
    {"what a call begins with", false, false, {"\n\n"}, "a" CALL "{E}", "C(a) 0:f{\"k\": \"a STOP b\"}. =calls"},
    {"held until the end", false, false, {"\n\n"}, "a\n\n{E}", "C(a) =string(\n\n)"},
    {"a character", false, false, {"京"}, "北京!{E}", "C(北) =string(京)"},
    {"a character's neighbour", false, false, {"京"}, "北亭!{E}", "C(北亭!) =stop"},
    {"overlapping beginnings", false, false, {"aab"}, "aaab{E}", "C(a) =string(aab)"},
    {"of two the first to be complete", false, false, {"wxyz", "xy"}, "vwxyz{E}", "C(vw) =string(xy)"},
    {"a raw prompt", false, true, {"STOP"}, "one STOP two{E}", "C(one ) =string(STOP)"},
    {"a raw prompt, half of it", false, true, {"STOP"}, "one STO{E}", "C(one STO) =stop"},
    {"a raw prompt, a broken end", false, true, {"\xEF\xBF\xBD"}, "a\xE5", "C(a) =string(\xEF\xBF\xBD)"},
};

/* Tokens of what is not told are not `of_content`, the others are. */
static void check_tokens(const char *name, const answer_run *run) {
    T_CHECK(run->n_tokens == run->usage.completion_tokens, "%s: %" PRId64 " tokens", name, run->n_tokens);
    T_CHECK(run->token_bytes.size >= run->content.size &&
                !memcmp(run->content.size ? run->content.bytes : "",
                        run->token_bytes.size ? run->token_bytes.bytes : "",
                        (size_t)run->content.size),
            "%s: tokens of content: %.*s", name, (int)run->token_bytes.size, run->token_bytes.bytes);
}

static void whole_answers(void) {
    if (!run_set_up()) return;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
        for (int way = 0; way < 4; way++) {
            const struct answer_case *c = &answers[i];
            plumb_generation *g = run_generation(c->thinking, true);
            answer_run run;
            if (c->raw) {
                free(g->messages);
                g->messages = NULL;
            }
            for (int s = 0; s < 2 && c->stops[s]; s++) run_add_stop(g, c->stops[s]);
            g->logprobs = way & 2;
            bool broken = c->answer[strlen(c->answer) - 1] == '\xE5';
            plumb_tokens tokens = run_spell(c->answer, broken || way & 1);
            run_tokens(g, NULL, &tokens, tokens.count, &run);
            T_CHECK(!strcmp(run.line.bytes, c->wanted), "%s, way %d:\n%s\nnot\n%s", c->name, way, run.line.bytes,
                    c->wanted);
            if (g->logprobs) check_tokens(c->name, &run);
            if (g->logprobs && way & 1) /* a token a byte: exactly what is told */
                T_CHECK(run.token_bytes.size == run.content.size, "%s: %.*s", c->name, (int)run.token_bytes.size,
                        run.token_bytes.bytes);
            run_free(&run);
            plumb_tokens_free(&tokens);
            plumb__generation_destroy(g);
        }
}

T_MAIN({"table", table}, {"every_text", every_text}, {"whole_answers", whole_answers})
