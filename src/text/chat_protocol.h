/* The wire constants of the chat protocol (spec: tokenizer-and-chat.md sections 3 to 5): control
 * tokens by their text in tokenizer.json, and the fixed texts the model was trained with. */
#ifndef PLUMB_TEXT_CHAT_PROTOCOL_H
#define PLUMB_TEXT_CHAT_PROTOCOL_H

#define PLUMB__CONTROL_BOS "<｜begin▁of▁sentence｜>"
#define PLUMB__CONTROL_EOS "<｜end▁of▁sentence｜>"
#define PLUMB__CONTROL_SYSTEM "<｜System｜>"
#define PLUMB__CONTROL_USER "<｜User｜>"
#define PLUMB__CONTROL_ASSISTANT "<｜Assistant｜>"
#define PLUMB__CONTROL_REMINDER "<｜latest_reminder｜>"
#define PLUMB__CONTROL_THINK "<think>"
#define PLUMB__CONTROL_THINK_END "</think>"
#define PLUMB__CONTROL_DSML "｜DSML｜"
#define PLUMB__CONTROL_IMAGE "<｜deepseek_image｜>"
#define PLUMB__CONTROL_ACTION "<｜action｜>"
#define PLUMB__CONTROL_QUERY "<｜query｜>"
#define PLUMB__CONTROL_AUTHORITY "<｜authority｜>"
#define PLUMB__CONTROL_DOMAIN "<｜domain｜>"
#define PLUMB__CONTROL_TITLE "<｜title｜>"
#define PLUMB__CONTROL_READ_URL "<｜read_url｜>"

#define PLUMB__EFFORT_DEFAULT 75
#define PLUMB__EFFORT_LINE \
    "Reasoning Effort: %d (range 1-100, the higher the value, the more thorough the reasoning)\n\n"

#define PLUMB__RESPONSE_FORMAT \
    "## Response Format:\n\nYou MUST strictly adhere to the following schema to reply:\n"

/* The tools block, around one line per schema. */
#define PLUMB__TOOLS_BEFORE \
    "## Tools\n" \
    "\n" \
    "You have access to a set of tools to help answer the user's question. You can invoke tools by" \
    " writing a \"<｜DSML｜ calls>\" block like the following:\n" \
    "\n" \
    "<｜DSML｜ calls>\n" \
    "<｜DSML｜ invoke name=\"$TOOL_NAME\">\n" \
    "<｜DSML｜ parameter name=\"$PARAMETER_NAME\" string=\"true|false\">$PARAMETER_VALUE" \
    "</｜DSML｜ parameter>\n" \
    "...\n" \
    "</｜DSML｜ invoke>\n" \
    "<｜DSML｜ invoke name=\"$TOOL_NAME2\">\n" \
    "...\n" \
    "</｜DSML｜ invoke>\n" \
    "</｜DSML｜ calls>\n" \
    "\n" \
    "String parameters should be specified as is and set `string=\"true\"`. For all other types" \
    " (numbers, booleans, arrays, objects), pass the value in JSON format and set" \
    " `string=\"false\"`.\n" \
    "\n" \
    "If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning" \
    " inside <think>...</think> BEFORE any tool calls or final response.\n" \
    "\n" \
    "Otherwise, output directly after </think> with tool calls or final response.\n" \
    "\n" \
    "### Available Tool Schemas\n" \
    "\n"
#define PLUMB__TOOLS_AFTER \
    "\n" \
    "\n" \
    "You MUST strictly follow the above defined tool name and parameter schemas to invoke tool" \
    " calls.\n"

#endif
