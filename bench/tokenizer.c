/* Speed of the tokenizer on one core: opening, encoding of English and Chinese text, and drawing a token
 * from logits.
 *
 *   bench_tokenizer [tokenizer.json [text file...]]
 *
 * Without text files it makes 8 MB of each language: sentences of an embedded sample whose clauses
 * are shuffled, so that no long stretch repeats.  "pieces" is the share of splitting alone, "PCRE2"
 * the general way of splitting that other pre-tokenizers take. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plumb.h"
#include "made_weights.h"
#include "text/tokenizer.h"

#define MADE_BYTES ((size_t)8 << 20)
#define RUNS 5

static const char *const english[] = {
    "The engine opened the folder, read its index and found nothing to complain about",
    "a loaf of rye bread keeps for a week in a dry cupboard",
    "by the time the committee had finished, seventeen amendments were on the table",
    "she wrote down every temperature between 1987 and 2004, which nobody had asked for",
    "it doesn't matter how quickly you answer if the question was misunderstood",
    "photosynthesis converts carbon dioxide and water into glucose and oxygen",
    "for (size_t i = 0; i < count; i++) total += values[i];",
    "the harbour freezes in January and thaws, unevenly, towards the end of March",
    "Dr. Okonkwo's lecture on medieval irrigation drew an unexpectedly large audience",
    "prices rose by 3.5% in the second quarter; wages did not",
    "nothing in the contract prevents either party from walking away",
    "they repainted the bicycle bright orange and left it outside the library",
    "interoperability between heterogeneous implementations remains an unsolved problem",
    "see https://example.org/notes?id=42 for the minutes of the meeting",
    "an old lighthouse keeper told us that the storm of '53 had moved the rocks",
    "\"Where,\" he asked, \"did you put the spare keys?\"",
};
static const char *const chinese[] = {
    "\u6625\u5929\u7684\u65f6\u5019\uff0c\u6cb3\u8fb9\u7684\u67f3\u6811\u5148\u53d1\u82bd",
    "\u8fd9\u9879\u7814\u7a76\u5bf9\u6bd4\u4e86\u4e09\u79cd\u4e0d\u540c\u7684\u65b9\u6cd5",
    "\u4ed6\u4eec\u57282019\u5e74\u642c\u5230\u4e86\u5317\u4eac\uff0c\u4f4f\u5728\u80e1\u540c"
    "\u91cc",
    "\u8ba1\u7b97\u673a\u79d1\u5b66\u7684\u57fa\u7840\u662f\u6570\u5b66\u548c\u903b\u8f91",
    "\u8bf7\u628a\u8fd9\u5c01\u4fe1\u4ea4\u7ed9\u56fe\u4e66\u9986\u7684\u7ba1\u7406\u5458",
    "\u6d77\u8fb9\u7684\u706f\u5854\u5df2\u7ecf\u6709\u4e00\u767e\u591a\u5e74\u7684\u5386\u53f2",
    "\u7ecf\u6d4e\u589e\u957f\u653e\u7f13\uff0c\u4f46\u5c31\u4e1a\u5f62\u52bf\u4ecd\u7136\u7a33"
    "\u5b9a",
    "\u8001\u5e08\u8bf4\uff1a\u201c\u660e\u5929\u4e0d\u7528\u5e26\u8bfe\u672c\u3002\u201d",
    "\u4e91\u5357\u7684\u8336\u53f6\u3001\u56db\u5ddd\u7684\u8fa3\u6912\u90fd\u5f88\u6709\u540d",
    "\u7a0b\u5e8f\u8fd0\u884c\u65f6\u51fa\u73b0\u4e86\u5185\u5b58\u4e0d\u8db3\u7684\u9519\u8bef",
    "\u5f88\u5c11\u6709\u4eba\u77e5\u9053\u8fd9\u6761\u5c0f\u8def\u901a\u5411\u5c71\u9876\u7684"
    "\u5bfa\u5e99",
    "\u5149\u5408\u4f5c\u7528\u628a\u4e8c\u6c27\u5316\u78b3\u548c\u6c34\u53d8\u6210\u8461\u8404"
    "\u7cd6",
    "\u5979\u82b1\u4e86\u4e24\u4e2a\u5c0f\u65f6\u4fee\u597d\u4e86\u90a3\u8f86\u65e7\u81ea\u884c"
    "\u8f66",
    "\u5408\u540c\u7b2c\u4e03\u6761\u89c4\u5b9a\uff0c\u53cc\u65b9\u5747\u53ef\u63d0\u524d\u89e3"
    "\u7ea6",
    "\u5bd2\u51ac\u8fc7\u540e\uff0c\u6e2f\u53e3\u7684\u51b0\u6162\u6162\u878d\u5316\u4e86",
    "\u8fd9\u4e2a\u95ee\u9898\u81f3\u4eca\u6ca1\u6709\u4ee4\u4eba\u6ee1\u610f\u7684\u7b54\u6848",
};

static double seconds(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Sentences of one to four clauses; every sentence is drawn anew. */
static char *make_text(const char *const *clauses, size_t n_clauses, const char *comma,
                       const char *stop, size_t *size) {
    char *text = malloc(MADE_BYTES + 1024);
    uint64_t state = 1;
    *size = 0;
    while (text && *size < MADE_BYTES) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint64_t drawn = state >> 33;
        const char *clause = clauses[drawn % n_clauses];
        const char *mark = drawn >> 8 & 3 ? comma : stop;
        memcpy(text + *size, clause, strlen(clause));
        *size += strlen(clause);
        memcpy(text + *size, mark, strlen(mark));
        *size += strlen(mark);
    }
    return text;
}

static char *read_text(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    if (f && fseek(f, 0, SEEK_END) == 0) {
        long end = ftell(f);
        text = end < 0 ? NULL : malloc((size_t)end + 1);
        rewind(f);
        *size = text ? fread(text, 1, (size_t)end, f) : 0;
    }
    if (f) fclose(f);
    return text;
}

static plumb_status count_piece(void *user, const char *piece, size_t size, plumb_error *err) {
    (void)piece;
    (void)size;
    (void)err;
    ++*(int64_t *)user;
    return PLUMB_OK;
}

typedef enum measured { ENCODING, SPLITTING, SPLITTING_GENERAL } measured;

/* Best of RUNS, in MB/s; *count is tokens or pieces.  Negative when the text is refused. */
static double measure(const plumb_text *text, const char *bytes, size_t size, measured what,
                      int64_t *count) {
    double best = 1e30;
    for (int run = 0; run < RUNS; run++) {
        plumb_tokens tokens = {0};
        plumb__split_scratch scratch = {0};
        plumb_status status;
        double start = seconds();
        *count = 0;
        if (what == ENCODING) {
            status = plumb_text_encode(text, bytes, size, true, &tokens, NULL);
            *count = tokens.count;
        } else if (what == SPLITTING) {
            status = plumb__split(&text->splitter, bytes, size, &scratch, count_piece, count, NULL);
        } else {
            status = plumb__split_general(&text->splitter, bytes, size, &scratch, count_piece,
                                          count, NULL);
        }
        double taken = seconds() - start;
        if (taken < best) best = taken;
        plumb__split_scratch_free(&scratch);
        plumb_tokens_free(&tokens);
        if (status != PLUMB_OK) return -1;
    }
    return (double)size / best / 1e6;
}

static void report(const plumb_text *text, const char *name, char *bytes, size_t size) {
    if (!bytes) {
        fprintf(stderr, "%s: cannot read\n", name);
        return;
    }
    int64_t tokens, pieces;
    double encoding = measure(text, bytes, size, ENCODING, &tokens);
    double splitting = measure(text, bytes, size, SPLITTING, &pieces);
    double general = measure(text, bytes, size, SPLITTING_GENERAL, &pieces);
    printf(
        "%-24s %9zu bytes %9lld tokens  encode %6.1f MB/s  pieces %6.1f MB/s  PCRE2 %6.1f MB/s\n",
        name, size, (long long)tokens, encoding, splitting, general);
    free(bytes);
}

/* What a generated token costs beside the model: drawing it from logits of the vocabulary's size. */
static void report_sampling(int64_t vocab) {
    bench_random random;
    float *logits = malloc((size_t)vocab * sizeof *logits);
    if (!logits || !bench_random_open(&random)) {
        fprintf(stderr, "sampling: no memory\n");
        free(logits);
        return;
    }
    bench_draw_floats(&random, 0, 3, logits, vocab);
    plumb_sampling greedy = plumb_sampling_default(), usual = greedy;
    greedy.temperature = 0;
    const plumb_sampling *ways[2] = {&greedy, &usual};
    double best[2] = {1e30, 1e30};
    for (int run = 0; run < 20 * RUNS; run++) {
        int32_t token;
        double start = seconds();
        if (plumb_sample(logits, vocab, ways[run % 2], run, &token, NULL, NULL, 0, NULL) != PLUMB_OK)
            break;
        double taken = seconds() - start;
        if (taken < best[run % 2]) best[run % 2] = taken;
    }
    printf("a token of %lld: likeliest %.0f us, temperature 1 and top-p 0.95 %.0f us\n",
           (long long)vocab, 1e6 * best[0], 1e6 * best[1]);
    bench_random_close(&random);
    free(logits);
}

int main(int argc, char **argv) {
    const char *path = argc > 1 ? argv[1] : TOKENIZER;
    plumb_text *text = NULL;
    plumb_error err;
    double start = seconds();
    if (plumb_text_open(path, &text, &err) != PLUMB_OK) {
        char line[1024];
        plumb_error_line(&err, line, sizeof line);
        fprintf(stderr, "%s\n", line);
        return 1;
    }
    printf("opened in %.1f ms: %lld ids\n", 1e3 * (seconds() - start),
           (long long)plumb_text_vocab_size(text));
    size_t size = 0;
    for (int i = 2; i < argc; i++) {
        char *read = read_text(argv[i], &size);
        report(text, argv[i], read, size);
    }
    if (argc <= 2) {
        char *made = make_text(english, sizeof english / sizeof *english, ", ", ". ", &size);
        report(text, "English", made, size);
        made = make_text(chinese, sizeof chinese / sizeof *chinese, "\uff0c", "\u3002", &size);
        report(text, "Chinese", made, size);
    }
    report_sampling(plumb_text_vocab_size(text));
    plumb_text_close(text);
    return 0;
}
