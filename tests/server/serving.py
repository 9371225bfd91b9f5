"""A `plumb serve` for tests to talk to, on a free port of this machine."""

import contextlib
import http.client
import json
import re
import signal
import subprocess
import threading
import time

PATIENCE = 300  # seconds; sanitizer builds on busy machines are slow


class Server:
    def __init__(self, process, port, said):
        self.process, self.port, self.said = process, port, said

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def ask(self, method, path, body=None, headers=None):
        """Status, headers and body (parsed where it is JSON) of one request."""
        connection = self.connect()
        try:
            data = json.dumps(body) if isinstance(body, (dict, list)) else body
            connection.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
            answer = connection.getresponse()
            content = answer.read()
            if method != "HEAD" and "json" in answer.headers.get("Content-Type", ""):
                content = json.loads(content)
            return answer.status, answer.headers, content
        finally:
            connection.close()

    def events(self, path, body, headers=None):
        """The data of the server-sent events that answer a request, as they come."""
        connection = self.connect()
        try:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json", **(headers or {})})
            answer = connection.getresponse()
            assert answer.status == 200, (answer.status, answer.read())
            for line in answer:
                if line.startswith(b"data: ") and line != b"data: [DONE]\n":
                    yield json.loads(line[6:])
        finally:
            connection.close()

    def until(self, condition, what):
        end = time.time() + PATIENCE
        while True:
            value = condition()
            if value:
                return value
            assert self.process.poll() is None, f"ended before {what}: {''.join(self.said)}"
            assert time.time() < end, f"no {what}"
            time.sleep(0.02)

    def slots(self):
        return self.ask("GET", "/slots")[2]

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


def _listen(stream, said):
    for line in stream:
        said.append(line)


@contextlib.contextmanager
def serving(plumb, *options):
    """Starts it; at the end it must still run, and end by SIGTERM with status 0."""
    process = subprocess.Popen([plumb, "serve", "--port", "0", *options], stderr=subprocess.PIPE, text=True,
                               errors="replace")
    said = []
    try:
        for line in process.stderr:
            said.append(line)
            found = re.search(r"at http://\S*:(\d+)", line)
            if found:
                break
        else:
            raise AssertionError(f"it did not begin: {''.join(said)}")
        # Somebody must read on, or a full pipe would stop it.
        threading.Thread(target=_listen, args=(process.stderr, said), daemon=True).start()
        server = Server(process, int(found[1]), said)
        yield server
        if process.poll() is None:
            assert server.stop() == 0, f"status {process.returncode}: {''.join(said)}"
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
