/* See chat_parser.h.
 *
 *      tokens -> pieces -> whole characters and control tokens -> the machine -> events */
#include "text/chat_parser.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "text/chat_machine.h"
#include "text/chat_protocol.h"

struct plumb_chat_parser {
    const plumb_text *text; /* NULL: pieces only */
    int32_t dsml_id, think_id, think_end_id, eos_id;
    char broken_tail[4]; /* of an unfinished character */
    size_t broken_size;
    plumb__chat_machine machine;
};

/* ---- Pieces --------------------------------------------------------------------------- */

static void feed_replacement(plumb_chat_parser *p) {
    plumb__machine_text(&p->machine, PLUMB_UTF8_REPLACEMENT, sizeof PLUMB_UTF8_REPLACEMENT - 1);
}

/* Cuts bytes into whole characters; what is broken becomes U+FFFD, wherever tokens cut it. */
static void feed_bytes(plumb_chat_parser *p, const char *bytes, size_t size) {
    size_t length;
    while (p->broken_size > 0 && size > 0) {
        p->broken_tail[p->broken_size++] = *bytes;
        plumb__utf8_kind kind = plumb__utf8_judge(p->broken_tail, p->broken_size, &length);
        size_t gathered = p->broken_size;
        if (kind != PLUMB_UTF8_INCOMPLETE) p->broken_size = 0;
        if (kind == PLUMB_UTF8_BROKEN) { /* without this byte, which begins something else */
            feed_replacement(p);
            break;
        }
        if (kind == PLUMB_UTF8_CHARACTER)
            plumb__machine_text(&p->machine, p->broken_tail, gathered);
        bytes++;
        size--;
    }
    while (size > 0) {
        size_t valid = plumb__utf8_valid_prefix(bytes, size);
        plumb__machine_text(&p->machine, bytes, valid);
        bytes += valid;
        size -= valid;
        if (size == 0) break;
        if (plumb__utf8_judge(bytes, size, &length) == PLUMB_UTF8_INCOMPLETE) {
            memcpy(p->broken_tail, bytes, length);
            p->broken_size = length;
        } else {
            feed_replacement(p);
        }
        bytes += length;
        size -= length;
    }
}

static void end_bytes(plumb_chat_parser *p) {
    if (p->broken_size == 0) return;
    p->broken_size = 0;
    feed_replacement(p);
}

bool plumb__chat_parser_push_piece(plumb_chat_parser *p, plumb__piece_kind kind, const char *bytes,
                                   size_t size) {
    if (p->machine.state == PLUMB__STATE_DONE) return false;
    if (kind != PLUMB__PIECE_TEXT && kind != PLUMB__PIECE_HIDDEN) end_bytes(p);
    switch (kind) {
    case PLUMB__PIECE_TEXT: feed_bytes(p, bytes, size); break;
    case PLUMB__PIECE_DSML: plumb__machine_mark(&p->machine); break;
    case PLUMB__PIECE_THINK: plumb__machine_think(&p->machine, false); break;
    case PLUMB__PIECE_THINK_END: plumb__machine_think(&p->machine, true); break;
    case PLUMB__PIECE_EOS: plumb__machine_end(&p->machine, true); break;
    case PLUMB__PIECE_STOP: plumb__machine_end(&p->machine, false); break;
    case PLUMB__PIECE_HIDDEN: break;
    }
    plumb__chat_emit_flush(&p->machine.events);
    return p->machine.state != PLUMB__STATE_DONE;
}

uint64_t plumb__chat_parser_steps(const plumb_chat_parser *parser) {
    return parser->machine.steps;
}

/* ---- Tokens --------------------------------------------------------------------------- */

plumb_status plumb__chat_parser_create_bare(bool in_reasoning, bool tools_offered,
                                            plumb_chat_sink sink, void *user,
                                            plumb_chat_parser **parser, plumb_error *err) {
    plumb_chat_parser *p = calloc(1, sizeof *p);
    if (!p) return plumb__fail_memory(err, "chat parser", sizeof *p);
    plumb__machine_init(&p->machine, in_reasoning, tools_offered, sink, user);
    *parser = p;
    return PLUMB_OK;
}

static plumb_status find_id(const plumb_text *text, const char *content, int32_t *id,
                            plumb_error *err) {
    *id = plumb_text_token_id(text, content);
    if (*id >= 0) return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_TEXT, NULL, "tokenizer.json added_tokens", -1, "no entry",
                       "the control token %s", content);
}

plumb_status plumb_chat_parser_create(const plumb_text *text, bool in_reasoning, bool tools_offered,
                                      plumb_chat_sink sink, void *user, plumb_chat_parser **parser,
                                      plumb_error *err) {
    plumb_chat_parser *p = NULL;
    if (!text || !sink || !parser)
        return plumb__fail(err, PLUMB_ERROR_ARGUMENT, NULL, "plumb_chat_parser_create", -1, "NULL",
                           "text, sink and parser");
    plumb_status status =
        plumb__chat_parser_create_bare(in_reasoning, tools_offered, sink, user, &p, err);
    if (status != PLUMB_OK) return status;
    p->text = text;
    status = find_id(text, PLUMB__CONTROL_DSML, &p->dsml_id, err);
    if (status == PLUMB_OK) status = find_id(text, PLUMB__CONTROL_THINK, &p->think_id, err);
    if (status == PLUMB_OK) status = find_id(text, PLUMB__CONTROL_THINK_END, &p->think_end_id, err);
    if (status == PLUMB_OK) status = find_id(text, PLUMB__CONTROL_EOS, &p->eos_id, err);
    if (status == PLUMB_OK)
        *parser = p;
    else
        plumb_chat_parser_destroy(p);
    return status;
}

void plumb_chat_parser_destroy(plumb_chat_parser *parser) {
    if (!parser) return;
    plumb__machine_free(&parser->machine);
    free(parser);
}

bool plumb_chat_parser_push(plumb_chat_parser *parser, int32_t token) {
    size_t size = 0;
    plumb__piece_kind kind = PLUMB__PIECE_TEXT;
    const char *bytes = plumb_text_token_bytes(parser->text, token, &size);
    if (token == parser->dsml_id)
        kind = PLUMB__PIECE_DSML;
    else if (token == parser->think_id)
        kind = PLUMB__PIECE_THINK;
    else if (token == parser->think_end_id)
        kind = PLUMB__PIECE_THINK_END;
    else if (token == parser->eos_id)
        kind = PLUMB__PIECE_EOS;
    else if (plumb_text_is_stop(parser->text, token))
        kind = PLUMB__PIECE_STOP;
    else if (!bytes || plumb_text_is_control(parser->text, token))
        kind = PLUMB__PIECE_HIDDEN;
    return plumb__chat_parser_push_piece(parser, kind, bytes, size);
}

void plumb_chat_parser_finish(plumb_chat_parser *parser) {
    (void)plumb__chat_parser_push_piece(parser, PLUMB__PIECE_STOP, NULL, 0);
}

unsigned plumb_chat_parser_flags(const plumb_chat_parser *parser) {
    return parser->machine.flags;
}

size_t plumb_chat_parser_held(const plumb_chat_parser *parser) {
    return plumb__machine_held(&parser->machine);
}
