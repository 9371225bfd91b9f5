/* Messages from anywhere.  The first byte chooses the options, the rest is the JSON text. */
#include <stdlib.h>
#include <string.h>

#include "text/chat_encode.h"
#include "text/python_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was printed once is printed the same again. */
static void check_fixed_point(const char *bytes, size_t size) {
    plumb__python_json json;
    plumb__buffer once = {0}, twice = {0};
    if (plumb__python_json_read(bytes, size, false, "text", &json, NULL) != PLUMB_OK) return;
    plumb__python_json_print(json.root, &once);
    plumb__python_json_free(&json);
    if (plumb__python_json_read(once.bytes, (size_t)once.size, false, "text", &json, NULL) != PLUMB_OK) abort();
    plumb__python_json_print(json.root, &twice);
    plumb__python_json_free(&json);
    if (once.size != twice.size || memcmp(once.bytes, twice.bytes, (size_t)once.size) != 0) abort();
    plumb__buffer_free(&once);
    plumb__buffer_free(&twice);
}

/* Runs of text follow each other without gaps and are never neighbours. */
static void check_items(const plumb__chat_items *items) {
    int64_t at = 0;
    if (items->count == 0 || !items->list[0].control) abort();
    for (int64_t i = 0; i < items->count; i++) {
        const plumb__chat_item *item = &items->list[i];
        if (item->control) continue;
        if (item->at != at || item->size <= 0 || (i > 0 && !items->list[i - 1].control)) abort();
        at += item->size;
    }
    if (at != items->text.size) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    const char *text = (const char *)data + 1;
    plumb_chat_options options = {.thinking = data[0] & 1, .keep_reasoning = data[0] & 2, .effort = data[0] >> 2};
    plumb__chat_items items = {0};
    plumb_error err;
    check_fixed_point(text, size - 1);
    if (plumb__chat_render(text, size - 1, &options, &items, &err) != PLUMB_OK) {
        if (!err.field[0] || !err.found[0] || !err.expected[0]) abort();
        return 0;
    }
    check_items(&items);
    plumb__chat_items_free(&items);
    return 0;
}
