/* One turn of a chat; see chat_turn.h.
 *
 * Every turn encodes the whole conversation anew and the session keeps what it already holds of
 * it (cli_generate), so nothing here tracks positions. */
#include "cli/chat_turn.h"

#include "base/alloc.h"
#include "cli/chat_sessions.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/shown_text.h"

#include <stdlib.h>
#include <string.h>

/* The answer on its way from the parser to the terminal and into the conversation. */
typedef struct answer {
    const cli_chat *chat;
    plumb_chat_parser *parser;
    char *content; /* (size) visible bytes, growing */
    int64_t size, capacity;
    bool thinking_shown, no_memory;
} answer;

static void keep(answer *a, const char *bytes, size_t size) {
    void *grown = plumb__grow(a->content, &a->capacity, a->size + (int64_t)size, 1);
    if (grown == NULL && size > 0) {
        a->no_memory = true;
        return;
    }
    a->content = grown;
    if (size > 0) memcpy(a->content + a->size, bytes, size);
    a->size += (int64_t)size;
}

static void end_thinking(answer *a) {
    if (!a->thinking_shown) return;
    a->thinking_shown = false;
    cli_print("%s\n\n", a->chat->dim ? "\033[0m" : "");
}

static void on_event(void *user, const plumb_chat_event *event) {
    answer *a = user;
    if (event->kind == PLUMB_CHAT_REASONING && a->chat->terminal) {
        if (!a->thinking_shown) cli_print("%s", a->chat->dim ? "\033[2m" : "(thinking) ");
        a->thinking_shown = true;
        cli_show(true, event->bytes, event->size);
    } else if (event->kind == PLUMB_CHAT_CONTENT) {
        end_thinking(a);
        cli_show(a->chat->terminal, event->bytes, event->size);
        keep(a, event->bytes, event->size);
    }
}

static bool on_token(void *user, const cli_step *step) {
    answer *a = user;
    bool more = plumb_chat_parser_push(a->parser, step->token);
    return cli_output_flush() && more && !a->no_memory;
}

/* An answer that Ctrl-C cut short looks like one that is whole, and one that it forestalled like none. */
static void mark(const cli_chat *chat, const char *text) {
    if (chat->terminal) cli_print("%s%s%s", chat->dim ? "\033[2m" : "", text, chat->dim ? "\033[0m" : "");
}

static void tell_ending(cli_chat *chat) {
    const cli_options *options = chat->runtime.options;
    if (chat->last.ending == CLI_ENDED_BY_CONTEXT)
        cli_complain(options, "the context of %lld tokens is full; /reset starts anew, -c sets it",
                     (long long)plumb_session_context(chat->runtime.session));
    cli_tell_speed(&chat->runtime, &chat->last);
}

plumb_status cli_chat_encode(const cli_chat *chat, plumb_tokens *tokens, plumb_error *err) {
    const plumb_chat_options options = {.thinking = chat->think_level > 0,
                                        .effort = chat->think_level};
    return cli_conversation_encode(chat->conversation, chat->runtime.text, &options, tokens, err);
}

static plumb_status generate(cli_chat *chat, answer *a, plumb_error *err) {
    plumb_tokens prompt = {0};
    plumb_status status = cli_chat_encode(chat, &prompt, err);
    if (status == PLUMB_OK)
        status = plumb_chat_parser_create(chat->runtime.text, chat->think_level > 0, false, on_event, a,
                                          &a->parser, err);
    if (status == PLUMB_OK) {
        cli_sessions_recall(chat, &prompt);
        status = cli_generate(&chat->runtime, &prompt, on_token, a, &chat->last, err);
        plumb_chat_parser_finish(a->parser);
    }
    plumb_tokens_free(&prompt);
    return status;
}

int cli_chat_turn(cli_chat *chat, const char *message, size_t size) {
    const cli_options *options = chat->runtime.options;
    answer a = {.chat = chat};
    plumb_error err = {0};
    plumb_status status = cli_conversation_add(chat->conversation, "user", message, size, &err);
    if (status != PLUMB_OK) return cli_report(options, &err);
    status = generate(chat, &a, &err);
    end_thinking(&a);
    if (status == PLUMB_OK)
        status = cli_conversation_add(chat->conversation, "assistant",
                                      a.content != NULL ? a.content : "", (size_t)a.size, &err);
    int result = CLI_OK;
    if (status != PLUMB_OK) {
        cli_conversation_drop_last(chat->conversation);
        if (a.size > 0) cli_print("\n"); /* what was said of the answer stands on a line of its own */
        if (status == PLUMB_ERROR_CANCELLED) {
            mark(chat, "[stopped before the answer; the message is not kept]");
            if (chat->terminal) cli_print("\n");
        }
        cli_output_flush();
        result = cli_report(options, &err);
    } else {
        chat->n_turns++;
        chat->taken_back = false;
        if (chat->last.ending == CLI_ENDED_BY_INTERRUPT) mark(chat, " [stopped]");
        cli_print("\n");
        cli_output_flush();
        tell_ending(chat);
        cli_sessions_keep(chat);
        if (cli_interrupted()) result = CLI_INTERRUPTED;
    }
    plumb_chat_parser_destroy(a.parser);
    free(a.content);
    return result;
}
