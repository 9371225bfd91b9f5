/* Listening and accepting.  At the limit of connections, and when the process can open no more files,
 * accepting pauses: the kernel keeps further clients waiting, and the loop does not spin on a socket that
 * stays readable. */
#include "server/http_parts.h"

#include "base/error.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 1024, PAUSE_MICROSECONDS = 100000 };

static void resume(evutil_socket_t socket, short what, void *listener) {
    (void)socket;
    (void)what;
    evconnlistener_enable(listener);
}

/* No more files, or no memory.  The pointer that comes along is evhttp's own, so the timer knows of the
 * listener alone. */
static void pause_accepting(struct evconnlistener *listener, void *user) {
    (void)user;
    const struct timeval after = {.tv_usec = PAUSE_MICROSECONDS};
    if (!event_base_once(evconnlistener_get_base(listener), -1, EV_TIMEOUT, resume, listener, &after))
        evconnlistener_disable(listener);
}

void plumb__http_accept_more(plumb_http *http) {
    if (http->listener && http->n_connections < http->options.most_connections)
        evconnlistener_enable(http->listener);
}

/* A socket that listens at one address, or -1 and errno. */
static int open_socket(const struct addrinfo *address) {
    int on = 1, fd = socket(address->ai_family, address->ai_socktype, address->ai_protocol);
    if (fd < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (!bind(fd, address->ai_addr, address->ai_addrlen) && !listen(fd, BACKLOG) &&
        !evutil_make_socket_nonblocking(fd) && !evutil_make_socket_closeonexec(fd))
        return fd;
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

static int bound_port(int fd) {
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    if (getsockname(fd, (struct sockaddr *)&address, &size)) return 0;
    if (address.ss_family == AF_INET6) return ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
    return ntohs(((struct sockaddr_in *)&address)->sin_port);
}

static plumb_status open_first(const char *host, int port, int *fd, plumb_error *err) {
    char service[16];
    snprintf(service, sizeof service, "%d", port);
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *addresses = NULL;
    int fault = getaddrinfo(host, service, &hints, &addresses);
    if (fault)
        return plumb__fail(err, PLUMB_ERROR_IO, host, "address", -1, gai_strerror(fault), "a host to listen at");
    *fd = -1;
    for (struct addrinfo *address = addresses; address && *fd < 0; address = address->ai_next)
        *fd = open_socket(address);
    int reason = errno;
    freeaddrinfo(addresses);
    if (*fd >= 0) return PLUMB_OK;
    return plumb__fail(err, PLUMB_ERROR_IO, host, "address", -1, strerror(reason), "to listen at port %d", port);
}

plumb_status plumb__http_listen(plumb_http *http, plumb_error *err) {
    int fd = -1;
    plumb_status status = open_first(http->options.host, http->options.port, &fd, err);
    if (status != PLUMB_OK) return status;
    http->port = bound_port(fd);
    http->listener = evconnlistener_new(http->base, NULL, NULL, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
    if (!http->listener) {
        close(fd);
        return plumb__fail_memory(err, "a listening socket", 0);
    }
    if (!evhttp_bind_listener(http->evhttp, http->listener)) {
        evconnlistener_free(http->listener);
        http->listener = NULL;
        return plumb__fail_memory(err, "a listening socket", 0);
    }
    evconnlistener_set_error_cb(http->listener, pause_accepting);
    return PLUMB_OK;
}
