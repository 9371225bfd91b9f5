/* The note of a snapshot from anywhere.  What is accepted is written and read the same again. */
#include <stdlib.h>
#include <string.h>

#include "cli/chat_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    cli_chat_note note = {0}, again = {0};
    plumb_error err = {0};
    if (cli_chat_note_read(data, size, "note", &note, &err) != PLUMB_OK) {
        if (!err.found[0] || !err.expected[0] || note.conversation) abort();
        return 0;
    }
    char *once = NULL, *twice = NULL;
    size_t once_size = 0, twice_size = 0;
    if (cli_chat_note_write(&note, &once, &once_size, &err) != PLUMB_OK) abort();
    if (cli_chat_note_read(once, once_size, "note", &again, &err) != PLUMB_OK) abort();
    if (again.n_turns != note.n_turns || again.think_level != note.think_level) abort();
    if (cli_chat_note_write(&again, &twice, &twice_size, &err) != PLUMB_OK) abort();
    if (once_size != twice_size || memcmp(once, twice, once_size) != 0) abort();
    cli_conversation_destroy(note.conversation);
    cli_conversation_destroy(again.conversation);
    free(once);
    free(twice);
    return 0;
}
