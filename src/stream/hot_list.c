#include "stream/hot_list.h"

#include "base/error.h"
#include "base/file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LARGEST_FILE = 64 << 20 };

/* ---- Reading --------------------------------------------------------------------------------- */

/* An unsigned number of at most `most` and the separator after it; NULL when there is none. */
static const char *number(const char *at, char separator, uint64_t most, uint64_t *value) {
    uint64_t n = 0;
    const char *start = at;
    for (; *at >= '0' && *at <= '9'; at++) {
        n = n * 10 + (uint64_t)(*at - '0');
        if (n > most) return NULL;
    }
    *value = n;
    return at > start && *at == separator ? at + 1 : NULL;
}

static plumb_status wrong_line(const char *path, int64_t line, plumb_error *err) {
    return plumb__fail(err, PLUMB_ERROR_FORMAT, path, "line", line, "something else",
                       line == 1 ? "\"plumb hot experts 1\" and this model's layers and experts"
                                 : "a layer, an expert and its uses");
}

static plumb_status parse(const char *path, const char *text, const char *end,
                          const plumb_model_config *c, uint32_t *uses, plumb_error *err) {
    plumb__text192 first = plumb__format("plumb hot experts 1 %lld %lld\n", (long long)c->layers,
                                         (long long)c->experts);
    if (strncmp(text, first.s, strlen(first.s)) != 0) return wrong_line(path, 1, err);
    text += strlen(first.s);
    for (int64_t line = 2; text < end; line++) {
        uint64_t layer, expert, count;
        text = number(text, ' ', (uint64_t)c->layers - 1, &layer);
        if (text) text = number(text, ' ', (uint64_t)c->experts - 1, &expert);
        if (text) text = number(text, '\n', UINT32_MAX, &count);
        if (!text) return wrong_line(path, line, err);
        uses[(int64_t)layer * c->experts + (int64_t)expert] = (uint32_t)count;
    }
    return PLUMB_OK;
}

plumb_status plumb__hot_list_read(const char *path, const plumb_model_config *c, uint32_t *uses,
                                  plumb_error *err) {
    size_t bytes = (size_t)(c->layers * c->experts) * sizeof *uses;
    memset(uses, 0, bytes);
    char *text;
    int64_t size;
    plumb_status status = plumb__file_load(path, LARGEST_FILE, &text, &size, err);
    if (status != PLUMB_OK) return status;
    status = parse(path, text, text + size, c, uses, err);
    if (status != PLUMB_OK) memset(uses, 0, bytes);
    free(text);
    return status;
}

/* ---- Order ----------------------------------------------------------------------------------- */

typedef struct counted {
    uint32_t uses;
    int32_t key;
} counted;

static int more_uses_first(const void *a, const void *b) {
    const counted *x = a, *y = b;
    if (x->uses != y->uses) return x->uses > y->uses ? -1 : 1;
    return (x->key > y->key) - (x->key < y->key);
}

int64_t plumb__hot_list_keys(const plumb_model_config *c, const uint32_t *uses, int32_t *keys) {
    int64_t n = c->layers * c->experts, count = 0;
    counted *list = malloc((size_t)n * sizeof *list);
    for (int64_t i = 0; list && i < n; i++)
        if (uses[i] > 0) list[count++] = (counted){uses[i], (int32_t)i};
    if (list) qsort(list, (size_t)count, sizeof *list, more_uses_first);
    for (int64_t i = 0; i < count; i++) keys[i] = list[i].key;
    free(list);
    return count;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static bool write_lines(FILE *file, const plumb_model_config *c, const uint32_t *uses,
                        const int32_t *keys, int64_t n) {
    bool good = fprintf(file, "plumb hot experts 1 %" PRId64 " %" PRId64 "\n", c->layers,
                        c->experts) > 0;
    for (int64_t i = 0; i < n && good; i++)
        good = fprintf(file, "%" PRId64 " %" PRId64 " %" PRIu32 "\n", keys[i] / c->experts,
                       keys[i] % c->experts, uses[keys[i]]) > 0;
    return good;
}

plumb_status plumb__hot_list_write(const char *path, const plumb_model_config *c,
                                   const uint32_t *uses, plumb_error *err) {
    size_t length = strlen(path) + sizeof ".XXXXXX";
    char *beside = malloc(length);
    int32_t *keys = malloc((size_t)(c->layers * c->experts) * sizeof *keys);
    if (!beside || !keys) {
        free(beside);
        free(keys);
        return plumb__fail_memory(err, "hot list", length);
    }
    (void)snprintf(beside, length, "%s.XXXXXX", path);
    int fd = mkstemp(beside);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    bool good = file && write_lines(file, c, uses, keys, plumb__hot_list_keys(c, uses, keys));
    if (file) good &= fclose(file) == 0;
    else if (fd >= 0) (void)close(fd);
    if (good) good = rename(beside, path) == 0;
    plumb_status status = good ? PLUMB_OK
                               : plumb__fail(err, PLUMB_ERROR_IO, path, "hot list", -1,
                                             strerror(errno), "a file that can be written");
    if (!good && fd >= 0) (void)unlink(beside);
    free(beside);
    free(keys);
    return status;
}
