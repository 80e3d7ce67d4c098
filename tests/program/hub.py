"""A hub of models on this machine, for the tests beside this file: the paths that clients ask, and faults."""

import hashlib
import json
import re
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Hub:
    """Serves from `with` on; what it does can be changed at any time."""

    def __init__(self, certificate: tuple | None = None) -> None:
        self.files: dict[str, dict[str, bytes]] = {}  # by repository and path
        self.requests: list[tuple[str, dict]] = []  # what was asked: path and headers, by names in small letters
        self.hosts: list[str | None] = []  # of the hubs that it was asked to pass requests on to; None: itself
        self.token = ""  # what has to be sent, if anything
        self.statuses: dict[str, list[int]] = {}  # by a part of a path: answers that come before the right one
        self.bodies: dict[str, bytes] = {}  # by a part of a path: what is said instead
        self.wrong_bytes = b""  # instead of a file's
        self.cuts: list[int] = []  # after how many bytes of a file the connection is closed, one time each
        self.ignores_range = False
        self.elsewhere = ""  # address that files are redirected to
        self.page_size = 1000
        self.gate: threading.Event | None = None  # files wait for it after their first half
        self.certificate = certificate

    def __enter__(self) -> "Hub":
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                # A proxy is asked for whole addresses.
                hub.hosts.append(re.match(r"(?:http://([^/]*))?", self.path)[1])
                self.path = re.sub(r"^http://[^/]*", "", self.path)
                hub.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
                hub.answer(self)

            def log_message(self, *_) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if self.certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})
        self.thread.start()
        return self

    def __exit__(self, *_) -> None:
        if self.gate:
            self.gate.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    @property
    def url(self) -> str:
        return f"{'https' if self.certificate else 'http'}://127.0.0.1:{self.port}"

    def asked(self, part: str) -> list[dict]:
        """The headers of requests for such paths."""
        return [headers for path, headers in self.requests if part in path]

    # ---- Answers ----

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        path = handler.path
        for part, statuses in self.statuses.items():
            if part in path and statuses:
                return self.send(handler, statuses.pop(0), b"{}")
        if self.token and handler.headers.get("Authorization") != f"Bearer {self.token}":
            return self.send(handler, 401, b"{}")
        for part, body in self.bodies.items():
            if part in path:
                return self.send(handler, 200, body)
        if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/revision/main", path):
            known = found[1] in self.files
            return self.send(handler, 200 if known else 404, json.dumps({"sha": COMMIT, "siblings": []}).encode())
        if found := re.fullmatch(rf"/api/models/([^/]+/[^/]+)/tree/{COMMIT}\?recursive=true(?:&from=(\d+))?", path):
            return self.send_tree(handler, self.files[found[1]], int(found[2] or 0))
        if found := re.fullmatch(rf"/([^/]+/[^/]+)/resolve/{COMMIT}/(.+)", path):
            if self.elsewhere:
                return self.send(handler, 302, b"", {"Location": self.elsewhere + path})
            return self.send_file(handler, self.files[found[1]].get(unquote(found[2])))
        self.send(handler, 404, b"{}")

    def send(self, handler, status: int, body: bytes, headers: dict | None = None) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    def send_tree(self, handler, files: dict[str, bytes], begin: int) -> None:
        entries = [{"type": "directory", "path": "folder", "oid": "0" * 40, "size": 0}]
        for path, data in list(files.items())[begin : begin + self.page_size]:
            git = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
            entry = {"type": "file", "path": path, "size": len(data), "oid": git}
            # As hubs have it, only large files are kept apart.
            if not path.endswith(("small.gguf", ".md")):
                entry["lfs"] = {"oid": sha256(data), "size": len(data), "pointerSize": 130}
            entries.append(entry)
        end = begin + self.page_size
        path = handler.path.split("&")[0]
        links = {"Link": f'<{self.url}{path}&from={end}>; rel="next"'} if end < len(files) else {}
        self.send(handler, 200, json.dumps(entries).encode(), links)

    def send_file(self, handler, data: bytes | None) -> None:
        if data is None:
            return self.send(handler, 404, b"")
        etag = f'"{sha256(data)[:16]}"'
        body = self.wrong_bytes or data
        begin = 0
        asked = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range", ""))
        if asked and not self.ignores_range and handler.headers.get("If-Range", etag) == etag:
            begin = int(asked[1])
        handler.send_response(206 if begin else 200)
        handler.send_header("Content-Length", str(len(body) - begin))
        handler.send_header("ETag", etag)
        if begin:
            handler.send_header("Content-Range", f"bytes {begin}-{len(body) - 1}/{len(body)}")
        handler.end_headers()
        rest = body[begin:]
        if self.cuts:
            handler.wfile.write(rest[: self.cuts.pop(0)])
            handler.close_connection = True
            return
        half = len(rest) // 2 if self.gate else 0
        try:
            handler.wfile.write(rest[:half])
            if self.gate:
                handler.wfile.flush()
                self.gate.wait(20)
            handler.wfile.write(rest[half:])
        except OSError:
            pass  # the client has left
