#include "store/ledger.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "store/policy.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
    NEXT_TOKENS = 64, /* that tell one continuation from another */
    LINE_BYTES = 256, /* no line is longer */
    CHECK_BYTES = 23  /* "check ", 16 digits, line feed */
};
/* Numbers that no honest ledger holds, and with which sums cannot overflow. */
#define MOST_BYTES ((int64_t)1 << 60)
#define MOST_SECONDS ((int64_t)1 << 40)
#define MOST_HITS ((int64_t)1 << 40)

#define FIRST_WORD "plumb-ledger "
#define FIRST_LINE FIRST_WORD "1\n"
#define COUNTS "day %" PRId64 " bytes %" PRId64 " ever %" PRId64 "\n"
#define ENTRY "%s used %" PRId64 " hits %" PRId64 " next %" PRId64 " %016" PRIx64 " shared %d\n"

void plumb__ledger_free(plumb_ledger *ledger) {
    free(ledger->entry);
    *ledger = (plumb_ledger){0};
}

static int compare(plumb_prefix_id a, plumb_prefix_id b) {
    if (a.length != b.length) return a.length < b.length ? -1 : 1;
    if (a.high != b.high) return a.high < b.high ? -1 : 1;
    return (a.low > b.low) - (a.low < b.low);
}

/* Where the id is, or would be. */
static int64_t place_of(const plumb_ledger *ledger, plumb_prefix_id id) {
    int64_t low = 0, high = ledger->n_entries;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (compare(ledger->entry[middle].id, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

plumb_ledger_entry *plumb__ledger_find(const plumb_ledger *ledger, plumb_prefix_id id) {
    int64_t place = place_of(ledger, id);
    bool there = place < ledger->n_entries && plumb__prefix_id_equal(ledger->entry[place].id, id);
    return there ? &ledger->entry[place] : NULL;
}

plumb_ledger_entry *plumb__ledger_add(plumb_ledger *ledger, plumb_prefix_id id) {
    plumb_ledger_entry *found = plumb__ledger_find(ledger, id);
    if (found) return found;
    plumb_ledger_entry *grown =
        plumb__grow(ledger->entry, &ledger->capacity, ledger->n_entries + 1, sizeof *grown);
    if (!grown) return NULL;
    ledger->entry = grown;
    int64_t place = place_of(ledger, id);
    memmove(grown + place + 1, grown + place, (size_t)(ledger->n_entries - place) * sizeof *grown);
    grown[place] = (plumb_ledger_entry){.id = id};
    ledger->n_entries++;
    return &grown[place];
}

/* ---- Wear ------------------------------------------------------------------------------------ */

/* Whether what was counted last still counts.  A clock that was corrected around midnight begins no
 * budget anew; a day further ahead is of a clock that was wrong, and would last until it comes. */
static bool is_today(const plumb_ledger *ledger, int64_t now) {
    int64_t day = plumb__store_day(now);
    return ledger->day == day || ledger->day == day + 1;
}

void plumb__ledger_count(plumb_ledger *ledger, int64_t now, int64_t bytes) {
    if (!is_today(ledger, now)) {
        ledger->day = plumb__store_day(now);
        ledger->day_bytes = 0;
    }
    ledger->day_bytes += bytes;
    ledger->ever_bytes += bytes;
}

int64_t plumb__ledger_today(const plumb_ledger *ledger, int64_t now) {
    return is_today(ledger, now) ? ledger->day_bytes : 0;
}

/* ---- Continuations --------------------------------------------------------------------------- */

void plumb__ledger_went_on(plumb_ledger_entry *entry, const int32_t *tokens, int64_t n_tokens) {
    if (n_tokens <= 0 || entry->shared) return;
    if (entry->next_tokens == 0) {
        entry->next_tokens = n_tokens < NEXT_TOKENS ? n_tokens : NEXT_TOKENS;
        entry->next_hash = XXH3_64bits(tokens, (size_t)entry->next_tokens * sizeof *tokens);
    } else if (n_tokens < entry->next_tokens) {
        entry->shared = true; /* a conversation only grows */
    } else {
        entry->shared =
            entry->next_hash != XXH3_64bits(tokens, (size_t)entry->next_tokens * sizeof *tokens);
    }
}

/* ---- Text ------------------------------------------------------------------------------------ */

plumb_status plumb__ledger_print(const plumb_ledger *ledger, char **text, size_t *size,
                                 plumb_error *err) {
    size_t room = (size_t)(ledger->n_entries + 3) * LINE_BYTES, used;
    char *out = malloc(room);
    if (!out) return plumb__fail_memory(err, "ledger", room);
    used = (size_t)snprintf(out, room, FIRST_LINE COUNTS, ledger->day, ledger->day_bytes,
                            ledger->ever_bytes);
    for (int64_t i = 0; i < ledger->n_entries; i++) {
        const plumb_ledger_entry *e = &ledger->entry[i];
        char name[PLUMB_PREFIX_NAME_SIZE];
        plumb__prefix_name(e->id, name);
        used += (size_t)snprintf(out + used, room - used, ENTRY, name, e->used, e->hits,
                                 e->next_tokens, e->next_hash, e->shared);
    }
    used += (size_t)snprintf(out + used, room - used, "check %016" PRIx64 "\n",
                             (uint64_t)XXH3_64bits(out, used));
    *text = out;
    *size = used;
    return PLUMB_OK;
}

typedef struct reader {
    const char *text;
    size_t size, at;
    int64_t line;
    const char *path;
    plumb_error *err;
} reader;

static plumb_status refuse(const reader *r, const char *found, const char *expected) {
    return plumb__fail(r->err, PLUMB_ERROR_FORMAT, r->path,
                       plumb__format("line %" PRId64, r->line).s, (int64_t)r->at, found, "%s",
                       expected);
}

/* The next line, NUL-terminated without its line feed; false if none fits. */
static bool next_line(reader *r, char line[LINE_BYTES]) {
    const char *start = r->text + r->at;
    const char *end = memchr(start, '\n', r->size - r->at);
    size_t length = end ? (size_t)(end - start) : LINE_BYTES;
    r->line++;
    if (length >= LINE_BYTES || memchr(start, 0, length)) return false;
    memcpy(line, start, length);
    line[length] = 0;
    return true;
}

/* Printed again it must be the same, so that what scanf lets pass is refused. */
static bool reads_back(const char *line, const char *again) {
    size_t size = strlen(line);
    return strncmp(line, again, size) == 0 && strcmp(again + size, "\n") == 0;
}

static plumb_status read_counts(reader *r, plumb_ledger *ledger) {
    char line[LINE_BYTES], again[LINE_BYTES] = "";
    bool good = next_line(r, line) &&
                sscanf(line, COUNTS, &ledger->day, &ledger->day_bytes, &ledger->ever_bytes) == 3;
    if (good)
        (void)snprintf(again, sizeof again, COUNTS, ledger->day, ledger->day_bytes,
                       ledger->ever_bytes);
    if (!good || !reads_back(line, again) || ledger->day < -MOST_SECONDS ||
        ledger->day > MOST_SECONDS || ledger->day_bytes < 0 ||
        ledger->ever_bytes < ledger->day_bytes || ledger->ever_bytes > MOST_BYTES)
        return refuse(r, "something else", "day, its bytes and all bytes ever");
    r->at += strlen(line) + 1;
    return PLUMB_OK;
}

static plumb_status read_entry(reader *r, plumb_ledger *ledger) {
    char line[LINE_BYTES], again[LINE_BYTES] = "", name[PLUMB_PREFIX_NAME_SIZE];
    plumb_ledger_entry e = {0};
    int shared = 0;
    bool good =
        next_line(r, line) &&
        sscanf(line,
               "%63s used %" SCNd64 " hits %" SCNd64 " next %" SCNd64 " %16" SCNx64 " shared %d",
               name, &e.used, &e.hits, &e.next_tokens, &e.next_hash, &shared) == 6 &&
        plumb__prefix_parse(name, &e.id);
    if (good)
        (void)snprintf(again, sizeof again, ENTRY, name, e.used, e.hits, e.next_tokens, e.next_hash,
                       shared);
    if (!good || !reads_back(line, again) || e.used < -MOST_SECONDS || e.used > MOST_SECONDS ||
        e.hits < 0 || e.hits > MOST_HITS || e.next_tokens < 0 || e.next_tokens > NEXT_TOKENS ||
        shared < 0 || shared > 1)
        return refuse(r, "something else", "the record of an entry");
    /* In order they need no search, however many there are. */
    if (ledger->n_entries > 0 && compare(ledger->entry[ledger->n_entries - 1].id, e.id) >= 0)
        return refuse(r, name, "entries in the order of their names, each once");
    e.shared = shared == 1;
    plumb_ledger_entry *added = plumb__ledger_add(ledger, e.id);
    if (!added) return plumb__fail_memory(r->err, "ledger", sizeof e);
    *added = e;
    r->at += strlen(line) + 1;
    return PLUMB_OK;
}

/* As far as there is a text. */
static bool begins(const reader *r, const char *beginning) {
    size_t size = strlen(beginning);
    return r->size == 0 || memcmp(r->text, beginning, r->size < size ? r->size : size) == 0;
}

/* Whose it is, and what the last line says of all before it. */
static plumb_status check_text(reader *r) {
    char expected[CHECK_BYTES + 1];
    if (!begins(r, FIRST_WORD))
        return plumb__fail(r->err, PLUMB_ERROR_ARGUMENT, r->path, NULL, -1,
                           "a file that is no ledger", "no file of that name, or a ledger");
    if (!begins(r, FIRST_LINE))
        return plumb__fail(r->err, PLUMB_ERROR_UNSUPPORTED, r->path, "version", -1, "another one",
                           "plumb-ledger 1");
    if (r->size < sizeof FIRST_LINE - 1 + CHECK_BYTES)
        return refuse(r, plumb__format("%zu bytes", r->size).s, "a ledger");
    r->size -= CHECK_BYTES;
    (void)snprintf(expected, sizeof expected, "check %016" PRIx64 "\n",
                   (uint64_t)XXH3_64bits(r->text, r->size));
    if (memcmp(r->text + r->size, expected, CHECK_BYTES) != 0) {
        r->at = r->size;
        expected[CHECK_BYTES - 1] = 0;
        return refuse(r, "another checksum", expected);
    }
    r->at = sizeof FIRST_LINE - 1;
    r->line = 1;
    return PLUMB_OK;
}

plumb_status plumb__ledger_parse(const char *text, size_t size, const char *path,
                                 plumb_ledger *ledger, plumb_error *err) {
    reader r = {.text = text, .size = size, .path = path, .err = err};
    plumb_status status = check_text(&r);
    if (status == PLUMB_OK) status = read_counts(&r, ledger);
    while (status == PLUMB_OK && r.at < r.size) status = read_entry(&r, ledger);
    if (status != PLUMB_OK) plumb__ledger_free(ledger);
    return status;
}
