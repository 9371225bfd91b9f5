/* Added tokens are matched in their sorted list: the ones that agree with the text so far are an
 * interval of it, which each further byte narrows.  A token that ends here is the first of its
 * interval, since a prefix sorts before what it begins.
 *
 * Any byte may begin a marker: not all of them begin with '<'. */
#include "text/added_tokens.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static int compare(plumb__slice a, plumb__slice b) {
    int order = memcmp(a.bytes, b.bytes, a.size < b.size ? a.size : b.size);
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

typedef struct item {
    plumb__slice text;
    int32_t id;
} item;

static int compare_items(const void *a, const void *b) {
    return compare(((const item *)a)->text, ((const item *)b)->text);
}

plumb_status plumb__added_tokens_build(plumb__added_tokens *added,
                                       const plumb__vocabulary *vocabulary, const char *file,
                                       plumb_error *err) {
    *added = (plumb__added_tokens){.vocabulary = vocabulary};
    item *items = malloc((size_t)vocabulary->size * sizeof *items);
    added->ids = malloc((size_t)vocabulary->size * sizeof *added->ids);
    plumb_status status = PLUMB_OK;
    if (!items || !added->ids) {
        status = plumb__fail_memory(err, "added tokens", (size_t)vocabulary->size * sizeof *items);
        goto done;
    }
    for (int64_t id = 0; id < vocabulary->size; id++)
        if (vocabulary->flags[id] & PLUMB_TOKEN_ADDED)
            items[added->count++] = (item){plumb__token(vocabulary, id), (int32_t)id};
    qsort(items, (size_t)added->count, sizeof *items, compare_items);
    for (int64_t i = 0; i < added->count; i++) {
        added->ids[i] = items[i].id;
        added->begins[(unsigned char)items[i].text.bytes[0]] = true;
        if (i > 0 && compare(items[i - 1].text, items[i].text) == 0) {
            status = plumb__fail(err, PLUMB_ERROR_FORMAT, file, "added_tokens.content", items[i].id,
                                 plumb__format("the text of id %d again", items[i - 1].id).s,
                                 "every text once");
            goto done;
        }
    }
done:
    free(items);
    return status;
}

void plumb__added_tokens_free(plumb__added_tokens *added) {
    free(added->ids);
    *added = (plumb__added_tokens){0};
}

static plumb__slice text_of(const plumb__added_tokens *added, int64_t i) {
    return plumb__token(added->vocabulary, added->ids[i]);
}

/* First token of [low, high), all longer than `depth`, whose byte there is at least `byte`. */
static int64_t lower_bound(const plumb__added_tokens *added, int64_t low, int64_t high,
                           size_t depth, int byte) {
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if ((unsigned char)text_of(added, middle).bytes[depth] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The longest token that `text` begins with, or -1. */
static int32_t longest_at(const plumb__added_tokens *added, const char *text, size_t size) {
    int64_t low = 0, high = added->count;
    int32_t longest = -1;
    for (size_t depth = 0; depth < size && low < high; depth++) {
        int byte = (unsigned char)text[depth];
        low = lower_bound(added, low, high, depth, byte);
        high = lower_bound(added, low, high, depth, byte + 1);
        if (low < high && text_of(added, low).size == depth + 1) longest = added->ids[low++];
    }
    return longest;
}

int32_t plumb__added_token_id(const plumb__added_tokens *added, const char *text, size_t size) {
    int32_t id = longest_at(added, text, size);
    return id >= 0 && plumb__token(added->vocabulary, id).size == size ? id : -1;
}

int32_t plumb__added_token_next(const plumb__added_tokens *added, const char *text, size_t size,
                                size_t from, size_t *at) {
    for (*at = from; *at < size; ++*at) {
        if (!added->begins[(unsigned char)text[*at]]) continue;
        int32_t id = longest_at(added, text + *at, size - *at);
        if (id >= 0) return id;
    }
    return -1;
}
