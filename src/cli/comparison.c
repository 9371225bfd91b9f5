/* Comparing dumps; see comparison.h. */
#include "cli/comparison.h"

#include "base/alloc.h"
#include "base/error.h"
#include "cli/logits_file.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- What is to be compared ----------------------------------------------------------------- */

static char *path_of(const char *folder, const char *name) {
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);
    if (path != NULL) snprintf(path, size, "%s/%s", folder, name);
    return path;
}

static plumb_status add_pair(cli_comparison *c, char *name, char *a, char *b, plumb_error *err) {
    cli_dump_pair *grown = plumb__grow(c->pairs, &c->room_pairs, c->n_pairs + 1, sizeof *grown);
    if (grown != NULL) c->pairs = grown;
    if (grown == NULL || name == NULL || a == NULL || b == NULL) {
        free(name);
        free(a);
        free(b);
        return plumb__fail_memory(err, "names of dumps", sizeof *grown);
    }
    c->pairs[c->n_pairs++] = (cli_dump_pair){.name = name, .a = a, .b = b};
    return PLUMB_OK;
}

static plumb_status add_only(cli_comparison *c, char *path, plumb_error *err) {
    char **grown = plumb__grow(c->only, &c->room_only, c->n_only + 1, sizeof *grown);
    if (grown != NULL) c->only = grown;
    if (grown == NULL || path == NULL) {
        free(path);
        return plumb__fail_memory(err, "names of dumps", sizeof *grown);
    }
    c->only[c->n_only++] = path;
    return PLUMB_OK;
}

/* Files, not folders and nothing hidden. */
static int is_dump(const struct dirent *entry) {
    return entry->d_name[0] != '.' && entry->d_type != DT_DIR;
}

/* By bytes, whatever the locale. */
static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static plumb_status fail_folder(plumb_error *err, const char *path) {
    return plumb__fail(err, PLUMB_ERROR_IO, path, NULL, -1, strerror(errno), "a readable folder");
}

/* Both lists are sorted: one walk along them. */
static plumb_status line_up(cli_comparison *c, const char *a, struct dirent **names_a, int n_a,
                            const char *b, struct dirent **names_b, int n_b, plumb_error *err) {
    plumb_status status = PLUMB_OK;
    for (int i = 0, j = 0; (i < n_a || j < n_b) && status == PLUMB_OK;) {
        int order = i == n_a ? 1 : j == n_b ? -1 : strcmp(names_a[i]->d_name, names_b[j]->d_name);
        if (order == 0) {
            const char *name = names_a[i]->d_name;
            status = add_pair(c, strdup(name), path_of(a, name), path_of(b, name), err);
        } else if (order < 0) {
            status = add_only(c, path_of(a, names_a[i]->d_name), err);
        } else {
            status = add_only(c, path_of(b, names_b[j]->d_name), err);
        }
        i += order <= 0;
        j += order >= 0;
    }
    return status;
}

static void free_names(struct dirent **names, int n) {
    for (int i = 0; i < n; i++) free(names[i]);
    free(names);
}

static plumb_status open_folders(cli_comparison *c, const char *a, const char *b,
                                 plumb_error *err) {
    struct dirent **names_a = NULL, **names_b = NULL;
    plumb_status status;
    int n_b = 0, n_a = scandir(a, &names_a, is_dump, by_name);
    if (n_a < 0) return fail_folder(err, a);
    n_b = scandir(b, &names_b, is_dump, by_name);
    if (n_b < 0)
        status = fail_folder(err, b);
    else
        status = line_up(c, a, names_a, n_a, b, names_b, n_b, err);
    if (status == PLUMB_OK && c->n_pairs == 0)
        status = plumb__fail(err, PLUMB_ERROR_ARGUMENT, b, NULL, -1, "no file of that name",
                             "names that %.150s has too", a);
    free_names(names_a, n_a);
    free_names(names_b, n_b);
    return status;
}

static plumb_status look(const char *path, bool *folder, plumb_error *err) {
    struct stat info;
    if (stat(path, &info) != 0)
        return plumb__fail(err, PLUMB_ERROR_IO, path, NULL, -1, strerror(errno),
                           "a dump of logits or a folder of them");
    *folder = S_ISDIR(info.st_mode);
    return PLUMB_OK;
}

plumb_status cli_comparison_open(const char *a, const char *b, cli_comparison *comparison,
                                 plumb_error *err) {
    *comparison = (cli_comparison){0};
    bool folder = false;
    plumb_status status = look(a, &comparison->folders, err);
    if (status == PLUMB_OK) status = look(b, &folder, err);
    if (status != PLUMB_OK) return status;
    if (folder != comparison->folders)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, b, NULL, -1, folder ? "a folder" : "a file",
                           "%s, as %.150s is", folder ? "a file" : "a folder", a);
    if (folder) return open_folders(comparison, a, b, err);
    return add_pair(comparison, strdup(a), strdup(a), strdup(b), err);
}

void cli_comparison_free(cli_comparison *comparison) {
    for (int64_t i = 0; i < comparison->n_pairs; i++) {
        free(comparison->pairs[i].name);
        free(comparison->pairs[i].a);
        free(comparison->pairs[i].b);
    }
    for (int64_t i = 0; i < comparison->n_only; i++) free(comparison->only[i]);
    free(comparison->pairs);
    free(comparison->only);
    *comparison = (cli_comparison){0};
}

/* ---- Comparing ------------------------------------------------------------------------------ */

typedef struct medians {
    cli_median numbers, rows;
} medians;

typedef struct dumps {
    cli_logits_file a, b;
} dumps;

static void close_dumps(dumps *d) {
    cli_logits_file_close(&d->a);
    cli_logits_file_close(&d->b);
}

/* Close them in any case. */
static plumb_status open_dumps(const cli_dump_pair *pair, dumps *d, plumb_error *err) {
    d->b = (cli_logits_file){.fd = -1};
    plumb_status status = cli_logits_file_open(pair->a, &d->a, err);
    if (status == PLUMB_OK) status = cli_logits_file_open(pair->b, &d->b, err);
    return status;
}

static plumb_status default_vocabulary(const cli_comparison *c, int64_t *vocab, plumb_error *err) {
    const int64_t row_bytes = CLI_RELEASED_VOCABULARY * (int64_t)sizeof(float);
    for (int64_t i = 0; i < c->n_pairs; i++) {
        dumps d;
        plumb_status status = open_dumps(&c->pairs[i], &d, err);
        if (status == PLUMB_OK && (d.a.bytes % row_bytes != 0 || d.b.bytes % row_bytes != 0))
            status = plumb__fail(
                err, PLUMB_ERROR_ARGUMENT,
                d.a.bytes % row_bytes != 0 ? c->pairs[i].a : c->pairs[i].b, NULL, -1,
                "a size that is no multiple of 129280 float32",
                "the size of the vocabulary, by --vocab or by -m");
        close_dumps(&d);
        if (status != PLUMB_OK) return status;
    }
    *vocab = CLI_RELEASED_VOCABULARY;
    return PLUMB_OK;
}

/* Adds a row to the medians; both passes come here. */
static void add_distances(medians *m, const float *a, const float *b, int64_t vocab) {
    double largest = 0;
    for (int64_t i = 0; i < vocab; i++) {
        double distance = fabs((double)a[i] - (double)b[i]);
        if (distance > largest) largest = distance;
        cli_median_add(&m->numbers, distance, 1);
    }
    cli_median_add(&m->rows, largest, 1);
}

static void add_equal_rows(medians *m, int64_t rows, int64_t vocab) {
    cli_median_add(&m->numbers, 0, rows * vocab);
    cli_median_add(&m->rows, 0, rows);
}

/* One pass over a pair; the first one fills its tally. */
static plumb_status pass_over(cli_dump_pair *pair, dumps *d, int64_t vocab, bool first, medians *m,
                              plumb_error *err) {
    plumb_status status = cli_logits_file_shape(&d->a, vocab, err);
    if (status == PLUMB_OK) status = cli_logits_file_shape(&d->b, vocab, err);
    if (status != PLUMB_OK) return status;
    pair->rows_a = d->a.rows;
    pair->rows_b = d->b.rows;
    int64_t rows = d->a.rows < d->b.rows ? d->a.rows : d->b.rows;
    for (int64_t i = 0; i < rows; i++) {
        const float *a = NULL, *b = NULL;
        status = cli_logits_file_row(&d->a, i, &a, err);
        if (status == PLUMB_OK) status = cli_logits_file_row(&d->b, i, &b, err);
        if (status != PLUMB_OK) return status;
        if (first) cli_logits_tally_row(&pair->tally, a, b, vocab);
        if (memcmp(a, b, (size_t)vocab * sizeof *a) == 0)
            add_equal_rows(m, 1, vocab);
        else
            add_distances(m, a, b, vocab);
    }
    return PLUMB_OK;
}

static plumb_status pass_over_all(cli_comparison *c, bool first, medians *m, plumb_error *err) {
    for (int64_t i = 0; i < c->n_pairs; i++) {
        cli_dump_pair *pair = &c->pairs[i];
        if (!first && pair->tally.differing == 0) {
            add_equal_rows(m, pair->tally.rows, c->vocab);
            continue;
        }
        dumps d;
        plumb_status status = open_dumps(pair, &d, err);
        if (status == PLUMB_OK) status = pass_over(pair, &d, c->vocab, first, m, err);
        close_dumps(&d);
        if (status != PLUMB_OK) return status;
    }
    return PLUMB_OK;
}

static void sum_up(cli_comparison *c) {
    for (int64_t i = 0; i < c->n_pairs; i++) {
        const cli_dump_pair *pair = &c->pairs[i];
        if (c->total.differing == 0) c->first_pair = i;
        cli_logits_tally_add(&c->total, &pair->tally);
        if (pair->rows_a != pair->rows_b) c->lengths_differ = true;
    }
}

plumb_status cli_comparison_run(cli_comparison *comparison, int64_t vocab, plumb_error *err) {
    plumb_status status = PLUMB_OK;
    if (vocab == 0) status = default_vocabulary(comparison, &vocab, err);
    if (status != PLUMB_OK) return status;
    comparison->vocab = vocab;
    medians *m = calloc(1, sizeof *m);
    if (m == NULL) return plumb__fail_memory(err, "medians", sizeof *m);
    status = pass_over_all(comparison, true, m, err);
    if (status == PLUMB_OK) sum_up(comparison);
    if (status == PLUMB_OK && comparison->total.differing > 0) {
        cli_median_next_pass(&m->numbers);
        cli_median_next_pass(&m->rows);
        status = pass_over_all(comparison, false, m, err);
        comparison->median = cli_median_value(&m->numbers);
        comparison->row_median = cli_median_value(&m->rows);
    }
    free(m);
    return status;
}

void cli_comparison_first(const cli_comparison *comparison, char *words, size_t size) {
    const cli_first_difference *f = &comparison->total.first;
    const char *name = comparison->pairs[comparison->first_pair].name;
    uint32_t a, b;
    memcpy(&a, &f->a, sizeof a);
    memcpy(&b, &f->b, sizeof b);
    snprintf(words, size, "%s%srow %lld, token %lld: %.9g (0x%08x) and %.9g (0x%08x)",
             comparison->folders ? name : "", comparison->folders ? ", " : "", (long long)f->row,
             (long long)f->token, (double)f->a, a, (double)f->b, b);
}
