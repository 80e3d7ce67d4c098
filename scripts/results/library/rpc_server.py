"""llama.cpp's RPC servers on this machine, near or as far away as a network would make them."""

import queue
import re
import socket
import subprocess
import threading
import time
from pathlib import Path

HOST = "127.0.0.1"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        return listener.getsockname()[1]


class RpcServer:
    """A server on a port of its own, from `with` on."""

    def __init__(self, program: Path, threads: int = 1) -> None:
        self.program, self.threads = program, threads

    def __enter__(self) -> "RpcServer":
        self.port = free_port()
        self.endpoint = f"{HOST}:{self.port}"
        command = [self.program, "--host", HOST, "--port", str(self.port), "--threads", str(self.threads)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not _is_listening(self.port):
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.program} ended with {self.process.returncode}")
            time.sleep(0.02)
        return self

    def __exit__(self, *_) -> None:
        self.kill()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def _is_listening(port: int) -> bool:
    """As the system says: the server would take a connection for a client."""
    listening = re.compile(rf"^ *\d+: \w+:{port:04X} \w+:\w+ 0A ", re.MULTILINE)
    return bool(listening.search(Path("/proc/net/tcp").read_text()))


class Delay:
    """Stands before a server and hands on what comes, both ways, so much later; from `with` on."""

    def __init__(self, port: int, seconds: float) -> None:
        self.port, self.seconds = port, seconds

    def __enter__(self) -> "Delay":
        self.listener = socket.create_server((HOST, 0))
        self.endpoint = f"{HOST}:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return  # it is over
            server = socket.create_connection((HOST, self.port))
            for one, other in ((client, server), (server, client)):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                on_the_way: queue.SimpleQueue = queue.SimpleQueue()
                threading.Thread(target=self._read, args=(one, on_the_way), daemon=True).start()
                threading.Thread(target=self._write, args=(other, on_the_way), daemon=True).start()

    def _read(self, source: socket.socket, on_the_way: queue.SimpleQueue) -> None:
        while True:
            try:
                data = source.recv(1 << 20)
            except OSError:
                data = b""
            on_the_way.put((time.monotonic() + self.seconds, data))
            if not data:
                return

    @staticmethod
    def _write(target: socket.socket, on_the_way: queue.SimpleQueue) -> None:
        while True:
            due, data = on_the_way.get()
            if (left := due - time.monotonic()) > 0:
                time.sleep(left)
            try:
                if data:
                    target.sendall(data)
                    continue
                target.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # the other side is gone
            return
