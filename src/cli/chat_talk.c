/* What happens to a conversation as a whole; see chat_talk.h. */
#include "cli/chat_talk.h"

#include "base/error.h"
#include "cli/interrupt.h"
#include "cli/output.h"

#include <unistd.h>

const cli_options *cli_talk_options(const cli_talk *t) {
    return t->chat.runtime.options;
}

void cli_talk_fail(cli_talk *t, const plumb_error *err) {
    t->status = CLI_FAILED;
    (void)cli_report(cli_talk_options(t), err);
}

/* Only here is Ctrl-C cleared: one that comes while nobody asks is for whoever asks next. */
void cli_talk_interrupted(cli_talk *t) {
    cli_interrupt_clear();
    if (isatty(STDIN_FILENO) && !cli_asked_to_end()) return;
    t->status = CLI_INTERRUPTED;
    t->leave = true;
}

bool cli_talk_send(cli_talk *t, const char *message, size_t size) {
    int64_t before = t->chat.n_turns;
    int status = cli_chat_turn(&t->chat, message, size);
    if (status == CLI_FAILED) t->status = CLI_FAILED;
    if (status == CLI_INTERRUPTED) cli_talk_interrupted(t);
    if (!cli_output_flush()) t->leave = true;
    return t->chat.n_turns > before;
}

void cli_talk_start_anew(cli_talk *t, const char *system) {
    plumb_error err = {0};
    cli_conversation *fresh = cli_conversation_create(system, &err);
    if (fresh == NULL) {
        cli_talk_fail(t, &err);
        return;
    }
    cli_conversation_destroy(t->chat.conversation);
    t->chat.conversation = fresh;
    t->chat.n_turns = 0;
}

void cli_talk_take_back(cli_talk *t) {
    cli_conversation_drop_last(t->chat.conversation);
    cli_conversation_drop_last(t->chat.conversation);
    t->chat.n_turns--;
    t->chat.taken_back = true;
}

void cli_talk_send_again(cli_talk *t) {
    plumb_error err = {0};
    cli_conversation *before = cli_conversation_copy(t->chat.conversation);
    if (before == NULL) {
        (void)plumb__fail_memory(&err, "conversation", 0);
        cli_talk_fail(t, &err);
        return;
    }
    cli_chat_message question = cli_conversation_message(before, cli_conversation_count(before) - 2);
    cli_talk_take_back(t);
    bool answered = cli_talk_send(t, question.content, question.size);
    if (!answered) {
        cli_conversation *without = t->chat.conversation;
        t->chat.conversation = before;
        t->chat.n_turns++;
        before = without;
    }
    cli_conversation_destroy(before);
}
