#!/usr/bin/env python3
"""A thousand idle connections at once, and a request still answered: http_many.py SERVER."""
import resource
import sys

from http_driver import Server, check, run

CONNECTIONS, SPARE = 1000, 100
REQUEST = b"GET /echo HTTP/1.1\r\nHost: t\r\n\r\n"


def test_idle_thousand(program):
    with Server(program, connections=CONNECTIONS + SPARE) as server:
        clients = [server.client() for _ in range(CONNECTIONS)]
        check(server.ask(REQUEST).status == 200, "one more")
        for i in range(0, CONNECTIONS, 100):  # any of them
            clients[i].send(REQUEST)
            check(clients[i].answer().status == 200, f"client {i}")
        connections, exchanges = server.figures()
        check(connections >= CONNECTIONS and exchanges == 0, f"{connections} connections, {exchanges} exchanges")
        for client in clients:
            client.socket.close()
        check(server.ask(REQUEST).status == 200, "after them")


if __name__ == "__main__":
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = CONNECTIONS + 2 * SPARE
    if soft != resource.RLIM_INFINITY and soft < needed:
        if hard != resource.RLIM_INFINITY and hard < needed:
            print(f"skipped: a process may open {hard} files only")
            sys.exit(77)
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    sys.exit(run([test_idle_thousand], sys.argv[1]))
