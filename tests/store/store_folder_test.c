/* What may lie in the folder of a session store besides good entries: damaged ones, those of other models,
 * other people's files, what killed writers left. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scene.h"

static bool holds(const char *path, const char *text) {
    char found[64] = "";
    FILE *file = fopen(path, "rb");
    size_t size = file ? fread(found, 1, sizeof found - 1, file) : 0;
    if (file) (void)fclose(file);
    return size == strlen(text) && !memcmp(found, text, size);
}

/* Changes one byte, counted from the end when negative. */
static void flip_byte(const char *path, long at) {
    FILE *file = fopen(path, "r+b");
    int byte = 0;
    if (file && fseek(file, at, at < 0 ? SEEK_END : SEEK_SET) == 0) byte = fgetc(file);
    T_CHECK(file && fseek(file, at, at < 0 ? SEEK_END : SEEK_SET) == 0 && fputc(byte ^ 1, file) != EOF, "%s", path);
    if (file) (void)fclose(file);
}

static void damaged_entries(void) {
    sequence s = branch(MOST, 0);
    plumb_store *store = new_store("damaged", (plumb_store_options){0});
    T_CHECK(save_sequence(store, branch(97, 2), LONG + 32) == PLUMB_STORE_WRITTEN, "nearly as good");
    T_CHECK(save_sequence(store, s, LONG + 32) == PLUMB_STORE_WRITTEN, "the best");
    flip_byte(entry_path("damaged", s, LONG + 32), -1);
    T_CHECK(restore_and_go_on(store, s, LONG) == 97, "one that was opened before, and left for the best");
    plumb_store_close(store);

    store = new_store("damaged", (plumb_store_options){0});
    T_CHECK(save_sequence(store, branch(60, 1), LONG) == PLUMB_STORE_WRITTEN, "a branch");
    T_CHECK(save_sequence(store, s, LONG) == PLUMB_STORE_WRITTEN, "the best");
    /* The last byte: it opens, and fails when it is restored. */
    flip_byte(entry_path("damaged", s, LONG), -1);
    T_CHECK(restore_and_go_on(store, s, LONG) == 60, "the next best");
    T_CHECK(strstr(said, "skipped") && strstr(said, "checksum"), "%s", said);
    said[0] = 0;
    T_CHECK(restore_and_go_on(store, s, LONG) == 60 && !said[0], "said once");
    T_CHECK(save_sequence(store, s, LONG) == PLUMB_STORE_WRITTEN, "written again in its place");
    T_CHECK(restore_and_go_on(store, s, LONG) == LONG, "and good");
    plumb_store_close(store);
    /* In the header, and cut short: told when the folder is looked at, and the first to give way. */
    flip_byte(entry_path("damaged", s, LONG), 20);
    T_CHECK(truncate(entry_path("damaged", branch(60, 1), LONG), 100) == 0, "cut");
    said[0] = 0;
    store = open_store("damaged", (plumb_store_options){0}, model);
    T_CHECK(strstr(said, "header") != NULL, "%s", said);
    T_CHECK(stats_of(store).entries == 2 && stats_of(store).usable == 0, "kept");
    T_CHECK(restore_and_go_on(store, s, LONG) == 0, "a miss");
    plumb_store_close(store);
    store = open_store("damaged", (plumb_store_options){.size_bytes = entry_bytes(s, LONG) + 100}, model);
    T_CHECK(save_sequence(store, branch(0, 2), LONG) == PLUMB_STORE_WRITTEN, "another");
    T_CHECK(!exists(entry_path("damaged", s, LONG)) && exists(entry_path("damaged", branch(60, 1), LONG)),
            "no more than needed gave way");
    plumb_store_close(store);
    /* A name that belongs to another content. */
    T_CHECK(rename(entry_path("damaged", branch(0, 2), LONG), path_in("damaged", "kept")) == 0, "out");
    T_CHECK(rename(path_in("damaged", "kept"), entry_path("damaged", s, LONG)) == 0, "in");
    said[0] = 0;
    store = open_store("damaged", (plumb_store_options){0}, model);
    T_CHECK(strstr(said, "another snapshot") != NULL, "%s", said);
    T_CHECK(restore_and_go_on(store, s, LONG) == 0 && restore_and_go_on(store, branch(0, 2), LONG) == 0, "misses");
    plumb_store_close(store);
}

/* Two models use one folder: neither sees the other's entries, nor throws them away. */
static void other_models(void) {
    sequence s = branch(MOST, 0);
    plumb_store *one = new_store("models", (plumb_store_options){0});
    T_CHECK(save_sequence(one, s, LONG) == PLUMB_STORE_WRITTEN, "one");
    specimen tiny2 = tiny;
    (void)snprintf(tiny2.folder, sizeof tiny2.folder, "%s", BUILD_DIR "/checkpoints/tiny-seed2");
    plumb_model *model2 = specimen_model(&tiny2, 1, NULL);
    plumb_store *two = open_store("models", (plumb_store_options){0}, model2);
    T_CHECK(strstr(said, "1 of 1 entries are of another model") != NULL, "%s", said);
    T_CHECK(restore_and_go_on(two, s, LONG) == 0, "a miss");
    T_CHECK(save_sequence(two, s, LONG) == PLUMB_STORE_WRITTEN, "the same tokens, another file");
    T_CHECK(stats_of(two).entries == 2 && stats_of(two).usable == 1, "two");
    T_CHECK(restore_and_go_on(one, s, LONG) == LONG && restore_and_go_on(two, s, LONG) == LONG, "each its own");
    T_CHECK(save_sequence(two, s, LONG + 40) == PLUMB_STORE_WRITTEN, "more");
    T_CHECK(stats_of(one).entries == 2 && restore_and_go_on(one, s, LONG) == LONG, "supersedes its own only");
    plumb_session *session = specimen_session(model2, 0);
    plumb_error err;
    T_CHECK(plumb_store_restore(one, session, s.ids, LONG, NULL, &err) == PLUMB_ERROR_ARGUMENT, "another's session");
    T_CHECK(plumb_store_save(one, session, NULL, &err) == PLUMB_ERROR_ARGUMENT, "another's session");
    plumb_session_destroy(session);
    plumb_store_close(one);
    plumb_store_close(two);
    plumb_model_close(model2);
    plumb_store_rules a = {{1}, 7}, b = a, c = a;
    b.arithmetic_revision++;
    c.model[15]++;
    T_CHECK(plumb__store_rules_equal(&a, &a) && !plumb__store_rules_equal(&a, &b) && !plumb__store_rules_equal(&a, &c), "");
}

/* Only what is provably ours and left over goes; everything else stays as it is. */
static void strange_files(void) {
#define STRANGE "000000100-00112233445566778899aabbccddeeff.plumb-session"
    static const struct {
        const char *name, *bytes;
        size_t size;
        bool stays;
    } files[] = {{"README", "mine", 4, true},
                 {"notes.plumb-session", "PLUMBSNP and more", 17, true},
                 {STRANGE, "mine", 4, true},
                 {"000000101-00112233445566778899aabbccddeeff.plumb-session.part", "PLUMBprt1234", 12, false},
                 {"000000102-00112233445566778899aabbccddeeff.plumb-session.part", "", 0, false},
                 {"000000103-00112233445566778899aabbccddeeff.plumb-session.part", "PLUMBSNP1234", 12, false},
                 {"000000104-00112233445566778899aabbccddeeff.plumb-session.part", "somebody's", 10, true},
                 {"000000107-00112233445566778899aabbccddeeff.plumb-session.part", "\0\0\0\0\0\0\0\0\0", 9, false},
                 {"000000108-00112233445566778899aabbccddeeff.plumb-session.part", "PLUMB", 5, true},
                 {"README.part", "PLUMBprt1234", 12, true}};
    plumb_store *store = new_store("strange", (plumb_store_options){0});
    for (int saved = 0; saved < 2; saved++) {
        for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
            write_file(path_in("strange", files[i].name), files[i].bytes, files[i].size);
        if (saved) {
            T_CHECK(save_sequence(store, branch(0, 0), LONG) == PLUMB_STORE_WRITTEN, "save");
        } else {
            plumb_store_close(store);
            store = open_store("strange", (plumb_store_options){0}, model);
        }
        for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
            T_CHECK(exists(path_in("strange", files[i].name)) == files[i].stays, "%s", files[i].name);
    }
    T_CHECK(mkdir(path_in("strange", "000000105-00112233445566778899aabbccddeeff.plumb-session"), 0700) == 0, "a folder");
    T_CHECK(symlink("/dev/null", path_in("strange", "000000106-00112233445566778899aabbccddeeff.plumb-session")) == 0, "a link");
    T_CHECK(stats_of(store).entries == 1 && !said[0], "%s", said);
    plumb_store_close(store);
    (void)fresh_folder("strange");
}

/* What has the name that an entry would get stays as it is; nothing gives way to what cannot be written,
 * and nothing is counted. */
static void names_that_are_taken(void) {
    sequence s = branch(MOST, 0), other = branch(0, 1);
    set_up();
    const int64_t size = entry_bytes(s, LONG);
    plumb_store *store = new_store("taken", (plumb_store_options){.size_bytes = size});
    T_CHECK(save_sequence(store, other, LONG) == PLUMB_STORE_WRITTEN, "something");
    plumb_session *session = session_of(model, s, LONG);
    char path[1024], outside[1024];
    plumb_error err;
    (void)snprintf(path, sizeof path, "%s", entry_path("taken", s, LONG));
    (void)snprintf(outside, sizeof outside, "%s", path_in("taken", "outside"));
    write_file(path, "mine", 4);
    T_CHECK(plumb_store_save(store, session, NULL, &err) == PLUMB_ERROR_ARGUMENT && !strcmp(err.found, "a file that is no snapshot"),
            "%s", err.found);
    T_CHECK(holds(path, "mine"), "a file");
    T_CHECK(rename(entry_path("taken", other, LONG), outside) == 0 && unlink(path) == 0 && symlink("outside", path) == 0, "a link");
    T_CHECK(plumb_store_save(store, session, NULL, &err) == PLUMB_ERROR_ARGUMENT && !strcmp(err.found, "something that is no plain file"),
            "%s", err.found);
    T_CHECK(rename(outside, entry_path("taken", other, LONG)) == 0 && unlink(path) == 0, "back");
    T_CHECK(restore_and_go_on(store, other, LONG) == LONG, "what the link led to");
    T_CHECK(mkdir(path, 0700) == 0 && plumb_store_save(store, session, NULL, &err) == PLUMB_ERROR_ARGUMENT, "a folder");
    T_CHECK(stats_of(store).entries == 1 && stats_of(store).written_ever == size, "nothing gave way or was counted");
    plumb_session_destroy(session);
    plumb_store_close(store);
    (void)fresh_folder("taken");
}

/* A folder that people keep accounts in, or a newer program's, is none for a store. */
static void somebodys_ledger(void) {
    static const struct {
        const char *text;
        plumb_status status;
    } cases[] = {{"2024/01/01 accounts\n", PLUMB_ERROR_ARGUMENT}, {"plumb", PLUMB_OK}, {"", PLUMB_OK},
                 {"plumb-ledger 2\nmore\n", PLUMB_ERROR_UNSUPPORTED}, {"plumb-ledger 1\nless\n", PLUMB_OK}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        plumb_store *store = new_store("accounts", (plumb_store_options){0});
        plumb_store *later = NULL;
        char *path = path_in("accounts", "ledger");
        plumb_error err;
        write_file(path, cases[i].text, strlen(cases[i].text));
        T_CHECK(plumb_store_open(folder("accounts"), model, NULL, &later, &err) == cases[i].status, "%s", cases[i].text);
        plumb_store_close(later);
        /* Put there while the store is open. */
        plumb_session *session = session_of(model, branch(MOST, 0), LONG);
        T_CHECK(plumb_store_save(store, session, NULL, &err) == cases[i].status, "%s", cases[i].text);
        T_CHECK(holds(path, cases[i].text) == (cases[i].status != PLUMB_OK), "%s", cases[i].text);
        plumb_session_destroy(session);
        plumb_store_close(store);
    }
}

static void damaged_ledger(void) {
    sequence s = branch(MOST, 0);
    plumb_store *store = new_store("ledger", (plumb_store_options){0});
    T_CHECK(save_sequence(store, s, LONG) == PLUMB_STORE_WRITTEN, "save");
    flip_byte(path_in("ledger", "ledger"), 20);
    T_CHECK(stats_of(store).written_ever == 0, "counting begins anew");
    T_CHECK(strstr(said, "counting begins anew") && strstr(said, "checksum"), "%s", said);
    T_CHECK(restore_and_go_on(store, s, LONG) == LONG, "entries are as they were");
    said[0] = 0;
    T_CHECK(stats_of(store).entries == 1 && !said[0], "and a new ledger is there");
    write_file(path_in("ledger", "ledger.part"), "plumbprt", 8); /* of a writer that was killed */
    T_CHECK(save_sequence(store, branch(0, 1), LONG) == PLUMB_STORE_WRITTEN, "save");
    T_CHECK(!exists(path_in("ledger", "ledger.part")), "became the ledger");
    plumb_store_close(store);
}

T_MAIN({"damaged_entries", damaged_entries}, {"other_models", other_models},
       {"strange_files", strange_files}, {"names_that_are_taken", names_that_are_taken},
       {"somebodys_ledger", somebodys_ledger}, {"damaged_ledger", damaged_ledger})
