"""Runs `forerun serve`, for the tests beside this file."""

import contextlib
import http.client
import json
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator

from program import PROGRAM, QUICK


class Server:
    """A server on a port of its own, from `with` on."""

    flags = QUICK
    timeout_s = 60

    def __init__(self, *arguments) -> None:
        self.arguments = [str(argument) for argument in arguments]

    def __enter__(self) -> "Server":
        self.log = tempfile.TemporaryFile("w+")
        command = [PROGRAM, "serve", "--port", "0", *self.flags, *self.arguments]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            self.log.write(line)
            if found := re.search(r"serving on (https?)://[^:]+:(\d+)", line):
                self.port = int(found[2])
                return self
        self.process.wait()
        self.log.seek(0)
        raise AssertionError(f"the server ended with {self.process.returncode}: {self.log.read()}")

    def __exit__(self, *_) -> None:
        self.stop()
        self.process.stderr.close()
        self.log.close()

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.timeout_s)

    def ask(self, method: str, path: str, body: object = None, headers: dict | None = None) -> tuple[int, object, dict]:
        """Status, body (read where it is JSON) and headers."""
        connection = self.connect()
        data = body if body is None or isinstance(body, bytes) else json.dumps(body)
        connection.request(method, path, data, headers or {})
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        try:
            answer = json.loads(text)
        except json.JSONDecodeError:
            answer = text
        return response.status, answer, dict(response.headers)

    def post(self, path: str, body: object) -> dict:
        status, answer, _ = self.ask("POST", path, body)
        if status != 200:
            raise AssertionError(f"{path}: {status} {answer}")
        return answer

    def stream(self, path: str, body: dict) -> Iterator[dict]:
        """The events of a stream; "[DONE]" as it is."""
        with contextlib.closing(self.connect()) as connection:
            connection.request("POST", path, json.dumps(body | {"stream": True}))
            response = connection.getresponse()
            if response.status != 200:
                raise AssertionError(f"{path}: {response.status} {response.read()!r}")
            # Its socket is the response's own where the server closes the connection.
            with response:
                for line in response:
                    if line.startswith(b"data: "):
                        data = line[6:].strip()
                        yield data.decode() if data == b"[DONE]" else json.loads(data)
