#!/usr/bin/env python3
"""Requests, well-formed and not, and what they must be answered: http_requests.py SERVER.

Every malformed one is followed by a request for /smuggled: it must be answered once, in JSON, the connection
closed, and what follows never be taken for a request."""
import json
import sys

from http_driver import Server, check, run

HEADER_BYTES, BODY_BYTES = 4096, 10000
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: t\r\n\r\n"


def post(fields, body=b"", target=b"/echo", version=b"1.1"):
    return b"POST %s HTTP/%s\r\nHost: t\r\n%s\r\n%s" % (target, version, fields, body)


def get(target=b"/x", fields=b"", version=b"1.1", host=b"Host: t\r\n"):
    return b"GET %s HTTP/%s\r\n%s%s\r\n" % (target, version, host, fields)


CHUNKED = b"Transfer-Encoding: chunked\r\n"

# name, request, status
REFUSED = [
    ("length twice", post(b"Content-Length: 5\r\nContent-Length: 5\r\n", b"hello"), 400),
    ("two lengths", post(b"Content-Length: 5\r\nContent-Length: 6\r\n", b"hello!"), 400),
    ("length list", post(b"Content-Length: 5, 5\r\n", b"hello"), 400),
    ("length with a plus", post(b"Content-Length: +5\r\n", b"hello"), 400),
    ("length below 0", post(b"Content-Length: -1\r\n"), 400),
    ("length in hex", post(b"Content-Length: 0x5\r\n", b"hello"), 400),
    ("length with a blank", post(b"Content-Length: 5 0\r\n", b"hello"), 400),
    ("no length", post(b"Content-Length:\r\n"), 400),
    ("length after NUL", post(b"Content-Length: 5\0 6\r\n", b"hello!"), 400),
    ("length beyond all", post(b"Content-Length: 99999999999999999999999\r\n"), 413),
    ("length beyond 64 bits", post(b"Content-Length: 18446744073709551617\r\n"), 413),
    ("length beyond the limit", post(b"Content-Length: 10001\r\n"), 413),
    ("length and chunks", post(b"Content-Length: 5\r\n" + CHUNKED, b"0\r\n\r\n"), 400),
    ("chunks and length", post(CHUNKED + b"Content-Length: 5\r\n", b"0\r\n\r\n"), 400),
    ("chunked twice", post(CHUNKED + CHUNKED, b"0\r\n\r\n"), 400),
    ("chunked in chunked", post(b"Transfer-Encoding: chunked, chunked\r\n", b"0\r\n\r\n"), 501),
    ("gzip in chunked", post(b"Transfer-Encoding: gzip, chunked\r\n", b"0\r\n\r\n"), 501),
    ("identity", post(b"Transfer-Encoding: identity\r\n"), 501),
    ("chunked by another name", post(b"Transfer-Encoding: xchunked\r\n", b"0\r\n\r\n"), 501),
    ("no coding", post(b"Transfer-Encoding:\r\n", b"0\r\n\r\n"), 501),
    ("vertical tab before chunked", post(b"Transfer-Encoding: \x0bchunked\r\n", b"0\r\n\r\n"), 400),
    ("chunks in HTTP/1.0", post(CHUNKED, b"0\r\n\r\n", version=b"1.0"), 400),
    ("no length of a chunk", post(CHUNKED, b"\r\nhello\r\n0\r\n\r\n"), 400),
    ("length of a chunk not hex", post(CHUNKED, b"5g\r\nhello\r\n0\r\n\r\n"), 400),
    ("length of a chunk with 0x", post(CHUNKED, b"0x5\r\nhello\r\n0\r\n\r\n"), 400),
    ("length of a chunk below 0", post(CHUNKED, b"-5\r\nhello\r\n0\r\n\r\n"), 400),
    ("length of a chunk with a blank", post(CHUNKED, b"5 \r\nhello\r\n0\r\n\r\n"), 400),
    ("length of a chunk beyond 64 bits", post(CHUNKED, b"10000000000000005\r\nhello\r\n0\r\n\r\n"), 400),
    ("endless length of a chunk", post(CHUNKED, b"0" * 300), 400),
    ("endless extension", post(CHUNKED, b"5;" + b"a" * 300 + b"\r\nhello\r\n0\r\n\r\n"), 400),
    ("NUL in an extension", post(CHUNKED, b"5;\0\r\nhello\r\n0\r\n\r\n"), 400),
    ("bare LF after a chunk's length", post(CHUNKED, b"5\nhello\r\n0\r\n\r\n"), 400),
    ("chunk longer than it says", post(CHUNKED, b"4\r\nhello\r\n0\r\n\r\n"), 400),
    ("chunk with two bytes too many", post(CHUNKED, b"5\r\nhelloXX0\r\n\r\n"), 400),
    ("chunk shorter than it says", post(CHUNKED, b"6\r\nhello\r\n0\r\n\r\n"), 400),
    ("chunk beyond the limit", post(CHUNKED, b"2711\r\n"), 413),
    ("chunks beyond the limit", post(CHUNKED, (b"1000\r\n" + b"a" * 4096 + b"\r\n") * 3), 413),
    ("malformed trailer", post(CHUNKED, b"0\r\nno colon\r\n\r\n"), 400),
    ("continued trailer", post(CHUNKED, b"0\r\na: b\r\n c\r\n\r\n"), 400),
    ("NUL in a trailer", post(CHUNKED, b"0\r\na: \0\r\n\r\n"), 400),
    ("bare LF in a trailer", post(CHUNKED, b"0\r\na: b\n\r\n"), 400),
    ("trailer beyond the limit", post(CHUNKED, b"0\r\n" + b"a: b\r\n" * 1000), 431),
    ("body of HEAD", b"HEAD /x HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nhello", 400),
    ("no host", get(host=b""), 400),
    ("two hosts", get(host=b"Host: a\r\nHost: a\r\n"), 400),
    ("two hosts in HTTP/1.0", get(host=b"Host: a\r\nHost: b\r\n", version=b"1.0"), 400),
    ("host with a path", get(host=b"Host: a/b\r\n"), 400),
    ("host with a blank", get(host=b"Host: a b\r\n"), 400),
    ("continued field", get(fields=b"A: b\r\n c: d\r\n"), 400),
    ("continued with a tab", get(fields=b"A: b\r\n\tc\r\n"), 400),
    ("continued before the first field", get(host=b" Host: t\r\n"), 400),
    ("no colon", get(fields=b"A b\r\n"), 400),
    ("no name", get(fields=b": b\r\n"), 400),
    ("blank before the colon", get(fields=b"Transfer-Encoding : chunked\r\n"), 400),
    ("name with a slash", get(fields=b"A/b: c\r\n"), 400),
    ("name beyond ASCII", get(fields=b"\xc3\xa4: c\r\n"), 400),
    ("NUL in a name", get(fields=b"A\0: c\r\n"), 400),
    ("NUL in a value", get(fields=b"A: b\0c\r\n"), 400),
    ("CR in a value", get(fields=b"A: b\rc\r\n"), 400),
    ("DEL in a value", get(fields=b"A: b\x7fc\r\n"), 400),
    ("bare LF after a field", get(fields=b"A: b\nC: d\r\n"), 400),
    ("bare LF everywhere", b"GET /x HTTP/1.1\nHost: t\n\n", 400),
    ("a first LF", b"\n" + get(), 400),
    ("NUL in the request line", get(b"/x\0y"), 400),
    ("NUL in the method", b"G\0T /x HTTP/1.1\r\nHost: t\r\n\r\n", 400),
    ("NULs alone", b"\0\0\0\0\r\n\r\n", 400),
    ("field too large", get(fields=b"A: " + b"b" * HEADER_BYTES + b"\r\n"), 431),
    ("fields too large", get(fields=(b"A: " + b"b" * 50 + b"\r\n") * 100), 431),
    ("endless field", b"GET /x HTTP/1.1\r\nA: " + b"b" * HEADER_BYTES, 431),
    ("endless target", b"GET /" + b"x" * HEADER_BYTES, 431),
    ("endless empty lines", b"\r\n" * HEADER_BYTES, 431),
    ("too many fields", get(fields=b"A:\r\n" * 300), 431),
    ("unknown method", b"BREW /x HTTP/1.1\r\nHost: t\r\n\r\n", 501),
    ("method in small letters", b"get /x HTTP/1.1\r\nHost: t\r\n\r\n", 501),
    ("TRACE", b"TRACE /x HTTP/1.1\r\nHost: t\r\n\r\n", 405),
    ("CONNECT", b"CONNECT t:80 HTTP/1.1\r\nHost: t\r\n\r\n", 405),
    ("method no token", b"G(T /x HTTP/1.1\r\nHost: t\r\n\r\n", 400),
    ("no method", b" /x HTTP/1.1\r\nHost: t\r\n\r\n", 400),
    ("no target", b"GET HTTP/1.1\r\nHost: t\r\n\r\n", 400),
    ("empty target", b"GET  HTTP/1.1\r\nHost: t\r\n\r\n", 400),
    ("two blanks", b"GET  /x HTTP/1.1\r\nHost: t\r\n\r\n", 400),
    ("blank at the end", b"GET /x HTTP/1.1 \r\nHost: t\r\n\r\n", 400),
    ("HTTP/0.9", b"GET /x\r\n\r\n", 400),
    ("HTTP/2.0", get(version=b"2.0"), 505),
    ("HTTP/2 with prior knowledge", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    ("HTTP/1", get(version=b"1"), 400),
    ("HTTP/1.1.1", get(version=b"1.1.1"), 400),
    ("http/1.1", b"GET /x http/1.1\r\nHost: t\r\n\r\n", 400),
    ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n", 400),
    ("escape cut short", get(b"/x%4"), 400),
    ("escape not hex", get(b"/x%zz"), 400),
    ("escape of nothing", get(b"/x%"), 400),
    ("escape malformed in the query", get(b"/x?a=%f"), 400),
    ("escaped NUL", get(b"/x%00"), 400),
    ("escaped line break", get(b"/x%0d%0aA:%20b"), 400),
    ("not UTF-8", get(b"/x%ff"), 400),
    ("overlong UTF-8", get(b"/x%c0%af"), 400),
    ("climbs", get(b"/../etc/passwd"), 400),
    ("climbs at the end", get(b"/x/.."), 400),
    ("climbs escaped", get(b"/%2e%2E/etc/passwd"), 400),
    ("climbs behind an escaped slash", get(b"/x%2f..%2fy"), 400),
    ("climbs behind a backslash", get(b"/x%5c..%5cy"), 400),
    ("stays where it is", get(b"/./x"), 400),
    ("empty first segment", get(b"//x/y"), 400),
    ("bytes beyond ASCII", get(b"/x\xc3\xa4"), 400),
    ("fragment", get(b"/x#y"), 400),
    ("angle brackets", get(b"/<x>"), 400),
    ("target without a slash", get(b"x"), 400),
    ("*", get(b"*"), 400),
    ("URI of another kind", get(b"ftp://t/x"), 400),
    ("URI without a host", get(b"http:///x"), 400),
    ("URI of a file", get(b"file:///etc/passwd"), 400),
    ("URI that climbs", get(b"http://t/../x"), 400),
    ("unknown expectation", post(b"Expect: 200-maybe\r\nContent-Length: 5\r\n", b"hello"), 417),
    ("too much is expected", post(b"Expect: 100-continue\r\nContent-Length: 10001\r\n"), 413),
]

# name, request, what the server must have understood, body of the answer (None: not looked at)
TAKEN = [
    ("length", post(b"Content-Length: 5\r\n", b"hello"), "POST /echo", b"hello"),
    ("length 0", post(b"Content-Length: 0\r\n"), "POST /echo", b""),
    ("length with zeros", post(b"Content-Length: 0005\r\n", b"hello"), "POST /echo", b"hello"),
    ("blanks around the length", post(b"Content-Length: \t 5 \t\r\n", b"hello"), "POST /echo", b"hello"),
    ("small letters", post(b"content-length: 5\r\n", b"hello"), "POST /echo", b"hello"),
    ("no body", post(b""), "POST /echo", b""),
    ("largest body", post(b"Content-Length: 10000\r\n", b"a" * 10000), "POST /echo", b"a" * 10000),
    ("NULs in the body", post(b"Content-Length: 5\r\n", b"a\0\r\n\0"), "POST /echo", b"a\0\r\n\0"),
    ("no chunk", post(CHUNKED, b"0\r\n\r\n"), "POST /echo", b""),
    ("chunks", post(CHUNKED, b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"), "POST /echo", b"hello world"),
    ("chunks in capitals", post(b"TRANSFER-ENCODING: Chunked\r\n", b"A\r\n0123456789\r\n0\r\n\r\n"), "POST /echo",
     b"0123456789"),
    ("chunks of a byte", post(CHUNKED, b"1\r\na\r\n" * 500 + b"0\r\n\r\n"), "POST /echo", b"a" * 500),
    ("chunk with an extension", post(CHUNKED, b'5;a="b"\r\nhello\r\n0;c\r\n\r\n'), "POST /echo", b"hello"),
    ("zeros before a chunk's length", post(CHUNKED, b"0005\r\nhello\r\n000\r\n\r\n"), "POST /echo", b"hello"),
    ("largest chunk", post(CHUNKED, b"2710\r\n" + b"a" * 10000 + b"\r\n0\r\n\r\n"), "POST /echo", b"a" * 10000),
    ("trailer", post(CHUNKED, b"5\r\nhello\r\n0\r\nX-Value: from a trailer\r\n\r\n"), "POST /echo", b"hello"),
    ("chunks of GET", b"GET /echo HTTP/1.1\r\nHost: t\r\n" + CHUNKED + b"\r\n5\r\nhello\r\n0\r\n\r\n", "GET /echo",
     b"hello"),
    ("body of DELETE", b"DELETE /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nhello", "DELETE /echo", b"hello"),
    ("PUT", b"PUT /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nhello", "PUT /echo", b"hello"),
    ("PATCH", b"PATCH /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nhello", "PATCH /echo", b"hello"),
    ("OPTIONS", b"OPTIONS * HTTP/1.1\r\nHost: t\r\n\r\n", "OPTIONS *", None),
    ("empty host", get(b"/x", host=b"Host:\r\n"), "GET /x", None),
    ("host of IPv6", get(b"/x", host=b"Host: [::1]:8000\r\n"), "GET /x", None),
    ("field beyond ASCII", get(b"/x", fields=b"A: \xc3\xa4\xff\r\n"), "GET /x", None),
    ("empty lines first", b"\r\n\r\n" + get(b"/x"), "GET /x", None),
    ("later HTTP/1", get(b"/x", version=b"1.9"), "GET /x", None),
    ("escapes", get(b"/%78%c3%a4%20%2F%3f?y=%20z"), "GET /xä /?", None),
    ("plus is a plus", get(b"/a+b"), "GET /a+b", None),
    ("dots in names", get(b"/.a/b../...c"), "GET /.a/b../...c", None),
    ("colon in the path", get(b"/a:b@c:80/x"), "GET /a:b@c:80/x", None),
    ("empty segments", get(b"/a//b/"), "GET /a//b/", None),
    ("absolute URI", get(b"http://elsewhere:80/x?y"), "GET /x", None),
    ("absolute URI in capitals", get(b"HTTPS://t/x"), "GET /x", None),
    ("absolute URI without a path", get(b"http://t"), "GET /", None),
    ("absolute URI with a query alone", get(b"http://t?y=/z"), "GET /", None),
    ("question mark alone", get(b"/x?"), "GET /x", None),
]


def understood(server):
    return server.wait_for("request ").split(" ", 1)[1]


def test_refused(program):
    with Server(program, header_bytes=HEADER_BYTES, body_bytes=BODY_BYTES) as server:
        for name, request, status in REFUSED:
            with server.client() as client:
                client.send(request + SMUGGLED)
                answer = client.answer()
                body = json.loads(answer.body)
                error = body["error"]
                check(body["type"] == "error", f"{name}: {body}")  # by which clients of messages know it
                check(answer.status == status, f"{name}: {answer.status} {answer.body}")
                check(answer["connection"] == "close" and answer["content-type"] == "application/json", name)
                check(sorted(error) == ["code", "message", "param", "type"], f"{name}: {error}")
                check(error["type"] == ("invalid_request_error" if status < 500 else "server_error"), name)
                check(client.ended(), f"{name}: more than one answer")
        # Nothing of all that was ever taken for a request.
        server.ask(get(b"/last"))
        check(understood(server) == "GET /last", "a refused request was passed on")


def test_refused_bytewise(program):
    """However the bytes come, they are the same request."""
    with Server(program, header_bytes=HEADER_BYTES, body_bytes=BODY_BYTES) as server:
        for name, request, status in REFUSED:
            if len(request) > 600:
                continue
            with server.client() as client:
                try:
                    client.send_bytewise(request + SMUGGLED)
                except (ConnectionResetError, BrokenPipeError):
                    pass  # refused before it had come as a whole
                answer = client.answer()
                check(answer.status == status, f"{name}: {answer.status} {answer.body}")
        server.ask(get(b"/last"))
        check(understood(server) == "GET /last", "a refused request was passed on")


def test_taken(program):
    """On connections of their own, and all after each other on one."""
    with Server(program, header_bytes=HEADER_BYTES, body_bytes=BODY_BYTES) as server:
        with server.client() as kept:
            for name, request, line, body in TAKEN:
                for client in (server.client(), kept):
                    client.send(request)
                    answer = client.answer()
                    check(answer.status != 400 and answer["connection"] is None, f"{name}: {answer.status}")
                    check(body is None or answer.body == body, f"{name}: {answer.body}")
                    said = understood(server)
                    check(said == line, f"{name}: {said}")
                    check(answer["x-value"] in (None, "none"), f"{name}: a trailer became a header")
                    if client is not kept:
                        client.socket.close()


def test_taken_bytewise(program):
    with Server(program, header_bytes=HEADER_BYTES, body_bytes=BODY_BYTES) as server:
        for name, request, line, body in TAKEN:
            if len(request) > 600:
                continue
            with server.client() as client:
                client.send_bytewise(request)
                answer = client.answer()
                check(body is None or answer.body == body, f"{name}: {answer.body}")
                check(understood(server) == line, name)


def test_pipelined(program):
    """All of them at once: answers in order, none crossed or lost; a malformed one ends it."""
    with Server(program, header_bytes=HEADER_BYTES, body_bytes=BODY_BYTES) as server:
        with server.client() as client:
            requests = [post(b"X-Value: %d\r\nContent-Length: %d\r\n" % (i, i), b"x" * i) for i in range(150)]
            client.send(b"".join(requests) + post(b"Content-Length: x\r\n") + SMUGGLED)
            for i in range(150):
                answer = client.answer()
                check((answer.status, answer["x-value"], answer.body) == (200, str(i), b"x" * i), f"answer {i}")
            check(client.answer().status == 400 and client.ended(), "the malformed one")


def test_versions(program):
    """Who keeps a connection, and how an answer ends where it is not kept."""
    cases = [  # request, version and Connection of the answer, whether the connection is kept
        (get(b"/echo"), b"HTTP/1.1", None, True),
        (get(b"/echo", b"Connection: close\r\n"), b"HTTP/1.1", "close", False),
        (get(b"/echo", b"Connection: x, Close\r\n"), b"HTTP/1.1", "close", False),
        (get(b"/echo", b"Connection: x\r\nConnection: close\r\n"), b"HTTP/1.1", "close", False),
        (get(b"/echo", b"Connection: keep-alive\r\n"), b"HTTP/1.1", None, True),
        (get(b"/echo", version=b"1.0"), b"HTTP/1.0", "close", False),
        (get(b"/echo", version=b"1.0", host=b""), b"HTTP/1.0", "close", False),
        (get(b"/echo", b"Connection: Keep-Alive\r\n", b"1.0"), b"HTTP/1.0", "keep-alive", True),
    ]
    with Server(program) as server:
        for request, version, connection, kept in cases:
            with server.client() as client:
                client.send(request)
                while not client.bytes.startswith(version):
                    check(client._more(), f"{request}: no {version}")
                answer = client.answer()
                check(answer.status == 200 and answer["connection"] == connection, f"{request}: {answer.fields}")
                check(answer["content-length"] == "0", f"{request}: no length")
                if kept:
                    client.send(request)
                    check(client.answer().status == 200, f"{request}: not kept")
                else:
                    check(client.ended(), f"{request}: kept")


def test_bodiless_answers(program):
    with Server(program) as server, server.client() as client:
        client.send(b"HEAD /big/1000 HTTP/1.1\r\nHost: t\r\n\r\n" + get(b"/empty") + get(b"/big/1000"))
        answer = client.answer("HEAD")
        check((answer.status, answer["content-length"]) == (200, "1000"), f"HEAD: {answer.fields}")
        answer = client.answer()
        check(answer.status == 204 and answer["content-length"] is None, f"204: {answer.fields}")
        check(client.answer().body == b"x" * 1000, "what came after them")


def test_continue(program):
    """The body is asked for where it is missing, and only there."""
    head = b"POST /echo HTTP/1.%d\r\nHost: t\r\nExpect: 100-Continue\r\n%s\r\n"
    with Server(program) as server:
        for fields, body in ((b"Content-Length: 5\r\n", b"hello"), (CHUNKED, b"5\r\nhello\r\n0\r\n\r\n")):
            with server.client() as client:
                for _ in range(2):
                    client.send(head % (1, fields))
                    check(client.answer().status == 100, "no 100")
                    client.send_bytewise(body)
                    check(client.answer().body == b"hello", "no answer")
                client.send(head % (1, fields) + body)
                check(client.answer().status == 200, "100 for a body that was there")
                client.send(head % (1, b""))
                check(client.answer().status == 200, "100 without a body")
            with server.client() as client:
                client.send(head % (0, b"Content-Length: 5\r\n"))
                client.send(b"hello")
                check(client.answer().status == 200, "100 in HTTP/1.0")


TESTS = [test_refused, test_refused_bytewise, test_taken, test_taken_bytewise, test_pipelined, test_versions,
         test_bodiless_answers, test_continue]

if __name__ == "__main__":
    sys.exit(run(TESTS, sys.argv[1]))
