/* See chat_encode.h.  chat_messages.c has checked and prepared the conversation; here every message
 * is written, and after it the header that opens the next answer. */
#include "text/chat_encode.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "text/call_memory.h"
#include "text/chat_messages.h"
#include "text/chat_protocol.h"

typedef struct renderer {
    const plumb__chat_conversation *conversation;
    plumb__chat_items *items;
    bool thinking;
    bool keep_reasoning;
    int effort;
    const plumb_call_memory *calls; /* may be NULL */
} renderer;

static void text(renderer *r, const char *literal) {
    plumb__chat_literal(r->items, literal);
}
static void control(renderer *r, const char *token) {
    plumb__chat_control(r->items, token);
}
static void string(renderer *r, const plumb__python_value *value) {
    if (value) plumb__chat_text(r->items, value->bytes, value->size);
}

static void json(renderer *r, const plumb__python_value *value) {
    plumb__buffer printed = {0};
    plumb__python_json_print(value, &printed);
    plumb__chat_text(r->items, printed.bytes, (size_t)printed.size);
    r->items->text.failed |= printed.failed;
    plumb__buffer_free(&printed);
}

/* A str, a list of blocks joined by an empty line, or nothing. */
static void content(renderer *r, const plumb__python_value *value) {
    if (!value || value->kind == PLUMB__PYTHON_STR) {
        string(r, value);
        return;
    }
    for (const plumb__python_value *block = value->child; block; block = block->next) {
        if (block != value->child) text(r, "\n\n");
        switch (plumb__chat_block_kind_of(block)) {
        case PLUMB__BLOCK_TEXT: string(r, plumb__python_member(block, "text")); break;
        case PLUMB__BLOCK_IMAGE: control(r, PLUMB__CONTROL_IMAGE); break;
        case PLUMB__BLOCK_RESULT:
        case PLUMB__BLOCK_UNSUPPORTED:
            text(r, "[Unsupported ");
            string(r, plumb__python_member(block, "type"));
            text(r, "]");
            break;
        }
    }
}

static void system_message(renderer *r, const plumb__chat_message *m) {
    content(r, m->content);
    if (m->tools) {
        text(r, "\n\n");
        plumb__chat_template(r->items, PLUMB__TOOLS_BEFORE);
        for (const plumb__python_value *tool = m->tools->child; tool; tool = tool->next) {
            if (tool != m->tools->child) text(r, "\n");
            json(r, plumb__python_member(tool, "function"));
        }
        plumb__chat_template(r->items, PLUMB__TOOLS_AFTER);
    }
    if (m->response_format) {
        text(r, "\n\n" PLUMB__RESPONSE_FORMAT);
        json(r, m->response_format);
    }
}

static void user_message(renderer *r, const plumb__chat_message *m) {
    control(r, PLUMB__CONTROL_USER);
    for (int64_t i = 0; i < m->n_blocks; i++) {
        const plumb__chat_block *block = &r->conversation->blocks[m->first_block + i];
        if (i > 0) text(r, "\n\n");
        switch (block->kind) {
        case PLUMB__BLOCK_TEXT: string(r, block->value); break;
        case PLUMB__BLOCK_IMAGE: control(r, PLUMB__CONTROL_IMAGE); break;
        case PLUMB__BLOCK_RESULT:
            text(r, "<tool_result>");
            content(r, block->value);
            text(r, "</tool_result>");
            break;
        case PLUMB__BLOCK_UNSUPPORTED:
            text(r, "[Unsupported ");
            string(r, block->value);
            text(r, "]");
            break;
        }
    }
}

/* "<" or "</", the DSML mark, then the rest of a tag. */
static void tag(renderer *r, const char *opening, const char *rest) {
    text(r, opening);
    control(r, PLUMB__CONTROL_DSML);
    text(r, rest);
}

static void parameter(renderer *r, const char *key, size_t key_size,
                      const plumb__python_value *value) {
    bool is_string = value->kind == PLUMB__PYTHON_STR;
    tag(r, "<", " parameter name=\"");
    plumb__chat_text(r->items, key, key_size);
    text(r, is_string ? "\" string=\"true\">" : "\" string=\"false\">");
    if (is_string)
        string(r, value);
    else
        json(r, value);
    tag(r, "</", " parameter>");
}

static void arguments(renderer *r, const plumb__python_value *given) {
    static const char whole[] = "arguments";
    plumb__python_json parsed[2];
    const plumb__python_value *object =
        plumb__chat_arguments(given, parsed, &r->items->text.failed);
    if (!object) {
        parameter(r, whole, sizeof whole - 1, given);
    } else {
        for (const plumb__python_value *m = object->child; m; m = m->next) {
            if (m != object->child) text(r, "\n");
            parameter(r, m->key, m->key_size, m);
        }
    }
    plumb__python_json_free(&parsed[0]);
    plumb__python_json_free(&parsed[1]);
}

static void calls(renderer *r, const plumb__python_value *list) {
    text(r, "\n\n");
    tag(r, "<", " calls>\n");
    for (const plumb__python_value *call = list->child; call; call = call->next) {
        const plumb__python_value *function = plumb__python_member(call, "function");
        tag(r, "<", " invoke name=\"");
        string(r, plumb__python_member(function, "name"));
        text(r, "\">\n");
        arguments(r, plumb__python_member(function, "arguments"));
        text(r, "\n");
        tag(r, "</", " invoke>\n");
    }
    tag(r, "</", " calls>");
}

/* A turn that was remembered stands in the prompt as it was sampled: the client has sent its calls
 * back, but perhaps not their spelling. */
static bool remembered(renderer *r, const plumb__chat_message *m, bool reasons) {
    if (!r->calls || !m->calls) return false;
    plumb__remembered_turn turn = plumb__call_memory_find(r->calls, m, reasons);
    r->items->text.failed |= turn.no_memory;
    if (turn.n_tokens > 0) plumb__chat_ids(r->items, turn.tokens, turn.n_tokens);
    return turn.n_tokens > 0;
}

/* The header before has written the <think>. */
static void assistant_message(renderer *r, const plumb__chat_message *m, int64_t i) {
    bool after_task = i > 0 && m[-1].task;
    bool reasons = r->thinking && !after_task && (r->keep_reasoning || i > r->conversation->last);
    if (!remembered(r, m, reasons)) {
        if (reasons) {
            string(r, m->reasoning);
            control(r, PLUMB__CONTROL_THINK_END);
        }
        content(r, m->content);
        if (m->calls) calls(r, m->calls);
    }
    if (!m->without_eos) control(r, PLUMB__CONTROL_EOS);
}

/* The effort line stands in the first system turn, which thinking mode opens even for a
 * conversation without a system message. */
static void opening(renderer *r) {
    control(r, PLUMB__CONTROL_BOS);
    if (r->thinking) {
        char line[128];
        control(r, PLUMB__CONTROL_SYSTEM);
        (void)snprintf(line, sizeof line, PLUMB__EFFORT_LINE, r->effort);
        text(r, line);
    } else if (r->conversation->messages[0].role == PLUMB__ROLE_SYSTEM) {
        control(r, PLUMB__CONTROL_SYSTEM);
    }
}

static void message(renderer *r, int64_t i) {
    const plumb__chat_message *m = &r->conversation->messages[i];
    switch (m->role) {
    case PLUMB__ROLE_SYSTEM:
        if (i > 0) control(r, PLUMB__CONTROL_SYSTEM);
        system_message(r, m);
        break;
    case PLUMB__ROLE_USER: user_message(r, m); break;
    case PLUMB__ROLE_ASSISTANT: assistant_message(r, m, i); break;
    case PLUMB__ROLE_REMINDER:
        control(r, PLUMB__CONTROL_REMINDER);
        content(r, m->content);
        break;
    case PLUMB__ROLE_TOOL: break; /* none is left: they have joined user messages */
    }
}

/* What opens the answer to message i. */
static void answer_header(renderer *r, int64_t i) {
    const plumb__chat_message *m = &r->conversation->messages[i];
    const char *closed = PLUMB__CONTROL_THINK_END, *open = PLUMB__CONTROL_THINK;
    if (i + 1 < r->conversation->n_messages && m[1].role != PLUMB__ROLE_ASSISTANT &&
        m[1].role != PLUMB__ROLE_REMINDER)
        return;
    if (m->task && strcmp(m->task, PLUMB__CONTROL_ACTION) != 0) {
        control(r, m->task);
    } else if (m->task) {
        control(r, PLUMB__CONTROL_ASSISTANT);
        control(r, r->thinking ? open : closed);
        control(r, m->task);
    } else if (m->role == PLUMB__ROLE_USER || (m->role == PLUMB__ROLE_SYSTEM && i > 0)) {
        bool reasons = r->thinking && (r->keep_reasoning || i >= r->conversation->last);
        control(r, PLUMB__CONTROL_ASSISTANT);
        control(r, reasons ? open : closed);
    }
}

plumb_status plumb__chat_render(const char *messages, size_t size,
                                const plumb_chat_options *options, plumb__chat_items *items,
                                plumb_error *err) {
    plumb__chat_conversation conversation;
    int effort = options->effort ? options->effort : PLUMB__EFFORT_DEFAULT;
    if (effort < 1 || effort > 100)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "effort", -1,
                           plumb__format("%d", effort).s, "1 to 100, or 0 for the default");
    plumb_status status = plumb__chat_conversation_read(messages, size, &conversation, err);
    if (status != PLUMB_OK) return status;
    renderer r = {.conversation = &conversation,
                  .items = items,
                  .thinking = options->thinking,
                  .keep_reasoning = options->keep_reasoning || conversation.has_tools,
                  .effort = effort,
                  .calls = options->calls};
    opening(&r);
    for (int64_t i = 0; i < conversation.n_messages; i++) {
        message(&r, i);
        answer_header(&r, i);
    }
    if (items->text.failed) {
        status = plumb__fail_memory(err, "prompt", (size_t)items->text.size);
        plumb__chat_items_free(items);
    }
    plumb__chat_conversation_free(&conversation);
    return status;
}

plumb_status plumb_chat_encode(const plumb_text *text_handle, const char *messages,
                               const plumb_chat_options *options, plumb_tokens *tokens,
                               plumb_error *err) {
    plumb__chat_items items = {0};
    plumb_chat_options defaults = {0};
    if (!text_handle || !messages || !tokens)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "plumb_chat_encode", -1, "NULL",
                           "text, messages and tokens");
    if (!options) options = &defaults;
    plumb_status status = plumb__chat_render(messages, strlen(messages), options, &items, err);
    if (status == PLUMB_OK)
        status =
            plumb__chat_items_encode(&items, text_handle, options->match_added_tokens, tokens, err);
    plumb__chat_items_free(&items);
    return status;
}
