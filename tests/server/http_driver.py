"""What tests of the HTTP server share: the test server as a process, and clients on raw sockets.

Nothing here measures time.  Waits end with what they wait for; PATIENCE only ends a test that has failed."""
import queue
import socket
import subprocess
import threading

PATIENCE = 120  # seconds; builds with sanitizers are slow, machines may be busy


def check(condition, what):
    if not condition:
        raise AssertionError(what)


class Server:
    """http_test_server; its options are those of plumb_http_options, 0 being the default."""

    def __init__(self, program, header_bytes=0, body_bytes=0, connections=0, request_seconds=PATIENCE,
                 idle_seconds=PATIENCE, stalled_seconds=PATIENCE):
        limits = [header_bytes, body_bytes, connections, request_seconds, idle_seconds, stalled_seconds]
        self.process = subprocess.Popen([program, *map(str, limits)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.port = int(self.wait_for("port ").split()[1])

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def wait_for(self, beginning):
        """The next line that begins so; lines before it are dropped."""
        while True:
            try:
                line = self.lines.get(timeout=PATIENCE)
            except queue.Empty:
                raise AssertionError(f"the server never said {beginning!r}") from None
            check(line is not None, f"the server ended before it said {beginning!r}")
            if line.startswith(beginning):
                return line

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.process.stdin.close()
        try:
            status = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = "it did not stop"
        if kind is None:
            check(status == 0, f"the server ended with {status}")

    def client(self, **options):
        return Client(self.port, **options)

    def ask(self, text):
        """One request of its own connection; `text` is bytes."""
        with self.client() as client:
            client.send(text)
            return client.answer()

    def tell(self, name, order):
        """Has the server do something with a request that it holds; None where it has none."""
        body = order.encode()
        answer = self.ask(b"POST /tell/%s HTTP/1.1\r\nHost: t\r\nContent-Length: %d\r\n\r\n%s"
                          % (name.encode(), len(body), body))
        return answer.body.decode() if answer.status == 200 else None

    def figures(self):
        """(connections, open exchanges), both without the one that asks."""
        answer = self.ask(b"GET /figures HTTP/1.1\r\nHost: t\r\n\r\n")
        return tuple(int(number) - 1 for number in answer.body.split())


class Answer:
    def __init__(self, status, fields, body):
        self.status, self.fields, self.body = status, fields, body

    def __getitem__(self, name):
        return self.fields.get(name.lower())


class Client:
    def __init__(self, port, receive_bytes=0):
        self.socket = socket.socket()
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.bytes = bytearray()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def send_bytewise(self, data):
        for byte in data:
            self.socket.sendall(bytes([byte]))

    def reset(self):
        """Closes with RST in place of FIN."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.socket.close()

    def _more(self):
        piece = self.socket.recv(65536)
        self.bytes += piece
        return piece

    def _need_more(self):
        if not self._more():
            raise AssertionError(f"the connection ended after {bytes(self.bytes[:200])}")

    def take(self, size):
        while len(self.bytes) < size:
            self._need_more()
        taken = bytes(self.bytes[:size])
        del self.bytes[:size]
        return taken

    def take_line(self):
        while b"\r\n" not in self.bytes:
            self._need_more()
        return self.take(self.bytes.index(b"\r\n") + 2)[:-2]

    def head(self):
        """(status, fields); a field that is given twice is a fault."""
        version, status, _ = self.take_line().split(b" ", 2)
        check(version in (b"HTTP/1.1", b"HTTP/1.0"), version)
        fields = {}
        while line := self.take_line():
            name, value = line.decode("latin-1").split(": ", 1)
            check(name.lower() not in fields, f"{name} is given twice")
            fields[name.lower()] = value
        return int(status), fields

    def chunk(self):
        size = int(self.take_line(), 16)
        data = self.take(size)
        check(self.take_line() == b"", "a chunk does not end with its line")
        return data

    def answer(self, method="GET"):
        status, fields = self.head()
        if method == "HEAD" or status in (100, 204, 304):
            return Answer(status, fields, b"")
        if fields.get("transfer-encoding") == "chunked":
            check("content-length" not in fields, "an answer has two lengths")
            body = b""
            while piece := self.chunk():
                body += piece
        elif "content-length" in fields:
            body = self.take(int(fields["content-length"]))
        else:
            body = self.rest()
        return Answer(status, fields, body)

    def rest(self):
        """All that comes until the server has closed its half."""
        while self._more():
            pass
        return self.take(len(self.bytes))

    def ended(self):
        """Whether the server closes without another byte."""
        try:
            return self.rest() == b""
        except ConnectionResetError:
            return True


def run(tests, program):
    """Runs functions that take the program; the last line counts."""
    failed = 0
    for test in tests:
        try:
            test(program)
            print("ok  ", test.__name__)
        except (AssertionError, OSError, ValueError) as error:
            failed += 1
            print("FAIL", test.__name__, repr(error))
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed or not tests else 0
