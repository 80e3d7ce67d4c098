"""What happens to the server's process: it is killed, asked to end, has no disk left, and has a thousand
connections. Each starts servers of its own and returns what it saw in a few words."""

import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from raw_http import read_answer, request, status_of
from served import ROOT, Broken, CheckedServer

sys.path.insert(0, str(ROOT / "scripts"))

from kill_stores import LIVE_PROMPT_TOKENS, documents_in  # noqa: E402

CONTEXT = ("-c", 512)
LONG = {"prompt": "Once upon a time", "n_predict": 200, "ignore_eos": True, "speculative": False, "stream": True}


def live_request(i: int) -> dict:
    return {"prompt": f"{i} and {i + 1} and", "n_predict": 12, "seed": i, "ignore_eos": True, "return_tokens": True}


def document_of(server: CheckedServer, asked: dict, tokens: list[int]) -> tuple:
    prompt = server.post("/tokenize", {"content": asked["prompt"]})["tokens"]
    return tuple(prompt[-LIVE_PROMPT_TOKENS:] + tokens)


def check_store(store: Path) -> None:
    result = subprocess.run([os.environ["FORERUN_PROGRAM"], "datastore", "verify", store], capture_output=True)
    if result.returncode != 0:
        raise Broken(f"the store is damaged: {result.stderr.decode()}")


def killed_while_answering(n_kills: int = 5) -> str:
    """Whatever was answered before is in the store afterwards, and the store opens."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "live"
        told: set[tuple] = set()
        n_answers = 0
        for n_run in range(n_kills):
            server = CheckedServer(*CONTEXT, "--live-datastore", store)
            server.__enter__()
            lock = threading.Lock()

            def ask(first: int, server=server, lock=lock) -> None:
                for i in range(first, first + 1000):
                    asked = live_request(i)
                    with contextlib.suppress(OSError, AssertionError, json.JSONDecodeError, ValueError):
                        answer = server.post("/completion", asked)
                        document = document_of(server, asked, answer["tokens"])
                        with lock:
                            told.add(document)
                    if server.process.poll() is not None:
                        return

            threads = [threading.Thread(target=ask, args=(1000 * (4 * n_run + k),)) for k in range(4)]
            for thread in threads:
                thread.start()
            time.sleep(1.5 + n_run * 0.37)
            os.kill(server.process.pid, signal.SIGKILL)
            server.process.wait()
            for thread in threads:
                thread.join()
            server.process.stderr.close()
            server.log.close()
            check_store(store)
            if missing := told - set(documents_in(store)):
                raise Broken(f"{len(missing)} of {len(told)} answers that were told are not in the store")
            n_answers = len(told)
        if n_answers == 0:
            raise Broken("nothing was answered before the kills")
        with CheckedServer(*CONTEXT, "--live-datastore", store) as server:
            server.post("/completion", live_request(1))
    return f"{n_kills} kills, {n_answers} answers that were told, none lost"


class SmallFilesServer(CheckedServer):
    """Its files end at so many bytes, as those of a full disk do."""

    def __init__(self, n_bytes: int, *arguments) -> None:
        super().__init__(*arguments)
        self.n_bytes = n_bytes

    def __enter__(self) -> "SmallFilesServer":
        super().__enter__()
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (self.n_bytes, self.n_bytes))
        return self


def full_disk() -> str:
    """Answers go on; what the store has stays readable; those who come later are told what is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "live"
        texts = []
        with SmallFilesServer(1000, *CONTEXT, "--live-datastore", store) as server:
            for i in range(30):
                texts.append(server.post("/completion", live_request(i))["content"])
            server.check_alive()
            said = "".join(server.said)
        check_store(store)
        n_kept = len(documents_in(store))
        with CheckedServer(*CONTEXT, "--live-datastore", store) as server:
            again = [server.post("/completion", live_request(i) | {"speculative": False})["content"] for i in range(0, 30, 10)]
        if again != texts[::10]:
            raise Broken("texts differ with a full disk")
        if "forerun: " not in said:
            raise Broken("nobody is told that the store cannot be written")
    return f"30 answers, {n_kept} kept, then: {said.strip().splitlines()[-1][:120]}"


def asked_to_end() -> str:
    """SIGTERM: what has begun is finished, nothing else is; a second one ends at once."""
    with CheckedServer(*CONTEXT) as server:
        idle = socket.create_connection(("127.0.0.1", server.port))
        half = socket.create_connection(("127.0.0.1", server.port))
        half.sendall(request("/completion", LONG)[:-5])
        streams = [server.stream("/completion", LONG) for _ in range(10)]  # two wait for their turn
        firsts = [threading.Thread(target=next, args=(stream,)) for stream in streams[:8]]
        waiting: list[list] = [[] for _ in streams[8:]]
        later = [threading.Thread(target=lambda out=out, stream=stream: out.extend(stream))
                 for out, stream in zip(waiting, streams[8:], strict=True)]  # fmt: skip
        for thread in firsts + later:
            thread.start()
        for thread in firsts:
            thread.join()
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        with contextlib.suppress(ConnectionRefusedError):
            with socket.create_connection(("127.0.0.1", server.port)) as connection:
                connection.sendall(request("/health", method="GET"))
                if read_answer(connection):
                    raise Broken("a server that ends takes new requests")
        counts = [list(stream)[-1]["tokens_predicted"] for stream in streams[:8]]
        for thread in later:
            thread.join()
        counts += [events[-1]["tokens_predicted"] for events in waiting]
        if counts != [200] * 10:
            raise Broken(f"answers are cut off: {counts}")
        if server.process.wait(timeout=20) != 0:
            raise Broken(f"the server ends with {server.process.returncode}")
        idle.close()
        half.close()
    with CheckedServer(*CONTEXT) as server:
        stream = server.stream("/completion", LONG)
        next(stream)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        server.process.send_signal(signal.SIGTERM)
        begin = time.monotonic()
        server.process.wait(timeout=20)
        seconds = time.monotonic() - begin
    return f"10 answers finished; a second signal ends it after {seconds:.1f} s"


def thousand_connections(n: int = 1000) -> str:
    """Connections that are kept, and streams that wait for their turn."""
    with CheckedServer(*CONTEXT, "--max-waiting", 2 * n) as server:
        for _ in range(20):
            server.post("/completion", live_request(1))
        before = server.rss_mb()
        idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(n)]
        for connection in idle:
            connection.sendall(request("/health", method="GET"))
        if any(status_of(read_answer(connection)) != 200 for connection in idle):
            raise Broken("a connection is not answered")
        of_idle = server.rss_mb() - before
        streams = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(n)]
        for connection in streams:
            connection.sendall(request("/completion", LONG))
        deadline = time.monotonic() + 60
        while f"requests_deferred {n - 8}" not in server.ask("GET", "/metrics")[1] and time.monotonic() < deadline:
            time.sleep(0.1)
        of_streams = server.rss_mb() - before - of_idle
        for connection in streams + idle:
            connection.close()
        server.wait_until_idle(60)
        server.check_alive()
    if of_idle > 100 or of_streams > 100:
        raise Broken(f"{n} connections cost {of_idle:.0f} MB, {n} streams {of_streams:.0f} MB")
    return f"{n} idle connections {of_idle:+.1f} MB, {n} streams that wait {of_streams:+.1f} MB"


PROCESS_FAULTS = [killed_while_answering, full_disk, asked_to_end, thousand_connections]
