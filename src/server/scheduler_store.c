/* What outlives the process: sessions in a store, and the tokens of answers with calls in calls.json beside them.
 *
 * Both only ever save time, so their faults are logged and nothing else comes of them.  Writing is done while there
 * is nothing to evaluate, or when it would be too late. */
#include "server/scheduler_state.h"

#include "base/file.h"
#include "base/whole_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS_FILE "calls.json"
#define MOST_CALLS_BYTES (INT64_C(1) << 30)
/* The first bytes of every memory that has a turn, and of a file that is not finished. */
#define CALLS_MAGIC "[{\"messa"
#define CALLS_MARK "plumbcal"

enum { MANY_CALLS = 32 }; /* turns that are written even if there is no quiet moment */

void plumb__scheduler_log(const plumb_scheduler *s, plumb_log_level level, const char *what,
                          const plumb_error *err) {
    char fault[1024] = "", line[1200];
    if (!s->options.log) return;
    if (err) plumb_error_line(err, fault, sizeof fault);
    (void)snprintf(line, sizeof line, "%s%s%s", what, err ? ": " : "", fault);
    s->options.log(s->options.log_user, level, line);
}

/* ---- Calls ------------------------------------------------------------------------------------ */

static bool calls_path(const plumb_scheduler *s, const char *ending, char *path, size_t size) {
    int length = snprintf(path, size, "%s/%s%s", s->folder, CALLS_FILE, ending);
    return length > 0 && (size_t)length < size;
}

static void put_aside(const plumb_scheduler *s, const char *path, const plumb_error *err) {
    char aside[4096];
    plumb__scheduler_log(s, PLUMB_LOG_WARNING, "remembered calls cannot be used and are put aside", err);
    if (calls_path(s, ".damaged", aside, sizeof aside) && rename(path, aside) != 0)
        plumb__scheduler_log(s, PLUMB_LOG_WARNING, strerror(errno), NULL);
}

static void load_calls(plumb_scheduler *s) {
    char path[4096], *text = NULL;
    struct stat there;
    int64_t size = 0;
    plumb_error err = {0};
    if (!calls_path(s, "", path, sizeof path) || stat(path, &there) != 0) return;
    plumb_status status = plumb__file_load(path, MOST_CALLS_BYTES, &text, &size, &err);
    if (status == PLUMB_OK) status = plumb_call_memory_read(s->calls, text, (size_t)size, &err);
    free(text);
    if (status == PLUMB_OK) return;
    if (status == PLUMB_ERROR_IO || status == PLUMB_ERROR_MEMORY)
        plumb__scheduler_log(s, PLUMB_LOG_WARNING, "remembered calls were not read", &err);
    else
        put_aside(s, path, &err);
}

static plumb_status write_text(const char *path, const char *text, size_t size, plumb_error *err) {
    const size_t first = PLUMB_WHOLE_FILE_MARK;
    plumb_whole_file file;
    plumb_status status = plumb__whole_file_open(path, CALLS_MARK, CALLS_MAGIC, &file, err);
    if (status != PLUMB_OK) return status;
    status = plumb__file_write_at(file.fd, path, (int64_t)first, (int64_t)(size - first), text + first, err);
    if (status == PLUMB_OK) status = plumb__file_write_at(file.fd, path, 0, (int64_t)first, text, err);
    if (status == PLUMB_OK) return plumb__whole_file_commit(&file, err);
    plumb__whole_file_abandon(&file);
    return status;
}

static void save_calls(plumb_scheduler *s) {
    char path[4096], *text = NULL;
    size_t size = 0;
    plumb_error err = {0};
    s->unsaved_calls = 0;
    if (!calls_path(s, "", path, sizeof path)) return;
    plumb_status status = plumb_call_memory_write(s->calls, &text, &size, &err);
    if (status == PLUMB_OK && size > PLUMB_WHOLE_FILE_MARK) status = write_text(path, text, size, &err);
    free(text);
    if (status != PLUMB_OK) plumb__scheduler_log(s, PLUMB_LOG_WARNING, "remembered calls were not written", &err);
}

void plumb__scheduler_remember_calls(plumb_scheduler *s, const plumb_slot *slot) {
    const plumb_tokens *tokens = plumb__answer_tokens(slot->answer);
    plumb_error err = {0};
    char *message = slot->job->generation->messages ? plumb__answer_message(slot->answer) : NULL;
    if (!message) return;
    pthread_mutex_lock(&s->calls_lock);
    plumb_status status = plumb_call_memory_add(s->calls, message, slot->job->generation->thinking, tokens->ids,
                                                tokens->count, &err);
    pthread_mutex_unlock(&s->calls_lock);
    if (status != PLUMB_OK)
        plumb__scheduler_log(s, PLUMB_LOG_WARNING, "a call was not remembered", &err);
    else if (s->folder && ++s->unsaved_calls >= MANY_CALLS)
        save_calls(s);
    free(message);
}

/* ---- Sessions --------------------------------------------------------------------------------- */

static void show_store(plumb_scheduler *s) {
    plumb_store_stats stats = {0};
    plumb_error err = {0};
    if (plumb_store_get_stats(s->store, &stats, &err) != PLUMB_OK) {
        plumb__scheduler_log(s, PLUMB_LOG_WARNING, "the session store", &err);
        return;
    }
    pthread_mutex_lock(&s->lock);
    s->stats.store = stats;
    pthread_mutex_unlock(&s->lock);
}

void plumb__scheduler_recall(plumb_scheduler *s, plumb_slot *slot, const plumb_tokens *prompt) {
    plumb_error err = {0};
    if (s->store && plumb_store_restore(s->store, slot->session, prompt->ids, prompt->count, NULL, &err) != PLUMB_OK)
        plumb__scheduler_log(s, PLUMB_LOG_WARNING, "a session was not restored", &err);
}

/* That something is not kept is said when that begins; that there is little to keep is no news. */
static void tell_decision(plumb_scheduler *s, plumb_store_decision decision) {
    char line[256];
    if (decision == PLUMB_STORE_FEW_TOKENS) return;
    if (decision != PLUMB_STORE_WRITTEN && decision != s->kept) {
        (void)snprintf(line, sizeof line, "sessions are not kept: %s", plumb_store_decision_text(decision));
        plumb__scheduler_log(s, PLUMB_LOG_WARNING, line, NULL);
    }
    s->kept = decision;
}

void plumb__scheduler_keep(plumb_scheduler *s, plumb_slot *slot) {
    plumb_store_decision decision = PLUMB_STORE_WRITTEN;
    plumb_error err = {0};
    if (!slot->unsaved) return;
    slot->unsaved = false;
    if (!s->store || plumb_session_length(slot->session) == 0) return;
    if (plumb_store_save(s->store, slot->session, &decision, &err) != PLUMB_OK)
        plumb__scheduler_log(s, PLUMB_LOG_WARNING, "a session was not kept", &err);
    else
        tell_decision(s, decision);
    show_store(s);
}

/* Idle ones: what a job works on is not ready. */
static plumb_slot *first_unsaved(const plumb_scheduler *s) {
    for (int i = 0; i < s->usable_slots; i++)
        if (s->slots[i].unsaved && !s->slots[i].job) return &s->slots[i];
    return NULL;
}

bool plumb__scheduler_has_unsaved(const plumb_scheduler *s) {
    return s->store && (s->unsaved_calls > 0 || first_unsaved(s));
}

void plumb__scheduler_save_one(plumb_scheduler *s) {
    if (s->unsaved_calls > 0) save_calls(s);
    else plumb__scheduler_keep(s, first_unsaved(s));
}

void plumb__scheduler_save_all(plumb_scheduler *s) {
    for (int i = 0; i < s->usable_slots; i++) {
        s->slots[i].unsaved |= s->slots[i].job != NULL;
        plumb__scheduler_keep(s, &s->slots[i]);
    }
    if (s->unsaved_calls > 0) save_calls(s);
}

/* ---- Life ------------------------------------------------------------------------------------- */

plumb_status plumb__scheduler_open_store(plumb_scheduler *s, plumb_error *err) {
    const plumb_store_options options = {.size_bytes = s->options.session_dir_size,
                                         .daily_bytes = s->options.session_dir_daily,
                                         .log = s->options.log,
                                         .log_user = s->options.log_user};
    plumb_status status = plumb_call_memory_create(s->model.vocab_size, 0, &s->calls, err);
    if (status != PLUMB_OK || !s->folder) return status;
    status = plumb_store_open(s->folder, s->options.model, &options, &s->store, err);
    if (status != PLUMB_OK) return status;
    load_calls(s);
    show_store(s);
    return PLUMB_OK;
}

void plumb__scheduler_close_store(plumb_scheduler *s) {
    plumb_store_close(s->store);
    plumb_call_memory_destroy(s->calls);
}
