/* The commands of a chat: lines that start with a slash. */
#ifndef PLUMB_CLI_CHAT_COMMANDS_H
#define PLUMB_CLI_CHAT_COMMANDS_H

/* Name and line of help of each, for --help, /help and completion alike. */
#define CLI_CHAT_COMMANDS(X)                                                                      \
    X(help, "/help          list these commands")                                                 \
    X(paste, "/paste         take the following lines as one message, up to a line /end")         \
    X(regen, "/regen         answer the last message again, with the next seed")                  \
    X(undo, "/undo          take back the last message and its answer")                           \
    X(show, "/show          print the conversation")                                              \
    X(reset, "/reset         forget the conversation")                                            \
    X(system, "/system TEXT   forget the conversation and start with this system message")        \
    X(think, "/think LEVEL   0 to 100, low, high or max")                                         \
    X(seed, "/seed N        seed of the sampler")                                                 \
    X(save, "/save FILE     write conversation and session; replaces only what /save wrote")      \
    X(load, "/load FILE     go on from there, by the same model")                                 \
    X(stats, "/stats         tokens held, reused and computed, speed, and sessions on disk")      \
    X(quit, "/quit          leave")

struct cli_talk;

/* Obeys `line`, which is what follows the slash.  Reports failures itself. */
void cli_chat_command(struct cli_talk *talk, const char *line);

#endif
