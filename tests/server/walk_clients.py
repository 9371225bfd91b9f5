"""How the clients of walk.py talk: to the end, slowly, or not to the end."""

import http.client
import io
import json
import socket
import threading
import time

from serving import PATIENCE


class Cut(Exception):
    """The server went, or would not begin: to be asked once more."""


class Left(Exception):
    """The client went."""


class Meter:
    """How much has come to all clients of a round: moments are told by that, not by a clock."""

    def __init__(self, clients):
        self.changed = threading.Condition()
        self.bytes, self.clients = 0, clients

    def add(self, count):
        with self.changed:
            self.bytes += count
            self.changed.notify_all()

    def ended(self):
        with self.changed:
            self.clients -= 1
            self.changed.notify_all()

    def wait(self, count):
        """Until so many bytes more came, or nobody is left."""
        with self.changed:
            wanted = self.bytes + count
            assert self.changed.wait_for(lambda: self.bytes >= wanted or self.clients == 0, PATIENCE), "it hangs"


class Bytes:
    """What http.client reads an answer from."""

    def __init__(self, content):
        self.content = content

    def makefile(self, *_arguments):
        return io.BytesIO(self.content)


def parse(raw):
    answer = http.client.HTTPResponse(Bytes(raw))
    try:
        answer.begin()
        return answer.status, answer.read().decode()
    except (http.client.HTTPException, ValueError) as fault:
        raise Cut(f"half an answer: {raw[-200:]}") from fault


def receive(client, meter, leave, slow):
    """All that comes, or so many bytes of it."""
    raw = b""
    while leave is None or len(raw) < leave:
        piece = client.recv(256 if slow else 1 << 16)
        if not piece:
            return raw
        raw += piece
        meter.add(len(piece))
        if slow:
            time.sleep(0.001)
    raise Left


def exchange(port, path, body, meter, leave=None, slow=False):
    """Status and text; `leave`: hangs up after so many bytes of the answer."""
    data = (body if isinstance(body, str) else json.dumps(body)).encode()
    end = time.time() + PATIENCE
    while time.time() < end:
        try:
            with socket.socket() as client:
                client.settimeout(PATIENCE)
                if slow:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                client.connect(("127.0.0.1", port))
                client.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                               b"Connection: close\r\nContent-Length: %d\r\n\r\n" % (path.encode(), len(data)) + data)
                status, text = parse(receive(client, meter, leave, slow))
        except ConnectionError as fault:
            raise Cut(str(fault)) from fault
        if status == 503 or (status == 200 and '"server_stopping"' in text) or "the server is stopping" in text:
            raise Cut(text)
        if status != 429:
            return status, text
        time.sleep(0.05)  # the queue is full
    raise AssertionError("no answer")
