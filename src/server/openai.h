/* What the APIs in OpenAI's style share.
 *
 * Functions that read return false after they have told a fault to fields->error.  Those that make JSON return
 * NULL without memory. */
#ifndef PLUMB_SERVER_OPENAI_H
#define PLUMB_SERVER_OPENAI_H

#include "server/api.h"
#include "server/fields.h"

json_t *plumb__openai_error(const plumb_api_error *error); /* {"error": {...}} */
/* Tells an error to a request: as its whole answer, or as the last event of a stream that has begun. */
void plumb__openai_fail(const plumb_api_error *error, plumb_response *response);

/* ---- Messages and what goes into the prompt with them (openai_messages.c) ---- */

/* Member "messages" as an array of published message objects (plumb_chat_encode), the caller's.
 * *continues: the last one is the start of an answer, which the prompt leaves open. */
bool plumb__openai_messages(const plumb_fields *fields, json_t **messages, bool *continues);
/* A content as it is published: a string, or text parts.  NULL: absent or null. */
bool plumb__openai_content(const plumb_fields *fields, const char *key, json_t **content);
/* Sets a member ("tools", "response_format") of the system message, which is made if there is none.
 * Borrows `value`. */
bool plumb__openai_system_member(const plumb_fields *fields, json_t *messages, const char *key, json_t *value);
/* Hands the messages over to the generation as text. */
bool plumb__openai_set_messages(const plumb_fields *fields, const json_t *messages, plumb_generation *generation);

/* ---- Reasoning (openai_reasoning.c) ---- */

/* Effort by name: "none" to "max", or a number from 1 to 100.  Absent: leaves both as they are. */
bool plumb__openai_effort(const plumb_fields *fields, const char *key, bool *thinking, int *effort);
/* What such a name would be; NULL: there is only the number. */
const char *plumb__openai_effort_name(bool thinking, int effort);
/* All members by which clients of chat completions steer it. */
bool plumb__openai_reasoning(const plumb_fields *fields, plumb_generation *generation);

/* ---- Tools (openai_tools.c) ---- */

/* Member "tools" as published: [{"type", "function": {...}}], the caller's; NULL: none. */
bool plumb__openai_tools(const plumb_fields *fields, json_t **tools);
/* The same of APIs that write tools in another way: `add` checks one and appends it as published. */
bool plumb__openai_list_tools(const plumb_fields *fields, bool (*add)(const plumb_fields *tool, json_t *tools),
                              json_t **tools);
/* One function of member `key`: its name and parameters are fit for a prompt. */
bool plumb__openai_check_function(const plumb_fields *function);
/* The functions of this name, or (NULL) all, as grammars take them, the caller's; NULL: no memory. */
json_t *plumb__openai_functions(const json_t *tools, const char *name);
/* Member "tool_choice" over these tools; sets tools_offered, and what may be sampled. */
bool plumb__openai_tool_choice(const plumb_api_context *context, const plumb_fields *fields, const json_t *tools,
                               bool parallel, plumb_generation *generation);
/* Nothing but calls: of the function `name`, or (NULL) of any.  `key` is blamed for what cannot be. */
bool plumb__openai_force_calls(const plumb_fields *fields, const char *key, const json_t *tools, const char *name,
                               bool several, plumb_generation *generation);
/* No calls, though the prompt tells of tools. */
bool plumb__openai_forbid_calls(const plumb_api_context *context, const plumb_fields *fields,
                                plumb_generation *generation);

/* ---- Formats (openai_format.c) ---- */

/* What came of compiling a grammar: a fault of the client's schema, of memory, or none. */
bool plumb__openai_grammar_made(const plumb_fields *fields, const char *key, plumb_status status,
                                const plumb_error *err);
/* An answer that fits a schema, which the system message tells too; `key` is blamed for what cannot be.  Tools
 * that are offered stand in the system message by now: then an answer may also be calls of them. */
bool plumb__openai_json_schema(const plumb_fields *fields, const char *key, json_t *schema, json_t *messages,
                               plumb_generation *generation);
bool plumb__openai_json_object(const plumb_fields *fields, json_t *messages, plumb_generation *generation);

/* ---- Sampling (openai_sampling.c) ---- */

/* temperature, top_p, min_p, top_k, seed, logit_bias and n, on the server's defaults. */
bool plumb__openai_sampling(const plumb_api_context *context, const plumb_fields *fields,
                            plumb_generation *generation);
bool plumb__openai_add_bias(const plumb_fields *fields, int32_t token, float bias, plumb_generation *generation);
/* Members that would change the answer and are not served, unless they are switched off (openai_unsupported.c). */
bool plumb__openai_refuse_unsupported(const plumb_fields *fields);
/* stream, stream_options.include_usage */
bool plumb__openai_streaming(const plumb_fields *fields, bool *stream, bool *include_usage);

/* ---- Accounts (openai_answer.c) ---- */

json_t *plumb__openai_usage(const plumb_usage *usage);   /* as chat completions have it */
json_t *plumb__openai_timings(const plumb_usage *usage); /* an extension, beside it */

/* ---- Log-probabilities (openai_logprobs.c) ---- */

/* {token, logprob, bytes, top_logprobs}: an element of logprobs.content. */
json_t *plumb__openai_logprob(const plumb_text *text, const plumb_generation_event *token);
json_t *plumb__openai_logprob_value(float logprob); /* JSON has no infinity */

#endif
