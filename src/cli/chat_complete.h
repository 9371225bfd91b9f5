/* What Tab completes in a chat: names of commands, and of files after /save and /load. */
#ifndef PLUMB_CLI_CHAT_COMPLETE_H
#define PLUMB_CLI_CHAT_COMPLETE_H

#include "cli/line_input.h"

/* A cli_completer; `user` is the home folder that ~ stands for, or NULL. */
bool cli_chat_complete(void *user, const char *begin, cli_completion *completion);

#endif
