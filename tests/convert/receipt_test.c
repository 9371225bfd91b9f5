/* Receipts: what is recorded comes back; whatever is damaged or was written since is noticed. */
#include "convert/receipt.h"

#include "fixture.h"
#include "t.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODEL BUILD_DIR "/fixtures/receipt"
#define RECEIPT MODEL ".audit.json"

static plumb_checkpoint *open_small(void) {
    static fixture f;
    plumb_checkpoint *checkpoint = NULL;
    plumb_error err = {0};
    fixture_small(&f, "receipt");
    fixture_save(&f, 0x11);
    (void)unlink(MODEL "/tokenizer.json");
    (void)unlink(RECEIPT);
    T_CHECK(plumb__checkpoint_open(MODEL, NULL, NULL, &checkpoint, &err) == PLUMB_OK, "%s",
            err.found);
    return checkpoint;
}

/* A receipt whose digests count the tensors. */
static void write_receipt(const plumb_checkpoint *checkpoint) {
    static XXH128_hash_t digests[FIXTURE_MAX];
    plumb_receipt *receipt = NULL;
    plumb_error err = {0};
    for (uint64_t i = 0; i < FIXTURE_MAX; i++) digests[i] = (XXH128_hash_t){i, ~i};
    bool good = plumb__receipt_create(&receipt, &err) == PLUMB_OK &&
                plumb__receipt_add_files(receipt, checkpoint, &err) == PLUMB_OK &&
                plumb__receipt_add_tensors(receipt, checkpoint, digests, &err) == PLUMB_OK &&
                plumb__receipt_set_release(receipt, "1017", "by hand", &err) == PLUMB_OK &&
                plumb__receipt_write(receipt, RECEIPT, &err) == PLUMB_OK;
    T_CHECK(good, "%s %s", err.field, err.found);
    plumb__receipt_destroy(receipt);
}

static void digests_as_text(void) {
    /* XXH3-128 of nothing, as published with the algorithm. */
    T_CHECK(!strcmp(plumb__digest_text(XXH3_128bits("", 0)).hex, "99aa06d3014798d86001c324468d497f"),
            "%s", plumb__digest_text(XXH3_128bits("", 0)).hex);
    const XXH128_hash_t digest = {0x0123456789ABCDEF, 0xFEDCBA9876543210};
    T_CHECK(!strcmp(plumb__digest_text(digest).hex, "fedcba98765432100123456789abcdef"), "%s",
            plumb__digest_text(digest).hex);
}

static void paths(void) {
    static const char *const rows[][2] = {
        {"m", "m.audit.json"},       {"a/m", "a/m.audit.json"},   {"a/m/", "a/m.audit.json"},
        {"a/m///", "a/m.audit.json"}, {"/a/m", "/a/m.audit.json"}, {"m.gguf", "m.gguf.audit.json"},
        {".m", ".m.audit.json"},     {"a/..b", "a/..b.audit.json"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *path = plumb__receipt_path(rows[i][0]);
        T_CHECK(path && !strcmp(path, rows[i][1]), "%s: %s", rows[i][0], path);
        free(path);
    }
    static const char *const here[] = {MODEL "/.", MODEL "/./", MODEL "/../receipt", MODEL "/x/.."};
    plumb__checkpoint_close(open_small());
    (void)mkdir(MODEL "/x", 0777);
    char *real = realpath(MODEL, NULL);
    for (size_t i = 0; i < sizeof here / sizeof here[0]; i++) {
        char *path = plumb__receipt_path(here[i]);
        size_t size = strlen(real);
        bool named = !strcmp(here[i], MODEL "/../receipt") || (path && !strncmp(path, real, size));
        T_CHECK(path && named && strstr(path, "receipt.audit.json"), "%s: %s", here[i], path);
        free(path);
    }
    free(real);
    (void)rmdir(MODEL "/x");
}

static int files_beside(const char *begin) {
    int count = 0;
    DIR *d = opendir(BUILD_DIR "/fixtures");
    for (struct dirent *e; d && (e = readdir(d));) count += !strncmp(e->d_name, begin, strlen(begin));
    if (d) closedir(d);
    return count;
}

static void round_trip(void) {
    plumb_checkpoint *checkpoint = open_small();
    plumb_receipt *receipt = NULL;
    plumb_error err = {0};
    write_receipt(checkpoint);
    write_receipt(checkpoint); /* in place of the first */
    T_CHECK(files_beside("receipt.audit") == 1, "only the receipt is left");
    T_CHECK(plumb__receipt_read(RECEIPT, &receipt, &err) == PLUMB_OK, "%s", err.found);
    T_CHECK(!strcmp(plumb__receipt_release(receipt), "1017"), "release");
    T_CHECK(!strcmp(plumb__receipt_evidence(receipt), "by hand"), "evidence");
    T_CHECK(strlen(plumb__receipt_made(receipt)) == 20, "%s", plumb__receipt_made(receipt));
    int64_t count = plumb__checkpoint_count(checkpoint);
    T_CHECK(plumb__receipt_tensors(receipt) == count, "as many tensors");
    for (int64_t i = 0; i < count; i++) {
        char expected[40];
        (void)snprintf(expected, sizeof expected, "%016llx%016llx", ~(unsigned long long)i,
                       (unsigned long long)i);
        const char *found =
            plumb__receipt_digest(receipt, plumb__checkpoint_tensor(checkpoint, i)->name);
        T_CHECK(found && !strcmp(found, expected), "%s", found);
    }
    T_CHECK(!plumb__receipt_digest(receipt, "embed"), "no such tensor");
    plumb__receipt_destroy(receipt);
    plumb__checkpoint_close(checkpoint);
}

static void every_bit_counts(void) {
    plumb__checkpoint_close(open_small());
    plumb_checkpoint *checkpoint = open_small();
    write_receipt(checkpoint);
    plumb__checkpoint_close(checkpoint);
    size_t size;
    char *text = fixture_load(RECEIPT, &size);
    plumb_receipt *receipt = NULL;
    plumb_error err;
    for (size_t i = 0; i < size; i++) {
        text[i] = (char)(text[i] ^ 1 << i % 8);
        T_CHECK(plumb__receipt_parse(text, size, "r", &receipt, &err) == PLUMB_ERROR_FORMAT, "%zu", i);
        text[i] = (char)(text[i] ^ 1 << i % 8);
    }
    for (size_t cut = 0; cut < size; cut++)
        T_CHECK(plumb__receipt_parse(text, cut, "r", &receipt, &err) == PLUMB_ERROR_FORMAT, "%zu", cut);
    T_CHECK(plumb__receipt_parse(text, size, "r", &receipt, &err) == PLUMB_OK, "unharmed");
    plumb__receipt_destroy(receipt);
    free(text);
}

/* Intact, but nothing that plumb writes. */
static void impossible_texts(void) {
#define START "{\n  \"plumb_receipt\": 1, \"made\": \"2026-11-30T12:00:00Z\", \"release\": \"\", \"evidence\": \"\""
    static const struct {
        const char *body, *field; /* body without its closing brace; field NULL: fine */
    } rows[] = {
        {START ", \"files\": {}, \"tensors\": {}", NULL},
        {START ", \"files\": {\"a\": {\"bytes\": 1, \"mtime_ns\": -5}}, \"tensors\": {}", NULL},
        {"{\n  \"plumb_receipt\": 2", "plumb_receipt"},
        {"[\n  1", "line"},
        {"{\n  \"plumb_receipt\": 1, \"made\": 5", "made"},
        {"{\n  \"plumb_receipt\": 1, \"made\": \"2026-11-30T12:00:00Z\\u001b[2J\", \"release\": \"\","
         " \"evidence\": \"\"", "made"},
        {"{\n  \"plumb_receipt\": 1, \"made\": \"2026-11-30\", \"release\": \"\", \"evidence\": \"\"",
         "made"},
        {START ", \"release\": \"\"", "line"}, /* twice */
        {START ", \"tensors\": {}", "files"},
        {START ", \"files\": {}", "tensors"},
        {START ", \"files\": [], \"tensors\": {}", "files"},
        {START ", \"files\": {}, \"tensors\": []", "tensors"},
        {START ", \"files\": {\"../a\": {\"bytes\": 1, \"mtime_ns\": 1}}, \"tensors\": {}", "files"},
        {START ", \"files\": {\"..\": {\"bytes\": 1, \"mtime_ns\": 1}}, \"tensors\": {}", "files"},
        {START ", \"files\": {\"\": {\"bytes\": 1, \"mtime_ns\": 1}}, \"tensors\": {}", "files"},
        {START ", \"files\": {\"a\": {\"bytes\": 1}}, \"tensors\": {}", "a"},
        {START ", \"files\": {\"a\": {\"bytes\": \"1\", \"mtime_ns\": 1}}, \"tensors\": {}", "a"},
        {START ", \"files\": {\"a\": {\"bytes\": 1, \"mtime_ns\": 1, \"digest\": \"00\"}},"
               " \"tensors\": {}", "a"},
        {START ", \"files\": {}, \"tensors\": {\"t\": \"0123\"}", "t"},
        {START ", \"files\": {}, \"tensors\": {\"t\": \"0123456789abcdef0123456789abcdeX\"}", "t"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[1024];
        plumb_receipt *receipt = NULL;
        plumb_error err = {0};
        size_t size = (size_t)snprintf(text, sizeof text, "%s", rows[i].body);
        size += (size_t)snprintf(text + size, sizeof text - size, ",\n  \"digest\": \"%s\"\n}\n",
                                 plumb__digest_text(XXH3_128bits(text, size)).hex);
        plumb_status status = plumb__receipt_parse(text, size, "r", &receipt, &err);
        if (rows[i].field) T_ERROR(&err, PLUMB_ERROR_FORMAT, "r", rows[i].field, rows[i].body);
        else T_CHECK(status == PLUMB_OK, "%s: %s", rows[i].body, err.found);
        plumb__receipt_destroy(receipt);
    }
}

static void set_time(const char *path, long nanoseconds) {
    const struct timespec times[2] = {{1000, 0}, {1000000000, nanoseconds}};
    T_CHECK(utimensat(AT_FDCWD, path, times, 0) == 0, "%s", path);
}

static void files_written_since(void) {
#define SHARD MODEL "/model-00002-of-00002.safetensors"
    plumb_checkpoint *checkpoint = open_small();
    plumb_error err = {0};
    T_CHECK(plumb__receipt_require(MODEL, &err) != PLUMB_OK, "there is none");
    T_ERROR(&err, PLUMB_ERROR_IO, "receipt.audit.json", "receipt", "none");
    set_time(SHARD, 7);
    write_receipt(checkpoint);
    T_CHECK(plumb__receipt_require(MODEL, &err) == PLUMB_OK, "%s %s", err.field, err.found);
    T_CHECK(plumb__receipt_require(MODEL "/", &err) == PLUMB_OK, "%s %s", err.field, err.found);

    set_time(SHARD, 8);
    T_CHECK(plumb__receipt_require(MODEL, &err) != PLUMB_OK, "a nanosecond later");
    T_ERROR(&err, PLUMB_ERROR_FORMAT, "model-00002", "receipt", "time");
    set_time(SHARD, 7);
    T_CHECK(truncate(SHARD, 100000) == 0, "longer");
    set_time(SHARD, 7);
    T_CHECK(plumb__receipt_require(MODEL, &err) != PLUMB_OK, "another size");
    T_ERROR(&err, PLUMB_ERROR_FORMAT, "model-00002", "receipt", "size");
    T_CHECK(unlink(SHARD) == 0, "gone");
    T_CHECK(plumb__receipt_require(MODEL, &err) != PLUMB_OK, "gone");
    T_ERROR(&err, PLUMB_ERROR_IO, "model-00002", "receipt", "gone");
    plumb__checkpoint_close(checkpoint);

    checkpoint = open_small();
    write_receipt(checkpoint);
    fixture_write(MODEL, "tokenizer.json", "{}", 2);
    T_CHECK(plumb__receipt_require(MODEL, &err) != PLUMB_OK, "a file more");
    T_ERROR(&err, PLUMB_ERROR_FORMAT, "fixtures/receipt", "tokenizer.json", "a file more");
    (void)unlink(MODEL "/tokenizer.json");
    T_CHECK(plumb__receipt_require(MODEL, &err) == PLUMB_OK, "%s %s", err.field, err.found);
    fixture_write(BUILD_DIR "/fixtures", "receipt.audit.json", "{}\n", 3);
    T_CHECK(plumb__receipt_require(MODEL, &err) != PLUMB_OK, "a damaged receipt");
    T_ERROR(&err, PLUMB_ERROR_FORMAT, "receipt.audit.json", "digest", "damaged");
    plumb__checkpoint_close(checkpoint);
}

static void content_of_small_files(void) {
    plumb_checkpoint *checkpoint = open_small();
    plumb_receipt *then = NULL, *now = NULL, *later = NULL;
    plumb_error err = {0};
    write_receipt(checkpoint);
    T_CHECK(plumb__receipt_read(RECEIPT, &then, &err) == PLUMB_OK, "%s", err.found);
    set_time(MODEL "/config.json", 1);
    T_CHECK(plumb__receipt_create(&now, &err) == PLUMB_OK &&
            plumb__receipt_add_files(now, checkpoint, &err) == PLUMB_OK, "%s", err.found);
    T_CHECK(plumb__receipt_compare_small_files(now, then, MODEL, &err) == PLUMB_OK, "%s", err.found);
    fixture_write(MODEL, "config.json", "{}", 2);
    T_CHECK(plumb__receipt_create(&later, &err) == PLUMB_OK &&
            plumb__receipt_add_files(later, checkpoint, &err) == PLUMB_OK, "%s", err.found);
    T_CHECK(plumb__receipt_compare_small_files(later, then, MODEL, &err) != PLUMB_OK, "changed");
    T_ERROR(&err, PLUMB_ERROR_VALUE, "fixtures/receipt", "config.json", "changed");
    plumb__receipt_destroy(then);
    plumb__receipt_destroy(now);
    plumb__receipt_destroy(later);
    plumb__checkpoint_close(checkpoint);
}

static void where_nothing_can_be_written(void) {
    plumb_receipt *receipt = NULL;
    plumb_error err = {0};
    T_CHECK(plumb__receipt_create(&receipt, &err) == PLUMB_OK, "created");
    T_CHECK(plumb__receipt_write(receipt, MODEL "/no/r", &err) != PLUMB_OK, "no such folder");
    T_ERROR(&err, PLUMB_ERROR_IO, "/no/r", "receipt", "no such folder");
    (void)mkdir(MODEL ".folder", 0777);
    T_CHECK(plumb__receipt_write(receipt, MODEL ".folder", &err) != PLUMB_OK, "a folder");
    T_ERROR(&err, PLUMB_ERROR_IO, "receipt.folder", "receipt", "a folder");
    T_CHECK(files_beside("receipt.folder") == 1, "nothing is left behind");
    (void)rmdir(MODEL ".folder");
    plumb__receipt_destroy(receipt);
}

T_MAIN({"digests_as_text", digests_as_text}, {"paths", paths}, {"round_trip", round_trip},
       {"every_bit_counts", every_bit_counts}, {"impossible_texts", impossible_texts},
       {"files_written_since", files_written_since},
       {"content_of_small_files", content_of_small_files},
       {"where_nothing_can_be_written", where_nothing_can_be_written})
