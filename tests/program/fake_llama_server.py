"""Stands in for llama-server: the flags and fields that `forerun bench spec` uses, and faults.

It answers every prompt with the prompt's last token, again and again. In the folder
FAKE_FOLDER it leaves its process id, its arguments and each request. FAKE_FAULT is what goes
wrong; FAKE_FAULT_MODE limits that to one mode.
"""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FOLDER = Path(os.environ["FAKE_FOLDER"])
HELP = """usage: llama-server [options]

--spec-type none,draft-simple,ngram-simple,ngram-mod
                                        types of speculative decoding
"""


def argument(name: str, default: str) -> str:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


MODE = argument("--spec-type", "plain")
FAULT = os.environ.get("FAKE_FAULT", "") if os.environ.get("FAKE_FAULT_MODE", MODE) == MODE else ""
# Answers wait for each other: where several are to run at once, all must have been asked for.
TOGETHER = threading.Barrier(int(argument("--parallel", "1")), timeout=30)


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def reply(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.reply(503 if FAULT == "never ready" else 200, b"{}")

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with open(FOLDER / f"{MODE}.requests", "a") as file:
            file.write(json.dumps(request) + "\n")
        TOGETHER.wait()
        if FAULT == "dies":
            print("the last words", flush=True)
            os._exit(5)
        if FAULT == "hangs":
            (FOLDER / "hangs").touch()
            threading.Event().wait()
        if FAULT == "status":
            return self.reply(500, b'{"error": {"code": 500, "message": "out of luck"}}')
        if FAULT == "text":
            return self.reply(200, b"hello")
        n = request["n_predict"]
        tokens = [request["prompt"][-1]] * n
        if FAULT == "other text":
            tokens[-1] += 1
        timings = {"prompt_n": len(request["prompt"]), "prompt_ms": 2.5, "predicted_n": n, "predicted_ms": 4.0 * n}
        if MODE != "plain":
            timings.update(draft_n=6, draft_n_accepted=2)
        answer = {"content": "x", "tokens": tokens, "stop_type": "limit", "timings": timings}
        if FAULT == "fields":
            del answer["timings"]["predicted_ms"]
        self.reply(200, json.dumps(answer).encode())


def main() -> None:
    if "--help" in sys.argv:
        return print(HELP)
    if "--version" in sys.argv:
        return print("version: 7 (fake)", file=sys.stderr)
    (FOLDER / f"{MODE}.pid").write_text(str(os.getpid()))
    (FOLDER / f"{MODE}.arguments").write_text(json.dumps(sys.argv[1:]))
    if FAULT == "dies at once":
        sys.exit("cannot load anything\n")
    ThreadingHTTPServer(("127.0.0.1", int(argument("--port", "0"))), Handler).serve_forever()


main()
