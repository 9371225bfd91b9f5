/* What the files of the server share: its state, one request on its way, and the endpoints. */
#ifndef PLUMB_SERVER_SERVER_PARTS_H
#define PLUMB_SERVER_SERVER_PARTS_H

#include "server/api.h"
#include "server/http.h"
#include "server/pace.h"
#include "server/scheduler.h"
#include "server/server.h"

typedef struct plumb_served plumb_served;

struct plumb_server {
    plumb_server_options options;
    plumb_sampling sampling;
    plumb_api_context context;
    plumb_http *http;
    plumb_scheduler *scheduler;
    void **api_state;       /* of each row of plumb__apis */
    plumb_served *first;    /* requests on their way */
    int64_t started, requests; /* seconds since 1970; served so far */
    double stop_at;         /* when patience ends, by plumb__now; 0: not stopping */
    double cut_at;          /* when the loop ends whatever is left to send; 0: something may still run */
    int64_t ticks;
    bool stopping;
};

/* A request between its arrival and its answer's end. */
struct plumb_served {
    plumb_response response; /* first: a response is the request it answers */
    plumb_server *server;
    plumb_http_exchange *exchange;
    const plumb_api *api;       /* NULL: a plain endpoint, answered at once */
    plumb_api_request *request;
    plumb_job *job;             /* NULL before and after it runs */
    int runs_left;
    bool streaming;
    int64_t written;            /* bytes of the answer */
    plumb_pace pace;            /* at which the client takes them */
    plumb_served *next, **link;
};

/* The APIs (server.c), and what the server does with one of their requests (served.c). */
extern const plumb_api *const plumb__apis[];
extern const int plumb__n_apis;
plumb_served *plumb__served_create(plumb_server *server, plumb_http_exchange *exchange); /* NULL: no memory */
void plumb__served_generate(plumb_served *served, int api);
/* Gives up, and tells the client why. */
void plumb__served_cancel(plumb_served *served, const plumb_api_error *error);
void plumb__served_destroy(plumb_served *served);
/* Tells the scheduler how much of the answer its client has not taken: a job that waits for that goes on when it
 * has. */
void plumb__served_note_unsent(plumb_served *served);
/* The same, once a tick; gives up on a client that takes next to nothing. */
void plumb__served_tick(plumb_served *served);
/* A sign of life for clients and proxies, of answers that are streamed. */
void plumb__served_keep_alive(plumb_served *served);

/* Plain endpoints: write the whole answer. */
typedef void plumb_endpoint(plumb_server *server, plumb_http_exchange *exchange, plumb_response *response);
plumb_endpoint plumb__endpoint_health, plumb__endpoint_metrics, plumb__endpoint_props, plumb__endpoint_slots;
plumb_endpoint plumb__endpoint_models, plumb__endpoint_model, plumb__endpoint_tokenize, plumb__endpoint_detokenize;
plumb_endpoint plumb__endpoint_page;

/* Who may ask (access.c). */
bool plumb__access_has_key(const plumb_server *server, const plumb_http_exchange *exchange);
/* A page of another origin, or another name for this machine, has no business here. */
bool plumb__access_is_foreign(const plumb_server *server, const plumb_http_exchange *exchange);
void plumb__access_set_headers(const plumb_server *server, plumb_http_exchange *exchange);

void plumb__server_log(const plumb_server *server, plumb_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
