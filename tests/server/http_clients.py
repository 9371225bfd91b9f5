#!/usr/bin/env python3
"""Clients that hang up, stall, hurry ahead or come in crowds: http_clients.py SERVER."""
import json
import select
import socket
import sys
import time

from http_driver import PATIENCE, Server, check, run


def get(path, fields=b"", version=b"1.1"):
    return b"GET %s HTTP/%s\r\nHost: t\r\n%s\r\n" % (path.encode(), version, fields)


def hold(server, client, name, version=b"1.1"):
    client.send(get(f"/hold/{name}", version=version))
    server.wait_for(f"request GET /hold/{name}")


def settle(server, figures):
    """Waits until the server has as many connections and exchanges, without the one that asks."""
    end = time.time() + PATIENCE
    while (found := server.figures()) != figures:
        check(time.time() < end, f"{found} connections and exchanges, not {figures}")
        time.sleep(0.02)


def test_stream(program):
    """Each piece arrives when it was written, not later; the connection is kept after it."""
    with Server(program) as server, server.client() as client:
        hold(server, client, "a")
        check(server.tell("a", "begin") == "done", "begin")
        status, fields = client.head()
        check((status, fields["content-type"]) == (200, "text/event-stream"), fields)
        for i in range(20):
            server.tell("a", f"piece {i}")
            check(client.chunk() == b"%d" % i, f"piece {i}")
        server.tell("a", "end")
        check(client.chunk() == b"", "end")
        client.send(get("/echo"))
        check(client.answer().status == 200, "not kept")
        client.send(get("/hold/b", b"Connection: keep-alive\r\n", b"1.0"))
        server.wait_for("request GET /hold/b")
        server.tell("b", "begin")
        server.tell("b", "piece 1")
        server.tell("b", "end")
        answer = client.answer()
        check((answer.status, answer["connection"], answer.body) == (200, "close", b"1"), "stream of HTTP/1.0")


def test_stream_of_head(program):
    with Server(program) as server, server.client() as client:
        client.send(b"HEAD /hold/a HTTP/1.1\r\nHost: t\r\n\r\n")
        server.wait_for("request HEAD /hold/a")
        for order in ("begin", "piece 1", "end"):
            check(server.tell("a", order) == "done", order)
        client.send(get("/echo"))
        check(client.answer("HEAD").status == 200 and client.answer()["x-method"] == "GET", "a body for HEAD")


def test_hang_up(program):
    """Noticed while nothing is sent: before the answer, within a stream, with requests ahead, by FIN and RST."""
    ends = {"close": lambda client: client.socket.close(), "reset": lambda client: client.reset(),
            "shut": lambda client: client.socket.shutdown(socket.SHUT_WR)}
    ahead = {"nothing": b"", "whole": get("/echo"), "part": b"POST /echo HTTP/1.1\r\nHo", "garbage": b"\0" * 3000}
    with Server(program) as server:
        for end, hang_up in ends.items():
            for what, data in ahead.items():
                for streams in (False, True):
                    name = f"{end}-{what}-{streams}"
                    with server.client() as client:
                        hold(server, client, name)
                        if streams:
                            server.tell(name, "begin")
                            server.tell(name, "piece 1")
                            client.head()
                            client.chunk()
                        client.send(data)
                        hang_up(client)
                        server.wait_for(f"gone {name}")
                        check(server.tell(name, "piece 2") is None, f"{name} is still held")
        settle(server, (0, 0))


def test_half_closed(program):
    """Who has sent all there is to say still gets what is answered at once, all of it."""
    with Server(program) as server, server.client() as client:
        client.send(get("/big/3000000") + get("/echo") + get("/big/10"))
        client.socket.shutdown(socket.SHUT_WR)
        check([len(client.answer().body) for _ in range(3)] == [3000000, 0, 10], "answers")
        check(client.ended(), "another answer")


def test_nobody_listens(program):
    """A client that hangs up while it is sent to: no signal, no harm, no leftovers."""
    with Server(program) as server:
        for i in range(20):
            client = server.client()
            hold(server, client, f"a{i}")
            server.tell(f"a{i}", "begin")
            server.tell(f"a{i}", "flood 1000000")
            client.reset()
            server.wait_for(f"gone a{i}")
            client = server.client()
            client.send(get("/big/3000000"))
            server.wait_for("request GET /big/")
            client.reset()
        settle(server, (0, 0))


def test_ahead(program):
    """Requests that were sent ahead wait, whole or not, and are answered in order."""
    with Server(program) as server, server.client() as client:
        hold(server, client, "a")
        body = b"y" * 200000
        head = b"POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 200000\r\n\r\n"
        client.send(get("/hold/b") + head + body[:100000])
        server.tell("a", "whole first")
        check(client.answer().body == b"first", "first")
        server.wait_for("request GET /hold/b")
        client.send(body[100000:])
        server.tell("b", "whole second")
        check([client.answer().body for _ in range(2)] == [b"second", body], "order")


def test_too_far_ahead(program):
    """What is held of requests to come is bounded; the answer that is due comes all the same."""
    with Server(program, header_bytes=4096, body_bytes=10000) as server, server.client() as client:
        hold(server, client, "a")
        # With little room to send, sending ends when the server has read nearly all.
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
        for _ in range(100):
            client.send(get("/echo") * 1000)
        server.tell("a", "whole first")
        answer = client.answer()
        check((answer.body, answer["connection"]) == (b"first", "close"), answer.fields)
        check(client.ended(), "what was dropped is answered")
        client.socket.close()
        settle(server, (0, 0))


def test_crowd(program):
    """What is held of all clients' requests together is bounded, and room again when they have gone."""
    head = b"POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 10000\r\n\r\n"
    with Server(program, header_bytes=4096, body_bytes=10000) as server:
        for _ in range(2):
            clients = [server.client() for _ in range(40)]  # of which about 22 fit
            for client in clients:
                client.send(head + b"x" * 9999)
            check(select.select([client.socket for client in clients], [], [], PATIENCE)[0], "none is refused")
            statuses = []
            for client in clients:
                try:
                    client.send(b"x")
                except (BrokenPipeError, ConnectionResetError):
                    pass
                statuses.append(client.answer().status)
                client.socket.close()
            check(set(statuses) == {200, 503}, statuses)
            settle(server, (0, 0))
        check(server.ask(head + b"x" * 10000).status == 200, "no room")


def test_last_answer(program):
    """A connection that ends after an answer: unread input must not cost the client a part of it."""
    with Server(program) as server:
        for _ in range(5):
            with server.client(receive_bytes=4096) as client:
                client.send(get("/big/3000000", b"Connection: close\r\n"))
                check(client.head()[0] == 200, "status")
                client.send(get("/echo") * 1000)
                check(len(client.rest()) == 3000000, "a part is missing, or there is more")


def test_crossed(program):
    """Forty streams at once, written in turns: each client has its own pieces only, in order."""
    with Server(program) as server:
        clients = [server.client() for _ in range(40)]
        for i, client in enumerate(clients):
            hold(server, client, f"a{i}")
        for i in range(40):
            server.tell(f"a{i}", "begin")
        for piece in range(5):
            for i in range(40):
                server.tell(f"a{i}", f"piece secret-{i}-{piece}")
        for i, client in enumerate(clients):
            server.tell(f"a{i}", "end")
            check(client.answer().body == b"".join(b"secret-%d-%d" % (i, piece) for piece in range(5)), f"client {i}")
            client.socket.close()
        settle(server, (0, 0))


def test_slow_writers(program):
    """Whatever part of a request has come: 408 in time, also to those who go on a byte at a time."""
    parts = [b"G", b"\r\n", b"GET / HTTP/1.1\r\nHo", b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nhell",
             b"POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
             b"POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b"]
    with Server(program, request_seconds=1) as server:
        clients = [server.client() for _ in parts]
        for client, part in zip(clients, parts):
            client.send(get("/echo"))
            check(client.answer().status == 200, "first request")
            client.send(part)
        for client, part in zip(clients, parts):
            answer = client.answer()
            check(answer.status == 408 and json.loads(answer.body)["error"], f"{part}: {answer.status}")
            check(client.ended(), f"{part}: not closed")
        with server.client() as client:
            client.send(b"GET /")
            client.socket.settimeout(0.05)
            while b"\r\n" not in client.bytes:
                try:
                    client.send(b"x")
                    client.bytes += client.socket.recv(65536)
                except socket.timeout:
                    pass
            check(client.bytes.startswith(b"HTTP/1.1 408 "), client.bytes)


def test_idle(program):
    """Closed without a word; a connection with a request to answer is not idle."""
    with Server(program, idle_seconds=1) as server:
        with server.client() as fresh, server.client() as used, server.client() as held:
            hold(server, held, "a")
            used.send(get("/echo"))
            used.answer()
            check(fresh.ended() and used.ended(), "a word")
            server.tell("a", "whole still here")
            check(held.answer().body == b"still here", "held")


def test_slow_readers(program):
    """One that takes nothing for long is gone, its stream ended or not; while it is not, the bytes count."""
    with Server(program, stalled_seconds=1) as server:
        with server.client(receive_bytes=4096) as stream, server.client(receive_bytes=4096) as whole:
            hold(server, stream, "a")
            server.tell("a", "begin")
            server.tell("a", "flood 10000000")
            whole.send(get("/big/10000000"))
            server.wait_for("gone a")
            settle(server, (0, 0))


def test_unsent(program):
    with Server(program) as server, server.client(receive_bytes=4096) as client:
        hold(server, client, "a")
        server.tell("a", "begin")
        server.tell("a", "flood 12000000")
        unsent = int(server.tell("a", "unsent"))
        check(1000000 < unsent <= 12100000, f"{unsent} bytes unsent")
        server.tell("a", "flood 12000000")  # beyond what is held for anybody
        server.wait_for("gone a")
        settle(server, (0, 0))


def test_limit_of_connections(program):
    """Further ones wait, and are served when others end."""
    with Server(program, connections=8) as server:
        first = [server.client() for _ in range(8)]
        for client in first:
            client.send(get("/echo"))
            client.answer()
        late = [server.client() for _ in range(4)]
        for client in late:
            client.send(get("/late"))
        for client in first:
            client.send(get("/echo"))
            check(client.answer().status == 200, "one that was there")
        for _ in range(16):
            check(server.wait_for("request ") == "request GET /echo", "a late one was served before")
        for client, ending in zip(late, first):
            ending.socket.close()
            check(client.answer().body == b"/late", "a late one")


def test_no_more_files(program):
    """The process can open no more: it waits without spinning, and goes on when it can again."""
    with Server(program, connections=100000) as server:
        import resource
        if not hasattr(resource, "prlimit"):
            return
        pid = server.process.pid
        most = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (24, most[1]))
        clients = [server.client() for _ in range(40)]
        for client in clients:
            client.send(get("/echo"))
        check(clients[0].answer().status == 200, "one that got in")
        # Those that wait are served one after the other as files are closed.
        for i, client in enumerate(clients[1:]):
            clients[i].socket.close()
            check(client.answer().status == 200, f"client {i + 1}")
        clients[-1].socket.close()
        settle(server, (0, 0))


def test_calls(program):
    """From other threads, many at once."""
    with Server(program) as server:
        clients = [server.client() for _ in range(30)]
        for i, client in enumerate(clients):
            hold(server, client, f"a{i}")
        for i in range(30):
            check(server.tell(f"a{i}", f"thread {i}") == "done", f"call {i}")
        for i, client in enumerate(clients):
            check(client.answer().body == b"%d" % i, f"answer {i}")
            client.socket.close()


def test_door(program):
    """What runs is finished; what comes is told so."""
    with Server(program) as server, server.client() as running, server.client() as idle:
        hold(server, running, "a")
        idle.send(get("/echo"))
        idle.answer()
        # Sent with what closes the door, since there is no other way in afterwards.
        with server.client() as last:
            last.send(get("/close-door") + get("/echo"))
            check(last.answer().status == 200 and last.answer().status == 503, "the next one")
        for client in (idle, server.client()):
            client.send(get("/echo"))
            answer = client.answer()
            check((answer.status, answer["connection"], answer["retry-after"]) == (503, "close", "1"), f"{answer.status}")
            check(json.loads(answer.body)["error"]["type"] == "server_error", answer.body)
            check(client.ended(), "not closed")
        running.send(get("/echo"))  # refused when its turn has come
        running.socket.close()
        server.wait_for("gone a")


def test_stop(program):
    """With exchanges open, streams begun, bytes unsent, half a request: all told, nothing left (by the sanitizers)."""
    with Server(program) as server:
        clients = [server.client(receive_bytes=4096) for _ in range(6)]
        for i, client in enumerate(clients[:4]):
            hold(server, client, f"a{i}")
        for order in ("begin", "flood 5000000"):
            server.tell("a1", order)
        server.tell("a2", "begin")
        clients[3].send(get("/echo"))
        clients[4].send(get("/big/5000000"))
        clients[5].send(b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 10\r\n\r\n12345")
        last = server.client()
        last.send(get("/stop"))  # its own answer may be lost
        server.wait_for("request GET /stop")
        server.process.stdin.close()
        gone = {server.wait_for("gone ") for _ in range(4)}
        check(gone == {f"gone a{i}" for i in range(4)}, gone)
        server.wait_for("stopped")
        check(server.process.wait(PATIENCE) == 0, "status")


TESTS = [test_stream, test_stream_of_head, test_hang_up, test_half_closed, test_nobody_listens, test_ahead,
         test_too_far_ahead, test_crowd, test_last_answer, test_crossed, test_slow_writers, test_idle,
         test_slow_readers, test_unsent,
         test_limit_of_connections, test_no_more_files, test_calls, test_door, test_stop]

if __name__ == "__main__":
    sys.exit(run(TESTS, sys.argv[1]))
