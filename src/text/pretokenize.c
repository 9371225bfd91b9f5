/* The general way: PCRE2 with its just-in-time compiler runs the patterns of tokenizer.json.
 *
 * Very long runs must neither fail nor take more than linear time: the stack of the compiled code
 * grows when a match asks for more, and the limit of steps grows with the text.  There is a limit
 * at all because a hostile pattern may backtrack for ever. */
#include "text/pretokenize.h"

#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/error.h"

#define FIRST_STACK ((size_t)1 << 16)
#define MOST_STACK ((size_t)1 << 30) /* reserved, not used, until a match needs it */
#define LEAST_STEPS 1000000u
#define STEPS_PER_BYTE 32u

/* ---- Building ---- */

static plumb_status compile(plumb__slice pattern, const char *file, pcre2_code **code,
                            plumb_error *err) {
    char *translated;
    plumb_status status = plumb__pattern_translate(pattern, file, &translated, err);
    if (status != PLUMB_OK) return status;
    int error;
    PCRE2_SIZE offset;
    uint32_t matches_empty = 0;
    *code = pcre2_compile((PCRE2_SPTR)translated, PCRE2_ZERO_TERMINATED, PCRE2_UTF, &error, &offset,
                          NULL);
    free(translated);
    if (!*code) {
        PCRE2_UCHAR message[160];
        (void)pcre2_get_error_message(error, message, sizeof message);
        return plumb__fail(err, PLUMB_ERROR_FORMAT, file, "pre_tokenizer.pattern.Regex", -1,
                           (const char *)message, "a valid pattern");
    }
    (void)pcre2_pattern_info(*code, PCRE2_INFO_MATCHEMPTY, &matches_empty);
    if (matches_empty)
        return plumb__fail(err, PLUMB_ERROR_FORMAT, file, "pre_tokenizer.pattern.Regex", -1,
                           "a pattern that matches nothing at all", "one that takes a character");
    /* Refused on systems that forbid writable code; pcre2_match then interprets. */
    (void)pcre2_jit_compile(*code, PCRE2_JIT_COMPLETE);
    return PLUMB_OK;
}

plumb_status plumb__splitter_build(plumb__splitter *splitter, const plumb__tokenizer_json *file,
                                   plumb_error *err) {
    *splitter = (plumb__splitter){0};
    for (int i = 0; i < file->n_splits; i++) {
        plumb_status status = compile(file->splits[i], file->path, &splitter->splits[i], err);
        if (splitter->splits[i]) splitter->n_splits++;
        if (status != PLUMB_OK) return status;
    }
    if (!plumb__splits_are_known(file)) return PLUMB_OK;
    splitter->classes = calloc(PLUMB_CLASSES, 1);
    if (!splitter->classes) return plumb__fail_memory(err, "classes of characters", PLUMB_CLASSES);
    return plumb__classes_build(splitter->classes, err);
}

void plumb__splitter_free(plumb__splitter *splitter) {
    for (int i = 0; i < splitter->n_splits; i++) pcre2_code_free(splitter->splits[i]);
    free(splitter->classes);
    *splitter = (plumb__splitter){0};
}

void plumb__split_scratch_free(plumb__split_scratch *scratch) {
    pcre2_match_data_free(scratch->match);
    pcre2_match_context_free(scratch->context);
    pcre2_jit_stack_free(scratch->stack);
    *scratch = (plumb__split_scratch){0};
}

/* ---- Matching ---- */

static plumb_status prepare(plumb__split_scratch *scratch, size_t size, plumb_error *err) {
    if (!scratch->match) scratch->match = pcre2_match_data_create(16, NULL);
    if (!scratch->context) scratch->context = pcre2_match_context_create(NULL);
    if (!scratch->match || !scratch->context) return plumb__fail_memory(err, "pattern matching", 0);
    uint32_t steps = size < (UINT32_MAX - LEAST_STEPS) / STEPS_PER_BYTE
                         ? LEAST_STEPS + STEPS_PER_BYTE * (uint32_t)size
                         : UINT32_MAX;
    (void)pcre2_set_match_limit(scratch->context, steps);
    (void)pcre2_set_depth_limit(scratch->context, steps);
    (void)pcre2_set_heap_limit(scratch->context, UINT32_MAX);
    return PLUMB_OK;
}

/* A stack of twice the size; false if there is none. */
static bool grow_stack(plumb__split_scratch *scratch) {
    size_t size = scratch->stack_size ? scratch->stack_size * 2 : FIRST_STACK;
    if (size > MOST_STACK) return false;
    pcre2_jit_stack *stack = pcre2_jit_stack_create(FIRST_STACK, size, NULL);
    if (!stack) return false;
    pcre2_jit_stack_free(scratch->stack);
    scratch->stack = stack;
    scratch->stack_size = size;
    pcre2_jit_stack_assign(scratch->context, NULL, stack);
    return true;
}

/* The next match at or after `from`; *found is false if there is none. */
static plumb_status next_match(const pcre2_code *code, const char *text, size_t size, size_t *from,
                               size_t *to, bool *found, plumb__split_scratch *scratch,
                               plumb_error *err) {
    uint32_t options = PCRE2_NO_UTF_CHECK;
    for (;;) {
        int rc = pcre2_match(code, (PCRE2_SPTR)text, size, *from, options, scratch->match,
                             scratch->context);
        *found = rc >= 0;
        if (rc == PCRE2_ERROR_NOMATCH) return PLUMB_OK;
        if (rc == PCRE2_ERROR_JIT_STACKLIMIT) {
            if (!grow_stack(scratch)) options |= PCRE2_NO_JIT;
            continue;
        }
        if (rc < 0) {
            PCRE2_UCHAR message[160];
            (void)pcre2_get_error_message(rc, message, sizeof message);
            return plumb__fail(err, PLUMB_ERROR_TEXT, NULL, "pre-tokenizer", (int64_t)*from,
                               (const char *)message, "a match or none");
        }
        const PCRE2_SIZE *span = pcre2_get_ovector_pointer(scratch->match);
        *from = span[0];
        *to = span[1];
        return PLUMB_OK;
    }
}

/* Applies split `level` and those after it to one piece.  Depth is at most PLUMB_MAX_SPLITS. */
static plumb_status split_level(const plumb__splitter *splitter, int level, const char *text,
                                size_t size, plumb__split_scratch *scratch, plumb__piece_sink sink,
                                void *user, plumb_error *err) {
    if (size == 0) return PLUMB_OK;
    if (level == splitter->n_splits) return sink(user, text, size, err);
    size_t at = 0;
    while (at < size) {
        size_t from = at, to = size;
        bool found;
        plumb_status status =
            next_match(splitter->splits[level], text, size, &from, &to, &found, scratch, err);
        if (status != PLUMB_OK) return status;
        if (!found) from = to = size;
        status = split_level(splitter, level + 1, text + at, from - at, scratch, sink, user, err);
        if (status != PLUMB_OK) return status;
        status = split_level(splitter, level + 1, text + from, to - from, scratch, sink, user, err);
        if (status != PLUMB_OK) return status;
        at = to;
    }
    return PLUMB_OK;
}

plumb_status plumb__split_general(const plumb__splitter *splitter, const char *text, size_t size,
                                  plumb__split_scratch *scratch, plumb__piece_sink sink, void *user,
                                  plumb_error *err) {
    plumb_status status = prepare(scratch, size, err);
    if (status != PLUMB_OK) return status;
    return split_level(splitter, 0, text, size, scratch, sink, user, err);
}

plumb_status plumb__split(const plumb__splitter *splitter, const char *text, size_t size,
                          plumb__split_scratch *scratch, plumb__piece_sink sink, void *user,
                          plumb_error *err) {
    if (splitter->classes && plumb__known_scope(text, size))
        return plumb__split_known(splitter->classes, text, size, sink, user, err);
    return plumb__split_general(splitter, text, size, scratch, sink, user, err);
}
