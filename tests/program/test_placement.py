"""Models whose layers are spread over RPC servers: the same texts, and errors in one line."""

import json
import os
import socket
import subprocess
import sys
import threading
import unittest
from functools import partial
from pathlib import Path

from program import PROGRAM, QUICK, ProgramTest, model
from server import Server

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts" / "results"))

from library import rpc_server  # noqa: E402

RpcServer = partial(rpc_server.RpcServer, Path(os.environ["FORERUN_BUILD"]) / "bin" / "ggml-rpc-server")

# Greedy, long enough for drafts to be right and wrong.
TEXT = ["-p", "one two three one two three one two", "--raw", "-n", "48", "--temp", "0", "-c", "512", *QUICK]
GONE = "was lost"


class PlacementTest(ProgramTest):
    def answer(self, name: str, *flags) -> list[int]:
        return self.succeed_json("run", "-m", model(name), *TEXT, *flags)["tokens"]

    def test_layers_on_two_servers_give_the_text_of_one_device(self) -> None:
        with RpcServer() as first, RpcServer() as second:
            servers = ["--rpc", f"{first.endpoint},{second.endpoint}"]
            for name in ("tiny-llama", "foreign-bailingmoe"):
                for method in ("none", "auto", "pld"):
                    with self.subTest(name=name, method=method):
                        expected = self.answer(name, "--spec", method)
                        self.assertEqual(self.answer(name, "--spec", method, *servers), expected)

    def test_any_split_gives_the_same_text(self) -> None:
        expected = self.answer("foreign-bailingmoe", "--spec", "pld")
        with RpcServer() as first, RpcServer() as second:
            servers = ["--spec", "pld", "--rpc", f"{first.endpoint},{second.endpoint}"]
            for flags in (["--split", "3,1"], ["--gpu-layers", "1"], ["--split", "0,1"], ["--cpu-experts"]):
                with self.subTest(flags=flags):
                    self.assertEqual(self.answer("foreign-bailingmoe", *servers, *flags), expected)

    def test_a_line_says_which_layers_are_where(self) -> None:
        with RpcServer() as first, RpcServer() as second:
            flags = ["--rpc", f"{first.endpoint},{second.endpoint}", "--split", "1,1", "--gpu-layers", "2"]
            said = self.succeed("run", "-m", model("tiny-llama"), *TEXT, *flags).stderr.decode()
            n_layers = self.succeed_json("info", model("tiny-llama"))["n_layers"]
            before = "0" if n_layers == 3 else f"0-{n_layers - 3}"
            where = (
                f"layers {before} on cpu, {n_layers - 2} on {first.endpoint}, "
                f"{n_layers - 1} and the head on {second.endpoint}"
            )
            self.assertIn(where, said)
            facts = self.succeed_json("info", model("tiny-llama"), *flags)
            self.assertEqual((facts["placement"], facts["computed_by"]), (where, "libllama"))
        facts = self.succeed_json("info", model("tiny-llama"), "--device", "cpu")
        self.assertEqual((facts["placement"], facts["computed_by"]), ("all layers on cpu", "forerun"))

    def test_nothing_but_the_cpu_is_as_ever(self) -> None:
        flags = ["run", "-m", model("tiny-llama"), *TEXT]
        plain = self.succeed(*flags)
        told = self.succeed(*flags, "--device", "cpu", "--gpu-layers", "0")
        self.assertEqual(told.stdout, plain.stdout)
        self.assertNotIn(b"libllama", told.stderr)

    def test_options_that_make_no_sense(self) -> None:
        flags = ["run", "-m", "/nowhere.gguf", "-p", "x"]
        for wrong, said in (
            (["--gpu-layers", "-1"], "--gpu-layers"),
            (["--gpu-layers", "many"], "--gpu-layers"),
            (["--split", "1,-1"], "--split"),
            (["--split", "0,0"], "--split"),
            (["--rpc", "localhost"], "host:port"),
            (["--rpc", ":50052"], "host:port"),
            (["--rpc", "localhost:99999"], "host:port"),
            (["--rpc", "localhost:50052x"], "host:port"),
            (["--rpc", "localhost:50052,localhost:50052"], "twice"),
        ):
            with self.subTest(wrong=wrong):
                self.fail_with(said, *flags, *wrong)
        here = ["run", "-m", model("tiny-llama"), "-p", "x", "--device", "cpu"]
        self.fail_with("there is no GPU", *here, "--gpu-layers", "3")
        self.fail_with("--split has 2 shares", *here, "--split", "1,1")

    def test_a_server_that_is_not_there(self) -> None:
        endpoint = f"127.0.0.1:{rpc_server.free_port()}"
        flags = ["-m", model("tiny-llama"), "--rpc", endpoint]
        self.fail_with(f"cannot use the RPC server {endpoint}", "run", *flags, "-p", "x")
        with Server("-m", model("tiny-llama")) as server:
            self.fail_with("it is no RPC server", "run", "-m", model("tiny-llama"), "-p", "x", "--rpc", f"127.0.0.1:{server.port}")

    def test_a_server_that_has_another_client(self) -> None:
        with RpcServer() as server, socket.create_connection(("127.0.0.1", server.port)):
            self.fail_with("another client", "run", "-m", model("tiny-llama"), "-p", "x", "--rpc", server.endpoint)

    def test_layers_cannot_be_left_out(self) -> None:
        with RpcServer() as server:
            flags = ["run", "-m", model("tiny-llama"), *TEXT, "--rpc", server.endpoint, "--spec", "swift"]
            self.fail_with("on other machines", *flags)

    def test_a_server_that_dies_while_it_answers(self) -> None:
        with RpcServer() as first, RpcServer() as second:
            command = [PROGRAM, "run", "-m", model("foreign-bailingmoe"), *TEXT[:3], "-n", "100000", "--ignore-eos", "--temp", "0"]
            command += [*QUICK, "--rpc", f"{first.endpoint},{second.endpoint}"]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            process.stdout.read(20)
            second.kill()
            _, said = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 1, said)
            self.assertIn(f"forerun: the RPC server {second.endpoint} {GONE}", said.decode())

    def test_requests_end_with_an_error_when_a_server_died(self) -> None:
        request = {"prompt": "one two", "max_tokens": 100000, "temperature": 0, "ignore_eos": True, "stream": False}
        with RpcServer() as rpc, Server("-m", model("foreign-bailingmoe"), "--rpc", rpc.endpoint, "-c", "4096") as server:
            status, answer, _ = server.ask("POST", "/v1/completions", {**request, "max_tokens": 4})
            self.assertEqual(status, 200, answer)
            answers = []
            asking = threading.Thread(target=lambda: answers.append(server.ask("POST", "/v1/completions", request)))
            asking.start()
            threading.Event().wait(0.5)
            rpc.kill()
            asking.join(timeout=60)
            answers.append(server.ask("POST", "/v1/completions", request))
            for status, answer, _ in answers:
                self.assertEqual(status, 500, answer)
                self.assertIn(GONE, json.dumps(answer))
            self.assertEqual(len(answers), 2)
            self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    unittest.main()
