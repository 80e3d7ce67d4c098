"""Clients that leave, wait, dawdle or talk too much. Each returns what it saw in a few words."""

import json
import socket
import threading
import time

from raw_http import GONE, connected, exchange, read_answer, request, reset, send_all, status_of
from served import Broken, CheckedServer

SHORT = {"prompt": "One two three", "n_predict": 4, "temperature": 0}
STREAM = {"prompt": "Once upon a time", "n_predict": 24, "temperature": 0, "ignore_eos": True, "stream": True}


def vanish_in_request(server: CheckedServer) -> str:
    data = request("/completion", SHORT)
    for n in range(len(data) + 1):
        for leave in (reset, socket.socket.close):
            with connected(server.port) as connection:
                send_all(connection, data[:n])
                leave(connection)
    server.wait_until_idle()
    return f"{2 * len(data) + 2} clients"


def vanish_in_answer(server: CheckedServer, every: int = 97) -> str:
    chat = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 24, "temperature": 0, "stream": True}
    data = request("/v1/chat/completions", chat, headers="Connection: close\r\n")  # drafts change its length
    n_bytes = len(exchange(server.port, data))
    n_clients = 0
    for n in range(0, n_bytes, every):
        with connected(server.port) as connection:
            send_all(connection, data)
            left = n
            while left > 0 and (part := connection.recv(left)):
                left -= len(part)
            (reset if n_clients % 2 else socket.socket.close)(connection)
        n_clients += 1
    server.wait_until_idle()
    return f"{n_clients} clients, after every {every}th byte of {n_bytes}"


def leave_while_waiting(server: CheckedServer) -> str:
    """More than can be answered at once, gone before their turn has come."""
    data = request("/completion", STREAM | {"n_predict": 400, "speculative": False})
    connections = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(40)]
    for connection in connections:
        connection.sendall(data)
    time.sleep(0.3)
    for connection in connections:
        reset(connection)
    begin = time.monotonic()
    server.wait_until_idle()
    return f"40 clients, all forgotten after {time.monotonic() - begin:.1f} s"


def halves(server: CheckedServer) -> str:
    """Half of a request, and then nothing but an end of what is sent."""
    data = request("/completion", SHORT)
    for n in range(1, len(data), 7):
        with connected(server.port) as connection:
            send_all(connection, data[:n])
            connection.shutdown(socket.SHUT_WR)
            answer = read_answer(connection)
            if answer and status_of(answer) not in (400, 408):
                raise Broken(f"half a request is answered with {answer[:80]!r}")
    return f"{len(data) // 7} clients"


def large_headers(server: CheckedServer) -> str:
    statuses = set()
    lines = b"".join(b"X-Header-%d: %s\r\n" % (i, b"a" * 1000) for i in range(10_000))
    for data in (b"GET /health HTTP/1.1\r\n" + lines + b"\r\n", b"GET /health HTTP/1.1\r\nX: " + b"a" * 10_000_000 + b"\r\n\r\n",
                 b"GET /" + b"a" * 10_000_000 + b" HTTP/1.1\r\n\r\n", b"G" * 10_000_000):  # fmt: skip
        statuses.add(status_of(exchange(server.port, data)))
    if not statuses <= {0, 400, 414, 431}:
        raise Broken(f"10 MB of headers are answered with {statuses}")
    return f"statuses {sorted(statuses)} (0: hung up)"


def large_bodies(server: CheckedServer) -> str:
    """A length that is too large is refused before it is sent; chunks, as soon as they are too many."""
    said = exchange(server.port, b"POST /completion HTTP/1.1\r\nContent-Length: 10000000000\r\n\r\n")
    if status_of(said) != 413:
        raise Broken(f"a body of 10 GB is answered with {said[:80]!r}")
    before = server.rss_mb()
    with connected(server.port) as connection:
        send_all(connection, b"POST /completion HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
        chunk = b"100000\r\n" + b"a" * 0x100000 + b"\r\n"
        n_sent = 0
        while n_sent < 200 and send_all(connection, chunk):
            n_sent += 1
    if n_sent == 200:
        raise Broken("200 MB of chunks are taken")
    return f"413; {n_sent} MB of chunks were taken, {server.rss_mb() - before:+.0f} MB"


def slow_senders(server: CheckedServer) -> str:
    """A byte at a time, and several of them at once."""
    data = request("/completion", SHORT)
    wanted = json.loads(exchange(server.port, data).partition(b"\r\n\r\n")[2])["content"]
    connections = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(10)]
    for i in range(len(data)):
        for connection in connections:
            connection.sendall(data[i : i + 1])
        time.sleep(0.005)
    for connection in connections:
        answer = json.loads(read_answer(connection).partition(b"\r\n\r\n")[2])
        connection.close()
        if answer["content"] != wanted:
            raise Broken("a slow sender gets another text")
    return f"{len(connections)} clients"


def slow_readers(server: CheckedServer) -> str:
    """Clients who never read what they asked for cost no more than a bounded buffer each."""
    data = request("/completion", STREAM | {"n_predict": 300, "n_probs": 250})
    # The cache's memory is used only once it fills: those who read fill it first.
    readers = [threading.Thread(target=exchange, args=(server.port, data)) for _ in range(8)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    before = server.rss_mb()
    most = before
    sockets = []
    for _ in range(8):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(data)
        sockets.append(connection)
    begin = time.monotonic()
    while (was_busy := server.n_busy() >= len(sockets)) is False and time.monotonic() < begin + 60:
        time.sleep(0.05)
    if not was_busy:
        raise Broken("clients who do not read are not answered")
    # Another's requests are never more than one at a time.
    while server.n_busy() > 1 and time.monotonic() < begin + 240:
        most = max(most, server.rss_mb())
        time.sleep(0.1)
    grown = most - before
    for connection in sockets:
        reset(connection)
    server.wait_until_idle()
    if grown > 100:
        raise Broken(f"8 clients who do not read cost {grown:.0f} MB")
    return f"8 clients, {grown:+.0f} MB at most"


def pipelines(server: CheckedServer) -> str:
    """Many requests in one go, of all kinds, are answered one after the other."""
    kinds = [(request("/health", method="GET"), 200), (request("/completion", SHORT), 200), (request("/completion", b"{"), 400),
             (request("/nothing", method="GET"), 404), (request("/completion", STREAM | {"n_predict": 3}), 200),
             (request("/health", method="DELETE"), None), (request("/tokenize", {"content": "a b"}), 200)]  # fmt: skip
    with connected(server.port) as connection:
        connection.sendall(b"".join(data for data, _ in kinds) * 10)
        received = b""
        while received.count(b"HTTP/1.1 ") < 10 * len(kinds):
            part = connection.recv(65536)
            if not part:
                break
            received += part
    statuses = [int(part[:3]) for part in received.split(b"HTTP/1.1 ")[1:]]
    wanted = [status for _, status in kinds] * 10
    if len(statuses) != len(wanted) or any(b is not None and a != b for a, b in zip(statuses, wanted, strict=True)):
        raise Broken(f"pipelined requests get {statuses}")
    # Whoever leaves with most of them unanswered takes them along.
    with connected(server.port) as connection:
        try:
            connection.sendall(request("/completion", STREAM) * 200)
        except GONE:
            pass
        connection.recv(100)
        reset(connection)
    server.wait_until_idle()
    return f"{len(wanted)} answers in order"


CONNECTION_FAULTS = [vanish_in_request, vanish_in_answer, leave_while_waiting, halves, large_headers, large_bodies,
                     slow_senders, slow_readers, pipelines]  # fmt: skip
