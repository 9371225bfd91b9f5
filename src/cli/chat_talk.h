/* A conversation at a prompt: what its loop (cmd_chat.c) and its commands share. */
#ifndef PLUMB_CLI_CHAT_TALK_H
#define PLUMB_CLI_CHAT_TALK_H

#include "cli/chat_message.h"
#include "cli/chat_turn.h"

typedef struct cli_talk {
    cli_chat chat;
    cli_message message;
    bool leave;
    int status; /* CLI_FAILED once a turn or a command has failed */
} cli_talk;

const cli_options *cli_talk_options(const cli_talk *talk);

/* Reports a failure and keeps it for the exit status. */
void cli_talk_fail(cli_talk *talk, const plumb_error *err);
/* After an interruption: in a pipe Ctrl-C means the whole run; at a terminal, what is being done. */
void cli_talk_interrupted(cli_talk *talk);
/* A turn; true if there was one. */
bool cli_talk_send(cli_talk *talk, const char *message, size_t size);
/* Forgets the conversation; it begins with the system message, or none if that is NULL. */
void cli_talk_start_anew(cli_talk *talk, const char *system);
/* Takes back the last turn, of which there is one. */
void cli_talk_take_back(cli_talk *talk);
/* Takes back the last turn and makes another one of its message; if that fails the old one stands. */
void cli_talk_send_again(cli_talk *talk);

#endif
