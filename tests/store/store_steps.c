/* A process that uses a session store, for the tests that restart, disturb and kill it:
 *
 *     store_steps FOLDER CHECKPOINTS resend N     the prompt's first N tokens: prints how many of them the
 *                                                 store had, how many were evaluated, the logits' hash, and
 *                                                 what saving decided
 *     store_steps FOLDER CHECKPOINTS fresh N      the hash without a store
 *     store_steps FOLDER CHECKPOINTS churn SEED   saves and restores until it is killed or, given a fourth
 *                                                 number, so often; in a store of about three entries */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "equal/specimen.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { STORE_BYTES = 60000 };

static plumb_model *model;
static specimen prompt; /* and the model it is for */

static plumb_store *open_store(const char *folder, plumb_store_options options) {
    plumb_store *store = NULL;
    plumb_error err;
    specimen_must(plumb_store_open(folder, model, &options, &store, &err), &err, "store");
    return store;
}

static unsigned long long hash_of(const float *logits) {
    return XXH3_64bits(logits, (size_t)prompt.vocab * sizeof *logits);
}

static void fresh(int64_t n) {
    plumb_session *session = specimen_session(model, 0);
    const float *logits = NULL;
    plumb_error err;
    specimen_must(plumb_session_eval(session, prompt.tokens, n, &logits, &err), &err, "eval");
    printf("hash %016llx\n", hash_of(logits));
    plumb_session_destroy(session);
}

static void resend(const char *folder, int64_t n) {
    plumb_store *store = open_store(folder, (plumb_store_options){0});
    plumb_session *session = specimen_session(model, 0);
    const float *logits = NULL;
    plumb_sync_report report;
    plumb_store_decision decision;
    plumb_error err;
    int64_t shared = 0;
    specimen_must(plumb_store_restore(store, session, prompt.tokens, n, &shared, &err), &err, "restore");
    specimen_must(plumb_session_sync(session, prompt.tokens, n, &logits, &report, &err), &err, "sync");
    specimen_must(plumb_store_save(store, session, &decision, &err), &err, "save");
    printf("shared %lld evaluated %lld replayed %lld hash %016llx: %s\n", (long long)shared,
           (long long)report.evaluated, (long long)report.replayed, hash_of(logits), plumb_store_decision_text(decision));
    plumb_session_destroy(session);
    plumb_store_close(store);
}

/* ---- Much at once -------------------------------------------------------------------------------- */

enum { BRANCHES = 8, PARTS = 40, MOST = 200 };

static int32_t branch[BRANCHES][MOST]; /* agree up to PARTS */

static void make_branches(void) {
    for (int32_t b = 0; b < BRANCHES; b++)
        for (int32_t i = 0; i < MOST; i++)
            branch[b][i] = (i * 37 + i / 5 + (i < PARTS ? 0 : 3 * b)) % (int32_t)prompt.vocab;
}

/* The hash that belongs to a branch and a length, from a session that saw no store. */
static unsigned long long wanted(uint32_t b, int64_t n) {
    static unsigned long long known[BRANCHES][MOST + 1];
    if (known[b][n]) return known[b][n];
    plumb_session *session = specimen_session(model, 0);
    const float *logits = NULL;
    plumb_error err;
    specimen_must(plumb_session_eval(session, branch[b], n, &logits, &err), &err, "eval");
    known[b][n] = hash_of(logits);
    plumb_session_destroy(session);
    return known[b][n];
}

static plumb_store *open_small(const char *folder) {
    return open_store(folder, (plumb_store_options){.size_bytes = STORE_BYTES});
}

/* Branches and lengths come in any order, so that entries grow, supersede each other and give way. */
static void churn(const char *folder, uint32_t seed, long rounds) {
    make_branches();
    plumb_session *session = specimen_session(model, 0);
    plumb_store *store = open_small(folder);
    const float *logits = NULL;
    plumb_error err;
    printf("begun\n");
    fflush(stdout);
    for (long i = 0; rounds == 0 || i < rounds; i++) {
        seed = seed * 1664525 + 1013904223;
        uint32_t b = seed >> 8 & (BRANCHES - 1);
        int64_t n = PARTS + (seed >> 16 & 3) * 40 + 1;
        if (seed >> 31) {
            plumb_session_destroy(session);
            session = specimen_session(model, 0);
        }
        specimen_must(plumb_store_restore(store, session, branch[b], n, NULL, &err), &err, "restore");
        specimen_must(plumb_session_sync(session, branch[b], n, &logits, NULL, &err), &err, "sync");
        if (hash_of(logits) != wanted(b, n)) {
            printf("other bits at %lld of branch %u\n", (long long)n, (unsigned)b);
            exit(1);
        }
        specimen_must(plumb_store_save(store, session, NULL, &err), &err, "save");
        if (i % 20 != 19) continue;
        plumb_store_close(store);
        store = open_small(folder);
    }
    printf("done\n");
    plumb_session_destroy(session);
    plumb_store_close(store);
}

int main(int argc, char **argv) {
    if (argc < 5) return 2;
    /* The small model serves where much is done. */
    prompt = specimen_open(argv[2], strcmp(argv[3], "churn") ? "deep40" : "tiny");
    model = specimen_model(&prompt, 1, NULL);
    long number = strtol(argv[4], NULL, 10);
    if (!strcmp(argv[3], "fresh")) fresh(number);
    if (!strcmp(argv[3], "resend")) resend(argv[1], number);
    if (!strcmp(argv[3], "churn")) churn(argv[1], (uint32_t)number, argc > 5 ? strtol(argv[5], NULL, 10) : 0);
    plumb_model_close(model);
    specimen_close(&prompt);
    return 0;
}
