/* See chat_items.h. */
#include "text/chat_items.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "text/chat_protocol.h"

void plumb__chat_items_free(plumb__chat_items *items) {
    free(items->list);
    plumb__buffer_free(&items->text);
    *items = (plumb__chat_items){0};
}

static plumb__chat_item *add_item(plumb__chat_items *items) {
    if (items->text.failed) return NULL;
    plumb__chat_item *grown =
        plumb__grow(items->list, &items->capacity, items->count + 1, sizeof *grown);
    if (!grown) {
        items->text.failed = true;
        return NULL;
    }
    items->list = grown;
    plumb__chat_item *item = &grown[items->count++];
    *item = (plumb__chat_item){.at = items->text.size};
    return item;
}

void plumb__chat_control(plumb__chat_items *items, const char *control) {
    plumb__chat_item *item = add_item(items);
    if (item) item->control = control;
}

void plumb__chat_ids(plumb__chat_items *items, const int32_t *ids, int64_t count) {
    plumb__chat_item *item = add_item(items);
    if (!item) return;
    item->ids = ids;
    item->size = count;
}

static bool is_text(const plumb__chat_item *item) { return !item->control && !item->ids; }

void plumb__chat_text(plumb__chat_items *items, const char *bytes, size_t size) {
    if (size == 0) return;
    bool joins = items->count > 0 && is_text(&items->list[items->count - 1]);
    if (!joins && !add_item(items)) return;
    plumb__buffer_append(&items->text, bytes, size);
    plumb__chat_item *item = &items->list[items->count - 1];
    item->size = items->text.size - item->at;
}

void plumb__chat_literal(plumb__chat_items *items, const char *text) {
    plumb__chat_text(items, text, strlen(text));
}

void plumb__chat_template(plumb__chat_items *items, const char *text) {
    static const char *const controls[] = {PLUMB__CONTROL_THINK, PLUMB__CONTROL_THINK_END,
                                           PLUMB__CONTROL_DSML};
    for (;;) {
        const char *control = NULL, *place = NULL;
        for (size_t i = 0; i < sizeof controls / sizeof controls[0]; i++) {
            const char *found = strstr(text, controls[i]);
            if (found && (!place || found < place)) {
                place = found;
                control = controls[i];
            }
        }
        if (!place) break;
        plumb__chat_text(items, text, (size_t)(place - text));
        plumb__chat_control(items, control);
        text = place + strlen(control);
    }
    plumb__chat_literal(items, text);
}

void plumb__chat_items_print(const plumb__chat_items *items, plumb__buffer *out) {
    for (int64_t i = 0; i < items->count; i++) {
        const plumb__chat_item *item = &items->list[i];
        if (item->control)
            plumb__buffer_text(out, item->control);
        else if (!item->ids)
            plumb__buffer_append(out, items->text.bytes + item->at, (size_t)item->size);
    }
}

static plumb_status append_ids(const int32_t *ids, int64_t count, plumb_tokens *tokens,
                               plumb_error *err) {
    int64_t total = tokens->count + count;
    int32_t *grown = plumb__grow(tokens->ids, &tokens->capacity, total, sizeof *grown);
    if (!grown) return plumb__fail_memory(err, "tokens", (size_t)total * sizeof *grown);
    tokens->ids = grown;
    memcpy(grown + tokens->count, ids, (size_t)count * sizeof *ids);
    tokens->count = total;
    return PLUMB_OK;
}

static plumb_status encode_control(const plumb_text *text, const char *control,
                                   plumb_tokens *tokens, plumb_error *err) {
    int32_t id = plumb_text_token_id(text, control);
    if (id < 0)
        return plumb__fail(err, PLUMB_ERROR_TEXT, NULL, "tokenizer.json added_tokens", -1,
                           "no entry", "the control token %s", control);
    return append_ids(&id, 1, tokens, err);
}

plumb_status plumb__chat_items_encode(const plumb__chat_items *items, const plumb_text *text,
                                      bool match_added, plumb_tokens *tokens, plumb_error *err) {
    int64_t before = tokens->count;
    plumb_status status = PLUMB_OK;
    for (int64_t i = 0; i < items->count && status == PLUMB_OK; i++) {
        const plumb__chat_item *item = &items->list[i];
        if (item->control)
            status = encode_control(text, item->control, tokens, err);
        else if (item->ids)
            status = append_ids(item->ids, item->size, tokens, err);
        else
            status = plumb_text_encode(text, items->text.bytes + item->at, (size_t)item->size,
                                       match_added, tokens, err);
    }
    if (status != PLUMB_OK) tokens->count = before;
    return status;
}
