"""forerun ps: the servers that run here."""

import json
import os
import signal
import stat
import tempfile
import unittest
from pathlib import Path

from program import ProgramTest, model, run
from server import Server


class PsTest(ProgramTest):
    def setUp(self) -> None:
        self.runtime = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.folder = self.runtime / "forerun"
        before = os.environ.get("XDG_RUNTIME_DIR")
        os.environ["XDG_RUNTIME_DIR"] = str(self.runtime)
        self.addCleanup(self.restore, before)

    def restore(self, before: str | None) -> None:
        del os.environ["XDG_RUNTIME_DIR"]
        if before is not None:
            os.environ["XDG_RUNTIME_DIR"] = before

    def servers(self) -> list[dict]:
        return self.succeed_json("ps")["servers"]

    def test_two_servers(self):
        self.assertEqual(self.servers(), [])
        self.assertIn(b"no server of yours", self.succeed("ps").stdout)
        tiny = model("tiny-llama")
        with Server("-m", tiny, "-c", 256) as one, Server("-m", tiny, "-c", 256, "--alias", "second", "--api-key", "k") as two:
            one.post("/completion", {"prompt": "hello", "n_predict": 8, "ignore_eos": True})
            by_pid = {server["pid"]: server for server in self.servers()}
            self.assertEqual(set(by_pid), {one.process.pid, two.process.pid})
            first, second = by_pid[one.process.pid], by_pid[two.process.pid]
            self.assertGreater(first.pop("tokens_per_second"), 0)
            self.assertEqual(first, {"pid": one.process.pid, "url": f"http://127.0.0.1:{one.port}", "model": "tiny-llama.gguf",
                                     "state": "ready", "running": 0, "waiting": 0})  # fmt: skip
            # It asks for a key, which ps has not.
            self.assertEqual((second["model"], second["state"], second["running"]), ("second", "ready", None))
            table = self.succeed("ps").stdout.decode()
            self.assertRegex(table, rf"{one.process.pid}  http://127.0.0.1:{one.port} +ready +0 +0 +[\d.]+  tiny-llama.gguf\n")
            self.assertRegex(table, rf"{two.process.pid}  http://127.0.0.1:{two.port} +ready +- +- +-  second\n")
            self.assertEqual(stat.S_IMODE(self.folder.stat().st_mode), 0o700)

            # One that ends takes its file with it; of one that is killed it stays until somebody looks.
            self.assertEqual(one.stop(), 0)
            self.assertEqual(len(list(self.folder.iterdir())), 1)
            two.process.send_signal(signal.SIGKILL)
            two.process.wait()
            self.assertEqual(len(list(self.folder.iterdir())), 1)
            self.assertEqual(self.servers(), [])
            self.assertEqual(list(self.folder.iterdir()), [])

    def test_nonsense_in_the_folder(self):
        self.folder.mkdir(mode=0o700)
        (self.folder / "1.json").write_text("{")
        (self.folder / "2.json").mkdir()
        (self.folder / "3.json").symlink_to("/etc/passwd")
        (self.folder / "notes").write_text("mine")
        self.assertEqual(self.servers(), [])
        self.assertTrue((self.folder / "notes").exists())

    def test_a_server_without_a_place_for_its_file(self):
        self.folder.write_text("not a folder")
        with Server("-m", model("tiny-llama"), "-c", 256) as server:
            self.assertEqual(server.ask("GET", "/health")[0], 200)
        result = run("ps", "--json")
        self.assertEqual(json.loads(result.stdout)["servers"], [])


if __name__ == "__main__":
    unittest.main()
