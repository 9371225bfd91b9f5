/* Conversations as notes of snapshots: what is written is read back, anything else is refused in words. */
#include <jansson.h>
#include <stdlib.h>

#include "cli/chat_note.h"
#include "t.h"

#define NOTE(format, version, level, messages) \
    "{\"format\":\"" format "\",\"version\":" version ",\"think_level\":" level ",\"messages\":" messages "}"
#define SYSTEM "{\"role\":\"system\",\"content\":\"S\"}"
#define ASKED "{\"role\":\"user\",\"content\":\"q\"}"
#define TOLD "{\"role\":\"assistant\",\"content\":\"a\"}"

static void what_is_refused(void) {
    static const struct {
        const char *text, *found; /* found "": accepted */
        int64_t n_turns;
    } cases[] = {
        {NOTE("plumb-chat", "1", "75", "[]"), "", 0},
        {NOTE("plumb-chat", "1", "0", "[" SYSTEM "]"), "", 0},
        {NOTE("plumb-chat", "1", "100", "[" SYSTEM "," ASKED "," TOLD "," ASKED "," TOLD "]"), "", 2},
        {"", "another program", 0},
        {"{", "another program", 0},
        {"[]", "another program", 0},
        {"somebody's notes", "another program", 0},
        {NOTE("plumb-server", "1", "75", "[]"), "another program", 0},
        {NOTE("plumb-chat", "2", "75", "[]"), "another version", 0},
        {NOTE("plumb-chat", "1.0", "75", "[]"), "another version", 0},
        {NOTE("plumb-chat", "1", "101", "[]"), "another think_level", 0},
        {NOTE("plumb-chat", "1", "-1", "[]"), "another think_level", 0},
        {NOTE("plumb-chat", "1", "null", "[]"), "another think_level", 0},
        {NOTE("plumb-chat", "1", "75", "{}"), "no messages", 0},
        {NOTE("plumb-chat", "1", "75", "[" ASKED "]"), "message 0", 0},
        {NOTE("plumb-chat", "1", "75", "[" TOLD "," ASKED "]"), "message 0", 0},
        {NOTE("plumb-chat", "1", "75", "[" ASKED "," TOLD "," SYSTEM "," TOLD "]"), "message 2", 0},
        {NOTE("plumb-chat", "1", "75", "[" ASKED ",{\"role\":\"assistant\",\"content\":5}]"), "message 0", 0},
        {NOTE("plumb-chat", "1", "75", "[" ASKED ",{\"role\":\"assistant\",\"content\":\"a\",\"tool_calls\":[]}]"),
         "message 0", 0},
        {"{\"format\":\"x\"," /* twice */ "\"format\":\"plumb-chat\"}", "another program", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cli_chat_note note = {0};
        plumb_error err = {0};
        plumb_status status = cli_chat_note_read(cases[i].text, strlen(cases[i].text), "FILE", &note, &err);
        bool good = cases[i].found[0] == 0;
        T_CHECK((status == PLUMB_OK) == good && (status == PLUMB_ERROR_FORMAT) == !good, "%s", cases[i].text);
        if (good) {
            T_CHECK(note.conversation && note.n_turns == cases[i].n_turns, "%s: turns", cases[i].text);
        } else {
            T_CHECK(!note.conversation && strstr(err.found, cases[i].found) && err.expected[0] &&
                        !strcmp(err.file, "FILE") && !strcmp(err.field, "note"), "%s: %s", cases[i].text, err.found);
        }
        cli_conversation_destroy(note.conversation);
    }
    cli_chat_note note = {0};
    plumb_error err = {0};
    T_CHECK(cli_chat_note_read(NULL, 0, "FILE", &note, &err) == PLUMB_ERROR_FORMAT && !strcmp(err.found, "none"), "none");
}

/* Characters that JSON has to escape, NUL among them. */
static void written_and_read(void) {
    plumb_error err = {0};
    cli_conversation *talk = cli_conversation_create("be \"brief\"", &err);
    T_CHECK(talk && cli_conversation_add(talk, "user", "a\0b\n\xC3\xA9", 6, &err) == PLUMB_OK &&
                cli_conversation_add(talk, "assistant", "", 0, &err) == PLUMB_OK, "%s", err.found);
    cli_chat_note note = {.conversation = talk, .think_level = 33}, back = {0};
    char *text = NULL;
    size_t size = 0;
    T_CHECK(cli_chat_note_write(&note, &text, &size, &err) == PLUMB_OK, "%s", err.found);
    T_CHECK(cli_chat_note_read(text, size, "FILE", &back, &err) == PLUMB_OK, "%s", err.found);
    T_CHECK(json_equal(talk, back.conversation) && back.think_level == 33 && back.n_turns == 1, "%.*s", (int)size, text);
    /* Cut anywhere it is refused. */
    for (size_t cut = 0; cut < size; cut++) {
        cli_chat_note none = {0};
        T_CHECK(cli_chat_note_read(text, cut, "FILE", &none, &err) == PLUMB_ERROR_FORMAT && !none.conversation, "%zu", cut);
    }
    free(text);
    cli_conversation_destroy(back.conversation);
    cli_conversation_destroy(talk);
}

T_MAIN({"what_is_refused", what_is_refused}, {"written_and_read", written_and_read})
