/* The incremental parser of answers, on symbols (spec: tokenizer-and-chat.md section 7.2).
 *
 * Everything that could be markup passes through one place, the hold: from a "<" on, symbols are
 * held until they are a tag or cannot become one.  What remains is text, and each state
 * knows what to do with text and with tags.  Deltas therefore depend on the symbols alone and not
 * on how tokens cut them.  Memory: the hold (PLUMB__TAG_SYMBOLS_MAX) and at most two line feeds,
 * plus what chat_call.h states for one call; string values of any length stream.
 *
 * Only the DSML control token makes a tag; text that spells it stays text.  The exception is the
 * space between the tags of a block that a real tag has opened, where no text belongs.
 *
 * Damage is repaired where the intent is clear, and flagged:
 *   - a tag closes whatever must be closed before it, so closing tags may be missing; at EOS that
 *     holds for a call whose parameters are all complete, but a cut value drops its call;
 *   - a block inside reasoning ends the reasoning;
 *   - a second block is taken up if only white space lies between; after other text or a
 *     </think> it is a repetition or an invention and is suppressed, as are all calls if no tools
 *     were offered;
 *   - text after a block is delivered as content. */
#include "text/chat_machine.h"

#include <string.h>

#include "text/chat_protocol.h"

static void flag(plumb__chat_machine *m, unsigned bits) {
    m->flags |= bits;
}

static bool is_white(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* ---- Text, by state ------------------------------------------------------------------- */

static void show(plumb__chat_machine *m, const char *bytes, size_t size) {
    plumb_chat_event_kind kind =
        m->state == PLUMB__STATE_REASONING ? PLUMB_CHAT_REASONING : PLUMB_CHAT_CONTENT;
    plumb__chat_emit(&m->events, kind, 0, bytes, size);
}

static void release_line_feeds(plumb__chat_machine *m) {
    show(m, "\n\n", (size_t)m->line_feeds);
    m->line_feeds = 0;
}

/* Reasoning or content.  The last two line feeds wait: they separate a block if one follows. */
static void visible_text(plumb__chat_machine *m, const char *bytes, size_t size) {
    size_t tail = 0;
    while (tail < size && bytes[size - 1 - tail] == '\n') tail++;
    if (tail < size) {
        size_t kept = tail < 2 ? tail : 2;
        release_line_feeds(m);
        show(m, bytes, size - kept);
        m->line_feeds = (int)kept;
        return;
    }
    for (; tail > 0; tail--) {
        if (m->line_feeds == 2)
            show(m, "\n", 1);
        else
            m->line_feeds++;
    }
}

/* Text where only a gap belongs: steps over white space and returns the rest. */
static size_t skip_gap(plumb__chat_machine *m, const char *bytes, size_t size) {
    size_t at = 0;
    for (; at < size && is_white(bytes[at]); at++) {
        if (bytes[at] == '\n')
            m->gap_line_feeds++;
        else
            m->gap_other = true;
    }
    if (m->gap_line_feeds > 3) m->gap_line_feeds = 3; /* more than any gap of the grammar */
    return at;
}

static void text_after_calls(plumb__chat_machine *m, const char *bytes, size_t size) {
    flag(m, PLUMB_CHAT_FLAG_TEXT_AFTER_CALLS);
    m->state = PLUMB__STATE_CONTENT;
    m->calls_over = true;
    visible_text(m, bytes, size);
}

static void take_text(plumb__chat_machine *m, const char *bytes, size_t size) {
    size_t gap = 0;
    if (m->state == PLUMB__STATE_CALLS || m->state == PLUMB__STATE_INVOKE ||
        m->state == PLUMB__STATE_AFTER)
        gap = skip_gap(m, bytes, size);
    if (gap == size) return;
    bytes += gap;
    size -= gap;
    switch (m->state) {
    case PLUMB__STATE_REASONING:
    case PLUMB__STATE_CONTENT: visible_text(m, bytes, size); break;
    case PLUMB__STATE_CALLS:
        if (m->block_wrapped)
            flag(m, PLUMB_CHAT_FLAG_TOLERATED); /* and lost */
        else
            text_after_calls(m, bytes, size);
        break;
    case PLUMB__STATE_AFTER: text_after_calls(m, bytes, size); break;
    case PLUMB__STATE_INVOKE:
        flag(m, PLUMB_CHAT_FLAG_TOLERATED);
        if (bytes[0] == '{' && m->call.n_parameters == 0 && !m->call.broken) {
            m->state = PLUMB__STATE_BODY;
            plumb__call_body_bytes(&m->call, bytes, size);
        } else {
            m->call.broken = true;
        }
        break;
    case PLUMB__STATE_BODY: plumb__call_body_bytes(&m->call, bytes, size); break;
    case PLUMB__STATE_VALUE: plumb__call_value_bytes(&m->call, bytes, size); break;
    case PLUMB__STATE_DONE: break;
    }
}

/* ---- Tags, by state ------------------------------------------------------------------- */

static bool in_call(const plumb__chat_machine *m) {
    return m->state == PLUMB__STATE_INVOKE || m->state == PLUMB__STATE_BODY ||
           m->state == PLUMB__STATE_VALUE;
}

/* A tag that opens a block, in reasoning or content. */
static void open_block(plumb__chat_machine *m) {
    m->block_in_reasoning = m->state == PLUMB__STATE_REASONING;
    if (m->block_in_reasoning) flag(m, PLUMB_CHAT_FLAG_CALL_IN_REASONING);
    if (m->line_feeds != 2 || !m->tools_offered || m->calls_over)
        flag(m, PLUMB_CHAT_FLAG_TOLERATED);
    m->line_feeds = 0;
    m->state = PLUMB__STATE_CALLS;
    m->block_wrapped = m->block_has_calls = false;
}

/* Ends the value and the call that are open; the grammar wants their own tags for that. */
static void close_value(plumb__chat_machine *m) {
    if (m->state != PLUMB__STATE_VALUE) return;
    plumb__call_value_end(&m->call);
    m->state = PLUMB__STATE_INVOKE;
}

static void close_call(plumb__chat_machine *m) {
    if (!in_call(m)) return;
    close_value(m);
    plumb__call_end(&m->call);
    m->state = PLUMB__STATE_CALLS;
}

static void begin_call(plumb__chat_machine *m, const char *name, size_t size) {
    plumb__call_begin(&m->call, name, size, !m->tools_offered || m->calls_over);
    if (size == 0) flag(m, PLUMB_CHAT_FLAG_TOLERATED);
    m->state = PLUMB__STATE_INVOKE;
    m->block_has_calls = true;
}

/* The white space that the grammar wants before this tag, and the tags that may stand here. */
static bool is_regular(const plumb__chat_machine *m, const plumb__tag *tag) {
    int line_feeds = 1;
    if (!tag->exact) return false;
    switch (m->state) {
    case PLUMB__STATE_VALUE: return tag->kind == PLUMB__TAG_PARAMETER_END;
    case PLUMB__STATE_CALLS:
        if (tag->kind == PLUMB__TAG_CALLS_END && !m->block_has_calls) return false;
        if (tag->kind != PLUMB__TAG_CALLS_END && tag->kind != PLUMB__TAG_INVOKE) return false;
        if (!m->block_wrapped) return false;
        break;
    case PLUMB__STATE_INVOKE:
        if (tag->kind != PLUMB__TAG_INVOKE_END && tag->kind != PLUMB__TAG_PARAMETER) return false;
        if (tag->kind == PLUMB__TAG_INVOKE_END && m->call.n_parameters == 0) line_feeds = 2;
        break;
    case PLUMB__STATE_REASONING:
    case PLUMB__STATE_CONTENT: return tag->kind == PLUMB__TAG_CALLS; /* open_block knows the rest */
    case PLUMB__STATE_BODY:
    case PLUMB__STATE_AFTER:
    case PLUMB__STATE_DONE: return false;
    }
    return m->gap_line_feeds == line_feeds && !m->gap_other;
}

static void take_opening(plumb__chat_machine *m, const plumb__tag *tag) {
    if (m->state == PLUMB__STATE_REASONING || m->state == PLUMB__STATE_CONTENT) open_block(m);
    m->opener_spelled = tag->spelled;
    if (tag->kind == PLUMB__TAG_PARAMETER) {
        close_value(m);
        /* Outside a call there is nothing to give it to, but its value must not show. */
        if (!in_call(m)) begin_call(m, "", 0);
        plumb__call_parameter(&m->call, tag->name, tag->name_size, tag->is_string);
        m->state = PLUMB__STATE_VALUE;
        return;
    }
    close_call(m);
    if (m->state == PLUMB__STATE_AFTER) {
        m->state = PLUMB__STATE_CALLS;
        m->block_wrapped = m->block_has_calls = false;
    }
    if (tag->kind == PLUMB__TAG_CALLS)
        m->block_wrapped = true;
    else
        begin_call(m, tag->name, tag->name_size);
}

/* In content, a closing tag without an opening one is dropped. */
static void take_closing(plumb__chat_machine *m, const plumb__tag *tag) {
    if (tag->kind == PLUMB__TAG_PARAMETER_END) {
        close_value(m);
        return;
    }
    close_call(m);
    if (tag->kind == PLUMB__TAG_CALLS_END && m->state == PLUMB__STATE_CALLS)
        m->state = PLUMB__STATE_AFTER;
}

static void take_tag(plumb__chat_machine *m, const plumb__tag *tag) {
    if (!is_regular(m, tag)) flag(m, PLUMB_CHAT_FLAG_TOLERATED);
    if (tag->kind == PLUMB__TAG_CALLS || tag->kind == PLUMB__TAG_INVOKE ||
        tag->kind == PLUMB__TAG_PARAMETER)
        take_opening(m, tag);
    else
        take_closing(m, tag);
    m->gap_line_feeds = 0;
    m->gap_other = false;
}

/* ---- The hold ------------------------------------------------------------------------- */

/* The first `size` held symbols are text after all. */
static void release_hold(plumb__chat_machine *m, size_t size) {
    size_t at = 0;
    while (at < size) {
        const char *mark = memchr(m->hold + at, PLUMB__TAG_DSML, size - at);
        size_t run = mark ? (size_t)(mark - m->hold) - at : size - at;
        if (run) take_text(m, m->hold + at, run);
        at += run;
        if (!mark) break;
        take_text(m, PLUMB__CONTROL_DSML, sizeof PLUMB__CONTROL_DSML - 1);
        at++;
    }
    m->hold_size -= size;
    memmove(m->hold, m->hold + size, m->hold_size);
}

/* Text may spell the mark between the tags of a block, and to end what such a tag has opened. */
static bool spelled_allowed(const plumb__chat_machine *m) {
    return m->state == PLUMB__STATE_CALLS || m->state == PLUMB__STATE_INVOKE ||
           (in_call(m) && m->opener_spelled);
}

static plumb__tag match(plumb__chat_machine *m, size_t from) {
    m->steps++;
    return plumb__tag_match(m->hold + from, m->hold_size - from, spelled_allowed(m));
}

/* Where, behind the first symbol, a tag may begin in the hold; or its end. */
static size_t find_restart(plumb__chat_machine *m) {
    for (size_t at = 1; at < m->hold_size; at++)
        if (m->hold[at] == '<' && match(m, at).kind != PLUMB__TAG_NONE) return at;
    return m->hold_size;
}

/* The hold begins with "<" and is never full on entry, since a full one matches nothing. */
static void hold_symbol(plumb__chat_machine *m, char symbol) {
    m->hold[m->hold_size++] = symbol;
    plumb__tag tag = match(m, 0);
    if (tag.kind == PLUMB__TAG_PARTIAL) return;
    if (tag.kind != PLUMB__TAG_NONE) {
        take_tag(m, &tag);
        m->hold_size = 0;
        return;
    }
    release_hold(m, find_restart(m));
}

static bool holds_mark(const plumb__chat_machine *m) {
    return m->hold_size && memchr(m->hold, PLUMB__TAG_DSML, m->hold_size);
}

/* Something that can be no part of a tag interrupts the hold.  Half a tag is never shown. */
static void interrupt_hold(plumb__chat_machine *m) {
    if (holds_mark(m)) {
        flag(m, PLUMB_CHAT_FLAG_TOLERATED);
        m->hold_size = 0;
    }
    release_hold(m, m->hold_size);
}

size_t plumb__machine_held(const plumb__chat_machine *m) {
    size_t held = (size_t)m->line_feeds + m->hold_size;
    for (size_t i = 0; i < m->hold_size; i++)
        if (m->hold[i] == PLUMB__TAG_DSML) held += sizeof PLUMB__CONTROL_DSML - 2;
    return held;
}

void plumb__machine_init(plumb__chat_machine *m, bool in_reasoning, bool tools_offered,
                         plumb_chat_sink sink, void *user) {
    memset(m, 0, sizeof *m);
    m->state = in_reasoning ? PLUMB__STATE_REASONING : PLUMB__STATE_CONTENT;
    m->tools_offered = tools_offered;
    m->events.sink = sink;
    m->events.user = user;
    plumb__call_init(&m->call, &m->events, &m->flags);
}

void plumb__machine_free(plumb__chat_machine *m) {
    plumb__call_free(&m->call);
}

void plumb__machine_text(plumb__chat_machine *m, const char *bytes, size_t size) {
    size_t at = 0;
    while (at < size) {
        if (m->hold_size == 0) {
            const char *open = memchr(bytes + at, '<', size - at);
            size_t run = open ? (size_t)(open - bytes) - at : size - at;
            if (run) take_text(m, bytes + at, run);
            at += run;
            if (!open) break;
        }
        hold_symbol(m, bytes[at++]);
    }
}

void plumb__machine_mark(plumb__chat_machine *m) {
    if (m->hold_size)
        hold_symbol(m, PLUMB__TAG_DSML);
    else
        take_text(m, PLUMB__CONTROL_DSML, sizeof PLUMB__CONTROL_DSML - 1);
}

/* ---- Control tokens ------------------------------------------------------------------- */

static void take_think_end(plumb__chat_machine *m) {
    if (m->state == PLUMB__STATE_REASONING) {
        release_line_feeds(m);
        m->state = PLUMB__STATE_CONTENT;
    } else if (m->state == PLUMB__STATE_AFTER && m->block_in_reasoning) {
        m->state = PLUMB__STATE_CONTENT;
        m->calls_over = true;
    } else {
        flag(m, PLUMB_CHAT_FLAG_TOLERATED);
    }
}

/* The model reasons again, or repeats the header's tag. */
static void take_think(plumb__chat_machine *m) {
    flag(m, PLUMB_CHAT_FLAG_TOLERATED);
    if (m->state == PLUMB__STATE_AFTER) m->calls_over = true;
    if (m->state == PLUMB__STATE_CONTENT) release_line_feeds(m);
    if (m->state == PLUMB__STATE_CONTENT || m->state == PLUMB__STATE_AFTER)
        m->state = PLUMB__STATE_REASONING;
}

/* Inside an argument the tokens of <think> and </think> are what they spell. */
void plumb__machine_think(plumb__chat_machine *m, bool end) {
    interrupt_hold(m);
    if (m->state == PLUMB__STATE_VALUE || m->state == PLUMB__STATE_BODY) {
        const char *literal = end ? PLUMB__CONTROL_THINK_END : PLUMB__CONTROL_THINK;
        take_text(m, literal, strlen(literal));
    } else if (end) {
        take_think_end(m);
    } else {
        take_think(m);
    }
}

/* Whether a call that the answer ends in can be taken as complete. */
static bool is_finished_call(plumb__chat_machine *m) {
    if (m->state == PLUMB__STATE_INVOKE) return m->call.n_parameters > 0 && !m->call.broken;
    return m->state == PLUMB__STATE_BODY && plumb__call_body_is_object(&m->call);
}

void plumb__machine_end(plumb__chat_machine *m, bool eos) {
    bool half_tag = holds_mark(m), half_opening = half_tag && m->hold[1] != '/';
    if (half_tag) m->hold_size = 0;
    release_hold(m, m->hold_size);
    bool closed = m->state == PLUMB__STATE_CONTENT || m->state == PLUMB__STATE_AFTER;
    if (m->state == PLUMB__STATE_REASONING || m->state == PLUMB__STATE_CONTENT)
        release_line_feeds(m);
    if (in_call(m) && eos && !half_opening && is_finished_call(m)) close_call(m);
    if (in_call(m)) plumb__call_drop(&m->call);
    if (in_call(m) || half_opening)
        flag(m, PLUMB_CHAT_FLAG_INCOMPLETE_CALL);
    else if (eos && (!closed || half_tag))
        flag(m, PLUMB_CHAT_FLAG_TOLERATED);
    if (!eos) flag(m, PLUMB_CHAT_FLAG_NO_END);
    m->state = PLUMB__STATE_DONE;
}
