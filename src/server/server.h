/* The server: one event loop that speaks HTTP, one scheduler that computes, and the table of what is served.
 *
 * plumb__server_run returns when it was asked to stop and what was running has ended; nothing here catches
 * signals: `stopping` is asked ten times a second. */
#ifndef PLUMB_SERVER_SERVER_H
#define PLUMB_SERVER_SERVER_H

#include "plumb.h"

typedef struct plumb_server plumb_server;

typedef enum plumb_server_wish {
    PLUMB_SERVER_GO_ON,
    PLUMB_SERVER_STOP, /* take nothing new, finish what runs */
    PLUMB_SERVER_STOP_NOW /* cancel what runs, save its sessions */
} plumb_server_wish;

typedef struct plumb_server_options {
    plumb_model *model; /* this and `text` outlive the server */
    const plumb_text *text;
    const char *model_id;       /* as clients call it */
    const char *host;
    int port;                   /* 0: any that is free */
    const char *api_keys;       /* lines, each a key; NULL: everybody may ask */
    const char *cors_origin;    /* a page of this origin may ask, "*": of any; NULL: only the server's own */
    int64_t most_body_bytes;    /* 0: 64 MiB */
    int slots;                  /* answers at the same time */
    int most_waiting;           /* more are answered 429 */
    int64_t context, quantum;   /* as plumb_scheduler_options has them */
    const char *session_dir;
    int64_t session_dir_size, session_dir_daily;
    const plumb_sampling *sampling; /* what applies where a request says nothing */
    bool thinking;
    int effort;
    int keep_alive_seconds;     /* between signs of life of streams that wait; 0: 10 */
    int patience_seconds;       /* PLUMB_SERVER_STOP becomes PLUMB_SERVER_STOP_NOW after so many; 0: 30 */
    plumb_server_wish (*wish)(void *user);
    void *user;
    plumb_log_fn log;           /* any thread; NULL: silent */
    void *log_user;
} plumb_server_options;

/* Listens, and makes sure that there is memory for one session at least. */
PLUMB_MUST_CHECK plumb_status plumb__server_create(const plumb_server_options *options, plumb_server **server,
                                                   plumb_error *err);
int plumb__server_port(const plumb_server *server);
PLUMB_MUST_CHECK plumb_status plumb__server_run(plumb_server *server, plumb_error *err);
void plumb__server_destroy(plumb_server *server); /* saves sessions; NULL is fine */

#endif
