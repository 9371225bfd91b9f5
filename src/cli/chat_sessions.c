/* See chat_sessions.h.  A store only ever saves time, so that its faults are told and nothing else. */
#include "cli/chat_sessions.h"

#include "base/error.h"
#include "cli/chat_note.h"
#include "cli/output.h"
#include "format/snapshot.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- The store ---- */

bool cli_sessions_check(const cli_options *options) {
    if (options->session_dir != NULL || (!cli_option_given(options, "session-dir-size") &&
                                         !cli_option_given(options, "session-dir-daily")))
        return true;
    cli_complain(options, "--session-dir-size and --session-dir-daily need --session-dir DIR");
    return false;
}

int cli_sessions_open(cli_chat *chat) {
    const cli_options *options = chat->runtime.options;
    if (options->session_dir == NULL) return CLI_OK;
    const plumb_store_options store_options = {.size_bytes = options->session_dir_size,
                                               .daily_bytes = options->session_dir_daily,
                                               .log = cli_log,
                                               .log_user = (void *)options};
    plumb_error err = {0};
    if (plumb_store_open(options->session_dir, chat->runtime.model, &store_options, &chat->store,
                         &err) == PLUMB_OK)
        return CLI_OK;
    return cli_report(options, &err);
}

void cli_sessions_close(cli_chat *chat) {
    plumb_store_close(chat->store);
    chat->store = NULL;
    free(chat->loaded_bias);
    chat->loaded_bias = NULL;
}

void cli_sessions_recall(cli_chat *chat, const plumb_tokens *prompt) {
    plumb_error err = {0};
    if (chat->store == NULL) return;
    if (plumb_store_restore(chat->store, chat->runtime.session, prompt->ids, prompt->count, NULL,
                            &err) != PLUMB_OK)
        (void)cli_report(chat->runtime.options, &err);
}

/* Why nothing was written is said when it begins, not after every turn; that there is little to
 * write is no news. */
void cli_sessions_keep(cli_chat *chat) {
    const cli_options *options = chat->runtime.options;
    plumb_store_decision decision = PLUMB_STORE_WRITTEN;
    plumb_error err = {0};
    if (chat->store == NULL) return;
    if (plumb_store_save(chat->store, chat->runtime.session, &decision, &err) != PLUMB_OK) {
        (void)cli_report(options, &err);
        return;
    }
    if (decision == PLUMB_STORE_FEW_TOKENS) return;
    if (decision != PLUMB_STORE_WRITTEN && decision != chat->kept && !options->quiet)
        cli_complain(options, "the session is not kept in %s: %s", options->session_dir,
                     plumb_store_decision_text(decision));
    chat->kept = decision;
}

void cli_sessions_tell(cli_chat *chat) {
    const cli_options *options = chat->runtime.options;
    plumb_store_stats stats;
    plumb_error err = {0};
    if (chat->store == NULL) return;
    if (plumb_store_get_stats(chat->store, &stats, &err) != PLUMB_OK) {
        (void)cli_report(options, &err);
        return;
    }
    cli_complain(options, "sessions in %s: %s, %s bytes; written today %s bytes, ever %s", options->session_dir,
                 cli_count(stats.entries, "entry", "entries").text, cli_grouped(stats.bytes).text,
                 cli_grouped(stats.written_today).text, cli_grouped(stats.written_ever).text);
}

/* ---- /save ---- */

/* A file that is there must be a snapshot; of what is no file, saving says the rest. */
static plumb_status check_target(const char *path, plumb_error *err) {
    struct stat there;
    if (stat(path, &there) != 0 || !S_ISREG(there.st_mode)) return PLUMB_OK;
    return plumb__snapshot_begins(path, err);
}

/* The session still holds what was said before a /reset or /undo; whoever gets the file must not. */
static plumb_status forget_what_was_taken_back(const cli_chat *chat, plumb_error *err) {
    plumb_session *session = chat->runtime.session;
    if (chat->n_turns == 0) return plumb_session_rewind(session, 0, err);
    if (!chat->taken_back) return PLUMB_OK;
    plumb_tokens said = {0};
    plumb_status status = cli_chat_encode(chat, &said, err);
    int64_t common = 0;
    const int32_t *held = plumb_session_tokens(session);
    while (common < said.count && common < plumb_session_length(session) && said.ids[common] == held[common])
        common++;
    plumb_tokens_free(&said);
    return status == PLUMB_OK ? plumb_session_rewind(session, common, err) : status;
}

int cli_chat_save(cli_chat *chat, const char *path) {
    const cli_options *options = chat->runtime.options;
    const cli_chat_note note = {.conversation = chat->conversation,
                                .think_level = chat->think_level};
    char *text = NULL;
    size_t size = 0;
    plumb_error err = {0};
    plumb_status status = check_target(path, &err);
    if (status == PLUMB_OK) status = forget_what_was_taken_back(chat, &err);
    if (status == PLUMB_OK) status = cli_chat_note_write(&note, &text, &size, &err);
    const plumb_snapshot_extra extra = {.sampling = &chat->runtime.sampling,
                                        .note = text,
                                        .note_bytes = (int64_t)size,
                                        .resume_points = true};
    if (status == PLUMB_OK) status = plumb_session_save(chat->runtime.session, path, &extra, &err);
    free(text);
    if (status != PLUMB_OK) return cli_report(options, &err);
    cli_complain(options, "saved %s: %s, %s, %s bytes", path, cli_count(chat->n_turns, "turn", "turns").text,
                 cli_count(plumb_session_length(chat->runtime.session), "token", "tokens").text,
                 cli_grouped(plumb_session_snapshot_bytes(chat->runtime.session, &extra)).text);
    return CLI_OK;
}

/* ---- /load ---- */

/* The sampling of a snapshot with a bias of its own; one that cannot be used is refused now and not
 * in the next turn.  Without any, `sampling` stays. */
static plumb_status read_sampling(const cli_chat *chat, const plumb_snapshot *snapshot,
                                  plumb_sampling *sampling, plumb_logit_bias **bias,
                                  plumb_error *err) {
    const plumb_sampling *found = plumb_snapshot_sampling(snapshot);
    int64_t vocab = chat->runtime.info.vocab_size;
    int32_t token;
    if (found == NULL) return PLUMB_OK;
    float *logits = calloc((size_t)vocab, sizeof *logits);
    if (logits == NULL) return plumb__fail_memory(err, "logits", (size_t)vocab * sizeof *logits);
    plumb_status status = plumb_sample(logits, vocab, found, 0, &token, NULL, NULL, 0, err);
    free(logits);
    if (status != PLUMB_OK) return status;
    *sampling = *found;
    sampling->bias = NULL;
    if (found->n_bias == 0) return PLUMB_OK;
    size_t bytes = (size_t)found->n_bias * sizeof **bias;
    *bias = malloc(bytes);
    if (*bias == NULL) return plumb__fail_memory(err, "bias", bytes);
    memcpy(*bias, found->bias, bytes);
    sampling->bias = *bias;
    return PLUMB_OK;
}

/* All that can be refused is, before anything changes; restoring the session is the last of it. */
static plumb_status load(cli_chat *chat, const char *path, plumb_error *err) {
    plumb_snapshot *snapshot = NULL;
    cli_chat_note note = {0};
    plumb_sampling sampling = chat->runtime.sampling;
    plumb_logit_bias *bias = NULL;
    int64_t size = 0;
    plumb_status status = plumb_snapshot_open(path, &snapshot, err);
    if (status != PLUMB_OK) return status;
    const void *text = plumb_snapshot_note(snapshot, &size);
    status = cli_chat_note_read(text, (size_t)size, path, &note, err);
    if (status == PLUMB_OK) status = plumb_snapshot_check(snapshot, chat->runtime.session, err);
    if (status == PLUMB_OK) status = read_sampling(chat, snapshot, &sampling, &bias, err);
    if (status == PLUMB_OK) status = plumb_session_restore(chat->runtime.session, snapshot, err);
    plumb_snapshot_close(snapshot);
    if (status != PLUMB_OK) {
        cli_conversation_destroy(note.conversation);
        free(bias);
        return status;
    }
    cli_conversation_destroy(chat->conversation);
    chat->conversation = note.conversation;
    chat->think_level = note.think_level;
    chat->n_turns = note.n_turns;
    chat->taken_back = false;
    chat->last = (cli_generation){0};
    chat->runtime.sampling = sampling;
    if (bias != NULL) {
        free(chat->loaded_bias);
        chat->loaded_bias = bias;
    }
    return PLUMB_OK;
}

int cli_chat_load(cli_chat *chat, const char *path) {
    const cli_options *options = chat->runtime.options;
    plumb_error err = {0};
    if (load(chat, path, &err) != PLUMB_OK) return cli_report(options, &err);
    cli_complain(options, "loaded %s: %s, %s", path, cli_count(chat->n_turns, "turn", "turns").text,
                 cli_count(plumb_session_length(chat->runtime.session), "token", "tokens").text);
    return CLI_OK;
}
