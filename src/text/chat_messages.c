/* See chat_messages.h.  Everything is checked here, so that rendering cannot fail. */
#include "text/chat_messages.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/utf8.h"
#include "text/chat_protocol.h"

typedef struct checker {
    plumb__chat_conversation *conversation;
    int64_t index; /* of the message at hand */
    plumb_error *err;
} checker;

#define KIND(kind) (1u << PLUMB__PYTHON_##kind)

bool plumb__python_str_is(const plumb__python_value *value, const char *text) {
    return value && value->kind == PLUMB__PYTHON_STR && value->size == strlen(text) &&
           memcmp(value->bytes, text, value->size) == 0;
}

/* `path` and `key` make the field's name: "messages" ".tool_calls[0].function" ".name". */
static plumb_status refuse(const checker *c, const char *path, const char *key,
                           const plumb__python_value *found, const char *expected) {
    plumb__text192 field = plumb__format("messages%s.%s", path, key);
    plumb__text192 what = plumb__format("nothing");
    if (found && found->kind == PLUMB__PYTHON_STR) {
        size_t shown = plumb__utf8_valid_prefix(found->bytes, found->size < 80 ? found->size : 80);
        what = plumb__format("\"%.*s\"", (int)shown, found->bytes);
    } else if (found)
        what = plumb__format("%s", plumb__python_kind_name(found->kind));
    return plumb__fail(c->err, PLUMB_ERROR_TEXT, NULL, field.s, c->index, what.s, "%s", expected);
}

/* Finds a member of one of the `kinds`; absent and null give NULL, which `expected` starting with
 * '!' forbids. */
static plumb_status get(const checker *c, const plumb__python_value *object, const char *path,
                        const char *key, unsigned kinds, const char *expected,
                        const plumb__python_value **value) {
    const plumb__python_value *found = plumb__python_member(object, key);
    bool required = expected[0] == '!';
    *value = NULL;
    if (!found || found->kind == PLUMB__PYTHON_NONE)
        return required ? refuse(c, path, key, found, expected + 1) : PLUMB_OK;
    if (!(kinds >> found->kind & 1)) return refuse(c, path, key, found, expected + required);
    *value = found;
    return PLUMB_OK;
}

const plumb__python_value *plumb__chat_arguments(const plumb__python_value *given,
                                                 plumb__python_json parsed[2], bool *no_memory) {
    const plumb__python_value *object = given;
    parsed[0] = parsed[1] = (plumb__python_json){0};
    for (int i = 0; i < 2 && object && object->kind == PLUMB__PYTHON_STR; i++) {
        plumb_status status = plumb__python_json_read(object->bytes, object->size, false,
                                                      "arguments", &parsed[i], NULL);
        if (status == PLUMB_ERROR_MEMORY) *no_memory = true;
        object = status == PLUMB_OK ? parsed[i].root : NULL;
    }
    return object && object->kind == PLUMB__PYTHON_DICT ? object : NULL;
}

plumb__chat_block_kind plumb__chat_block_kind_of(const plumb__python_value *block) {
    const plumb__python_value *type = plumb__python_member(block, "type");
    if (plumb__python_str_is(type, "text")) return PLUMB__BLOCK_TEXT;
    if (plumb__python_str_is(type, "image") || plumb__python_str_is(type, "image_url"))
        return PLUMB__BLOCK_IMAGE;
    if (plumb__python_str_is(type, "tool_result")) return PLUMB__BLOCK_RESULT;
    return PLUMB__BLOCK_UNSUPPORTED;
}

/* A block of a content list: an object with a type, and a text if it is one of text. */
static plumb_status check_block(const checker *c, const char *path,
                                const plumb__python_value *block, bool text_only) {
    const plumb__python_value *value;
    plumb_status status = get(c, block, path, "type", KIND(STR), "!a string", &value);
    if (status != PLUMB_OK) return status;
    plumb__chat_block_kind kind = plumb__chat_block_kind_of(block);
    if (kind == PLUMB__BLOCK_TEXT)
        return get(c, block, path, "text", KIND(STR), "!a string", &value);
    if (text_only) return refuse(c, path, "type", value, "\"text\"");
    return PLUMB_OK;
}

static plumb_status check_list(const checker *c, const char *path,
                               const plumb__python_value *content, bool text_only) {
    int64_t i = 0;
    if (!content || content->kind != PLUMB__PYTHON_LIST) return PLUMB_OK;
    for (const plumb__python_value *block = content->child; block; block = block->next, i++) {
        plumb__text192 inner = plumb__format("%s.content[%lld]", path, (long long)i);
        plumb_status status = check_block(c, inner.s, block, text_only);
        if (status != PLUMB_OK) return status;
    }
    return PLUMB_OK;
}

/* The "content" member: a str, a list of blocks, or nothing. */
static plumb_status get_content(const checker *c, const plumb__python_value *object,
                                const char *path, bool text_only,
                                const plumb__python_value **content) {
    plumb_status status = get(c, object, path, "content", KIND(STR) | KIND(LIST),
                              "a string or an array of blocks", content);
    return status != PLUMB_OK ? status : check_list(c, path, *content, text_only);
}

static plumb_status add_block(checker *c, plumb__chat_block block) {
    plumb__chat_conversation *v = c->conversation;
    plumb__chat_block *grown =
        plumb__grow(v->blocks, &v->blocks_capacity, v->n_blocks + 1, sizeof *grown);
    if (!grown) return plumb__fail_memory(c->err, "blocks", (size_t)v->n_blocks * sizeof *grown);
    v->blocks = grown;
    grown[v->n_blocks++] = block;
    v->messages[v->n_messages - 1].n_blocks++;
    return PLUMB_OK;
}

/* One block of a user's content list; results given here carry their call's id as tool_use_id. */
static plumb_status add_listed_block(checker *c, int64_t place, const plumb__python_value *listed) {
    plumb__chat_block block = {.kind = plumb__chat_block_kind_of(listed)};
    if (block.kind == PLUMB__BLOCK_TEXT) block.value = plumb__python_member(listed, "text");
    if (block.kind == PLUMB__BLOCK_UNSUPPORTED) block.value = plumb__python_member(listed, "type");
    if (block.kind == PLUMB__BLOCK_RESULT) {
        plumb__text192 path = plumb__format(".content[%lld]", (long long)place);
        plumb_status status = get_content(c, listed, path.s, false, &block.value);
        if (status == PLUMB_OK)
            status = get(c, listed, path.s, "tool_use_id", KIND(STR), "a string", &block.call_id);
        if (status != PLUMB_OK) return status;
    }
    return add_block(c, block);
}

static plumb_status add_user_blocks(checker *c, const plumb__python_value *node) {
    const plumb__python_value *content;
    plumb_status status = get_content(c, node, "", false, &content);
    if (status != PLUMB_OK) return status;
    if (!content || content->kind == PLUMB__PYTHON_STR)
        return add_block(c, (plumb__chat_block){.kind = PLUMB__BLOCK_TEXT, .value = content});
    int64_t place = 0;
    for (const plumb__python_value *b = content->child; b && status == PLUMB_OK; b = b->next)
        status = add_listed_block(c, place++, b);
    return status;
}

static plumb_status add_tool_result(checker *c, const plumb__python_value *node) {
    plumb__chat_block block = {.kind = PLUMB__BLOCK_RESULT};
    plumb_status status = get_content(c, node, "", false, &block.value);
    if (status == PLUMB_OK)
        status = get(c, node, "", "tool_call_id", KIND(STR), "a string", &block.call_id);
    return status != PLUMB_OK ? status : add_block(c, block);
}

static plumb_status check_calls(const checker *c, const plumb__python_value *calls) {
    int64_t i = 0;
    if (!calls) return PLUMB_OK;
    for (const plumb__python_value *call = calls->child; call; call = call->next, i++) {
        const plumb__python_value *function, *value;
        plumb__text192 path = plumb__format(".tool_calls[%lld]", (long long)i);
        plumb_status status = get(c, call, path.s, "id", KIND(STR), "a string", &value);
        if (status == PLUMB_OK)
            status = get(c, call, path.s, "function", KIND(DICT), "!an object", &function);
        if (status != PLUMB_OK) return status;
        path = plumb__format(".tool_calls[%lld].function", (long long)i);
        status = get(c, function, path.s, "name", KIND(STR), "!a string", &value);
        if (status == PLUMB_OK)
            status = get(c, function, path.s, "arguments", ~KIND(NONE),
                         "!an object, or its JSON text as a string", &value);
        if (status != PLUMB_OK) return status;
    }
    return PLUMB_OK;
}

static plumb_status check_tools(const checker *c, const plumb__python_value *tools) {
    int64_t i = 0;
    if (!tools) return PLUMB_OK;
    for (const plumb__python_value *tool = tools->child; tool; tool = tool->next, i++) {
        const plumb__python_value *function;
        plumb__text192 path = plumb__format(".tools[%lld]", (long long)i);
        plumb_status status = get(c, tool, path.s, "function", KIND(DICT), "!an object", &function);
        if (status != PLUMB_OK) return status;
    }
    return PLUMB_OK;
}

static plumb_status get_task(const checker *c, const plumb__python_value *node,
                             const char **control) {
    static const struct {
        const char *name, *control;
    } tasks[] = {{"action", PLUMB__CONTROL_ACTION},       {"query", PLUMB__CONTROL_QUERY},
                 {"authority", PLUMB__CONTROL_AUTHORITY}, {"domain", PLUMB__CONTROL_DOMAIN},
                 {"title", PLUMB__CONTROL_TITLE},         {"read_url", PLUMB__CONTROL_READ_URL}};
    static const char expected[] = "action, query, authority, domain, title or read_url";
    const plumb__python_value *task;
    plumb_status status = get(c, node, "", "task", KIND(STR), expected, &task);
    if (status != PLUMB_OK || !task) return status;
    for (size_t i = 0; i < sizeof tasks / sizeof tasks[0]; i++)
        if (plumb__python_str_is(task, tasks[i].name)) *control = tasks[i].control;
    return *control ? PLUMB_OK : refuse(c, "", "task", task, expected);
}

static plumb_status get_role(const checker *c, const plumb__python_value *node,
                             plumb__chat_role *role) {
    static const struct {
        const char *name;
        plumb__chat_role role;
    } roles[] = {{"system", PLUMB__ROLE_SYSTEM},  {"user", PLUMB__ROLE_USER},
                 {"developer", PLUMB__ROLE_USER}, {"assistant", PLUMB__ROLE_ASSISTANT},
                 {"tool", PLUMB__ROLE_TOOL},      {"latest_reminder", PLUMB__ROLE_REMINDER}};
    static const char expected[] = "!system, developer, user, assistant, tool or latest_reminder";
    const plumb__python_value *name;
    plumb_status status = get(c, node, "", "role", KIND(STR), expected, &name);
    if (status != PLUMB_OK) return status;
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        if (!plumb__python_str_is(name, roles[i].name)) continue;
        *role = roles[i].role;
        return PLUMB_OK;
    }
    return refuse(c, "", "role", name, expected + 1);
}

/* The fields beside role and a user's blocks. */
static plumb_status get_fields(const checker *c, const plumb__python_value *node,
                               plumb__chat_message *m) {
    const plumb__python_value *flag = NULL;
    plumb_status status = PLUMB_OK;
    if (m->role != PLUMB__ROLE_USER && m->role != PLUMB__ROLE_TOOL)
        status = get_content(c, node, "", true, &m->content);
    if (status == PLUMB_OK)
        status = get(c, node, "", "reasoning_content", KIND(STR), "a string", &m->reasoning);
    if (status == PLUMB_OK)
        status = get(c, node, "", "tool_calls", KIND(LIST), "an array", &m->calls);
    if (status == PLUMB_OK) status = check_calls(c, m->calls);
    if (status == PLUMB_OK) status = get(c, node, "", "tools", KIND(LIST), "an array", &m->tools);
    if (status == PLUMB_OK) status = check_tools(c, m->tools);
    if (status == PLUMB_OK)
        status = get(c, node, "", "response_format", ~0u, "a schema", &m->response_format);
    if (status == PLUMB_OK) status = get_task(c, node, &m->task);
    if (status == PLUMB_OK)
        status = get(c, node, "", "wo_eos", KIND(TRUE) | KIND(FALSE), "a boolean", &flag);
    m->without_eos = flag && flag->kind == PLUMB__PYTHON_TRUE;
    if (m->calls && m->calls->count == 0) m->calls = NULL;
    if (m->tools && m->tools->count == 0) m->tools = NULL;
    return status;
}

static plumb_status add_message(checker *c, plumb__chat_message message) {
    plumb__chat_conversation *v = c->conversation;
    plumb__chat_message *grown =
        plumb__grow(v->messages, &v->messages_capacity, v->n_messages + 1, sizeof *grown);
    if (!grown)
        return plumb__fail_memory(c->err, "messages", (size_t)v->n_messages * sizeof *grown);
    v->messages = grown;
    message.first_block = v->n_blocks;
    grown[v->n_messages++] = message;
    v->has_tools |= message.tools != NULL;
    return PLUMB_OK;
}

/* Tool messages join the user message before them, or make one; a user message joins the one
 * before it unless that one carries a task.  What joins loses its other fields. */
static plumb_status read_message(checker *c, const plumb__python_value *node) {
    plumb__chat_message message = {0};
    if (node->kind != PLUMB__PYTHON_DICT)
        return plumb__fail(c->err, PLUMB_ERROR_TEXT, NULL, "messages", c->index,
                           plumb__python_kind_name(node->kind), "an object");
    plumb_status status = get_role(c, node, &message.role);
    if (status == PLUMB_OK) status = get_fields(c, node, &message);
    if (status != PLUMB_OK) return status;

    plumb__chat_conversation *v = c->conversation;
    const plumb__chat_message *before = v->n_messages ? &v->messages[v->n_messages - 1] : NULL;
    bool tool = message.role == PLUMB__ROLE_TOOL, user = message.role == PLUMB__ROLE_USER;
    bool joins = before && before->role == PLUMB__ROLE_USER && (tool || (user && !before->task));
    if (tool) message = (plumb__chat_message){.role = PLUMB__ROLE_USER};
    if (!joins) status = add_message(c, message);
    if (status != PLUMB_OK) return status;
    if (tool) return add_tool_result(c, node);
    return user ? add_user_blocks(c, node) : PLUMB_OK;
}

/* An id and where it stands: of a call, its place in the call order. */
typedef struct id_place {
    const plumb__python_value *id;
    int64_t place;
} id_place;

static int compare_ids(const plumb__python_value *a, const plumb__python_value *b) {
    size_t shorter = a->size < b->size ? a->size : b->size;
    int order = shorter ? memcmp(a->bytes, b->bytes, shorter) : 0;
    return order ? order : (a->size > b->size) - (a->size < b->size);
}

static int compare_id_places(const void *a, const void *b) {
    const id_place *x = a, *y = b;
    int order = compare_ids(x->id, y->id);
    return order ? order : (x->place > y->place) - (x->place < y->place);
}

/* The place of the last call with this id; 0 for ids that no call has. */
static int64_t find_place(const id_place *sorted, int64_t count, const plumb__python_value *id) {
    int64_t low = 0, high = count; /* the first entry beyond `id` */
    if (!id) return 0;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (compare_ids(sorted[middle].id, id) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && compare_ids(sorted[low - 1].id, id) == 0 ? sorted[low - 1].place : 0;
}

typedef struct ranked_block {
    plumb__chat_block block;
    int64_t rank, place;
} ranked_block;

static int compare_ranks(const void *a, const void *b) {
    const ranked_block *x = a, *y = b;
    if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

/* Puts the results among `blocks` into call order, in the places that results have. */
static plumb_status sort_results(plumb__chat_block *blocks, int64_t n_blocks, const id_place *calls,
                                 int64_t n_calls, plumb_error *err) {
    int64_t n = 0;
    ranked_block *ranked = malloc((size_t)n_blocks * sizeof *ranked);
    if (!ranked) return plumb__fail_memory(err, "tool results", (size_t)n_blocks * sizeof *ranked);
    for (int64_t i = 0; i < n_blocks; i++) {
        if (blocks[i].kind != PLUMB__BLOCK_RESULT) continue;
        ranked[n] = (ranked_block){blocks[i], find_place(calls, n_calls, blocks[i].call_id), n};
        n++;
    }
    if (n > 1) qsort(ranked, (size_t)n, sizeof *ranked, compare_ranks);
    for (int64_t i = 0, next = 0; i < n_blocks; i++)
        if (blocks[i].kind == PLUMB__BLOCK_RESULT) blocks[i] = ranked[next++].block;
    free(ranked);
    return PLUMB_OK;
}

/* The ids of an assistant message's calls, sorted. */
static plumb_status list_calls(const plumb__python_value *calls, id_place **list, int64_t *count,
                               plumb_error *err) {
    int64_t place = 0;
    *count = 0;
    free(*list);
    *list = malloc((size_t)calls->count * sizeof **list);
    if (!*list) return plumb__fail_memory(err, "tool_calls", (size_t)calls->count * sizeof **list);
    for (const plumb__python_value *call = calls->child; call; call = call->next, place++) {
        const plumb__python_value *id = plumb__python_member(call, "id");
        if (id && id->kind == PLUMB__PYTHON_STR && id->size)
            (*list)[(*count)++] = (id_place){id, place};
    }
    if (*count > 1) qsort(*list, (size_t)*count, sizeof **list, compare_id_places);
    return PLUMB_OK;
}

static plumb_status order_results(plumb__chat_conversation *v, plumb_error *err) {
    id_place *calls = NULL;
    int64_t n_calls = 0;
    plumb_status status = PLUMB_OK;
    for (int64_t i = 0; i < v->n_messages && status == PLUMB_OK; i++) {
        const plumb__chat_message *m = &v->messages[i];
        if (m->role == PLUMB__ROLE_ASSISTANT && m->calls)
            status = list_calls(m->calls, &calls, &n_calls, err);
        if (m->role == PLUMB__ROLE_USER && m->n_blocks > 1)
            status = sort_results(v->blocks + m->first_block, m->n_blocks, calls, n_calls, err);
    }
    free(calls);
    return status;
}

static plumb_status read_all(plumb__chat_conversation *v, plumb_error *err) {
    checker c = {.conversation = v, .err = err};
    const plumb__python_value *root = v->json.root;
    if (root->kind != PLUMB__PYTHON_LIST || root->count == 0)
        return plumb__fail(err, PLUMB_ERROR_TEXT, NULL, "messages", -1,
                           root->kind == PLUMB__PYTHON_LIST ? "no message"
                                                            : plumb__python_kind_name(root->kind),
                           "an array of messages");
    for (const plumb__python_value *node = root->child; node; node = node->next, c.index++) {
        plumb_status status = read_message(&c, node);
        if (status != PLUMB_OK) return status;
    }
    v->last = -1;
    for (int64_t i = 0; i < v->n_messages; i++) {
        plumb__chat_role role = v->messages[i].role;
        if (role == PLUMB__ROLE_USER || (role == PLUMB__ROLE_SYSTEM && i > 0)) v->last = i;
    }
    return order_results(v, err);
}

plumb_status plumb__chat_conversation_read(const char *messages, size_t size,
                                           plumb__chat_conversation *conversation,
                                           plumb_error *err) {
    plumb__chat_conversation v = {0};
    if (size > PLUMB__MESSAGES_BYTES_MAX)
        return plumb__fail(err, PLUMB_ERROR_TEXT, NULL, "messages", -1,
                           plumb__format("%zu bytes", size).s, "at most %zu",
                           PLUMB__MESSAGES_BYTES_MAX);
    plumb_status status = plumb__python_json_read(messages, size, false, "messages", &v.json, err);
    if (status == PLUMB_OK) status = read_all(&v, err);
    if (status == PLUMB_OK)
        *conversation = v;
    else
        plumb__chat_conversation_free(&v);
    return status;
}

void plumb__chat_conversation_free(plumb__chat_conversation *conversation) {
    plumb__python_json_free(&conversation->json);
    free(conversation->messages);
    free(conversation->blocks);
    *conversation = (plumb__chat_conversation){0};
}
