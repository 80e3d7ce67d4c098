"""Requests as bytes, for clients that are not as they should be."""

import contextlib
import json
import socket
import struct

GONE = (ConnectionResetError, BrokenPipeError, ConnectionAbortedError)


def request(path: str, body: object = None, method: str = "POST", headers: str = "") -> bytes:
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {len(data)}\r\n\r\n".encode() + data


@contextlib.contextmanager
def connected(port: int, timeout: float = 300, receive_buffer: int | None = None):
    connection = socket.socket()
    if receive_buffer:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.settimeout(timeout)
    connection.connect(("127.0.0.1", port))
    try:
        yield connection
    finally:
        connection.close()


def reset(connection: socket.socket) -> None:
    """Leaves without a goodbye: the other side gets an error instead of an end."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def status_of(answer: bytes) -> int:
    """0: there was none."""
    return int(answer[9:12]) if answer.startswith(b"HTTP/1.1 ") else 0


def send_all(connection: socket.socket, data: bytes) -> bool:
    """Whether the server took all of it."""
    try:
        connection.sendall(data)
    except GONE:
        return False
    return True


def read_answer(connection: socket.socket) -> bytes:
    """One answer, as far as there is one: its head and as much as that says."""
    answer = b""
    try:
        while b"\r\n\r\n" not in answer:
            part = connection.recv(65536)
            if not part:
                return answer
            answer += part
        head, _, body = answer.partition(b"\r\n\r\n")
        if b"Transfer-Encoding: chunked" in head:
            while not body.endswith(b"0\r\n\r\n"):
                part = connection.recv(65536)
                if not part:
                    return head + b"\r\n\r\n" + body
                body += part
            return head + b"\r\n\r\n" + body
        n_bytes = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        while len(body) < n_bytes:
            part = connection.recv(65536)
            if not part:
                break
            body += part
        return head + b"\r\n\r\n" + body
    except GONE:
        return answer


def exchange(port: int, data: bytes, timeout: float = 300, says_end: bool = False) -> bytes:
    """`says_end`: the server is told that no more comes, however long the request says that it is."""
    with connected(port, timeout) as connection:
        send_all(connection, data)
        if says_end:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
        return read_answer(connection)
