"""forerun pull and -hf: models of a hub."""

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

from hub import Hub, sha256
from program import PROGRAM, QUICK, ProgramTest, model, run
from terminal import Terminal

REPO = "some-org/Some.Model-GGUF"
DATA = random.Random(1).randbytes(3_000_001)


class PullTest(ProgramTest):
    def setUp(self) -> None:
        self.cache = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.hub = self.enterContext(Hub())
        self.hub.files[REPO] = {"README.md": b"text", "model-Q4_K_M.gguf": DATA}
        self.folder = self.cache / "forerun" / "models" / "hub"
        self.target = self.folder / REPO / "model-Q4_K_M.gguf"

    def environment(self, **more: str) -> dict:
        return {"XDG_CACHE_HOME": str(self.cache), "HF_ENDPOINT": self.hub.url, "HF_TOKEN": "", **more}

    def pull(self, *arguments, **more: str) -> Path:
        result = run("pull", *(arguments or [REPO]), environment=self.environment(**more))
        self.assertEqual((result.returncode, result.stderr), (0, b""), result.stderr)
        return Path(result.stdout.decode().removesuffix("\n"))

    def refuse(self, expected: str, *arguments, **more: str) -> str:
        return self.fail_with(expected, "pull", *(arguments or [REPO]), environment=self.environment(**more))

    def start(self, *arguments, **options) -> subprocess.Popen:
        environment = {**os.environ, **self.environment()}
        return subprocess.Popen([PROGRAM, "pull", *arguments], env=environment, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, **options)  # fmt: skip

    def files(self) -> list[str]:
        """Everything in the cache, by its place in the folder of pulled models."""
        return sorted(os.path.relpath(path, self.folder / REPO) for path in self.cache.rglob("*") if path.is_file())

    # ---- What is pulled ----

    def test_a_whole_file(self):
        self.assertEqual(self.pull(), self.target)
        self.assertEqual(self.target.read_bytes(), DATA)
        self.assertEqual(self.files(), ["model-Q4_K_M.gguf"])
        for _, headers in self.hub.requests:
            self.assertNotIn("authorization", headers)
        # What is there is checked, and not fetched again.
        self.assertEqual(self.pull(), self.target)
        self.assertEqual(len(self.hub.asked("/resolve/")), 1)
        self.target.write_bytes(DATA[:-1] + b"x")
        self.pull()
        self.assertEqual(self.target.read_bytes(), DATA)

    def test_names_choose_files(self):
        names = ["a-F16.gguf", "a-Q8_0.gguf", "a-q5_k_m.gguf", "imatrix.gguf", "mmproj-a-Q4_K_M.gguf", "sub dir/ä small.gguf"]
        self.hub.files[REPO] = {name: name.encode() for name in names}
        self.hub.page_size = 2  # the list comes in parts
        self.assertEqual(self.pull(REPO).name, "a-Q8_0.gguf")
        self.assertEqual(self.pull(f"{REPO}:Q5_K_M").name, "a-q5_k_m.gguf")
        self.assertEqual(self.pull(f"{REPO}:f16").name, "a-F16.gguf")
        self.assertEqual(self.pull(REPO, "--file", "sub dir/ä small.gguf").read_text(), "sub dir/ä small.gguf")
        self.assertIn("F16, Q8_0, Q5_K_M", self.refuse("has no Q2_K", f"{REPO}:Q2_K"))
        self.refuse("no model in a file other.gguf", REPO, "--file", "other.gguf")
        self.refuse("no model in a file mmproj", REPO, "--file", "mmproj-a-Q4_K_M.gguf")

    def test_split_models_come_whole(self):
        parts = sorted(model("smollm2").parent.glob("tiny-llama-split-*.gguf"))
        self.hub.files[REPO] = {path.name: path.read_bytes() for path in parts}
        self.assertEqual(self.pull().name, "tiny-llama-split-00001-of-00003.gguf")
        self.assertEqual(self.files(), [path.name for path in parts])
        info = run("info", "-hf", REPO, "--json", environment=self.environment())
        self.assertEqual(json.loads(info.stdout)["size_bytes"], sum(path.stat().st_size for path in parts))
        del self.hub.files[REPO][parts[1].name]
        self.refuse("has 2 of 3 parts")

    def test_models_of_a_hub_are_used_by_name(self):
        tiny = model("tiny-llama").read_bytes()
        self.hub.files[REPO] = {"tiny-Q8_0.gguf": tiny}
        ask = ["run", *QUICK, "--raw", "-p", "hello", "-n", "4", "--temp", "0", "--json"]
        expected = json.loads(run(*ask, "-m", model("tiny-llama")).stdout)["tokens"]
        for flags in (["-hf", REPO], ["--hf-repo", f"{REPO}:Q8_0"], ["-hf", REPO, "-hff", "tiny-Q8_0.gguf"]):
            result = run(*ask, *flags, environment=self.environment())
            self.assertEqual(json.loads(result.stdout)["tokens"], expected, result.stderr)
        self.assertEqual(len(self.hub.asked("/resolve/")), 1)
        # Now without a hub.
        alone = self.environment(HF_ENDPOINT="")
        self.assertEqual(json.loads(run(*ask, "-hf", REPO, environment=alone).stdout)["tokens"], expected)
        listed = json.loads(run("models", "--json", environment=alone).stdout)["models"]
        path = self.folder / REPO / "tiny-Q8_0.gguf"
        self.assertEqual(listed, [{"name": f"{REPO}:Q8_0", "path": str(path), "size_bytes": len(tiny)}])
        self.assertIn(f"{REPO}:Q8_0", run("models", environment=alone).stdout.decode())
        self.assertEqual(json.loads(run(*ask, "-m", f"{REPO}:Q8_0", environment=alone).stdout)["tokens"], expected)
        tokens = run("tokenize", "-hf", REPO, "hello", environment=alone)
        self.assertEqual(tokens.stdout, run("tokenize", "-m", model("tiny-llama"), "hello").stdout)
        self.fail_with("forerun pull some-org/other", "info", "some-org/other", environment=alone)
        self.fail_with("HF_ENDPOINT", *ask, "-hf", f"{REPO}:Q4_0", environment=alone)
        self.fail_with("excludes", *ask, "-m", "x", "-hf", REPO, environment=alone)

    # ---- Connections ----

    def test_a_cut_connection_is_resumed(self):
        self.hub.cuts = [1_000_000, 0, 500_000]
        self.pull()
        self.assertEqual(self.target.read_bytes(), DATA)
        asked = self.hub.asked("/resolve/")
        ranges = [headers.get("range") for headers in asked]
        self.assertEqual(ranges, [None, "bytes=1000000-", "bytes=1000000-", "bytes=1500000-"])
        self.assertEqual({headers.get("if-range") for headers in asked[1:]}, {f'"{sha256(DATA)[:16]}"'})

    def test_a_part_is_for_later_processes(self):
        self.hub.gate = threading.Event()
        process = self.start(REPO)
        part = Path(f"{self.target}.part")
        deadline = time.monotonic() + 20
        while not part.exists() or part.stat().st_size < len(DATA) // 2:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=20)
        self.assertEqual((process.returncode, output), (130, ""))
        self.assertRegex(errors, r"\Aforerun: interrupted[^\n]*\n\Z")
        self.assertFalse(self.target.exists())
        size = part.stat().st_size
        self.hub.gate.set()
        self.hub.gate = None
        self.pull()
        self.assertEqual(self.hub.asked("/resolve/")[-1]["range"], f"bytes={size}-")
        self.assertEqual(self.target.read_bytes(), DATA)
        self.assertEqual(self.files(), ["model-Q4_K_M.gguf"])

    def test_a_part_of_another_file_is_not_used(self):
        self.target.parent.mkdir(parents=True)
        Path(f"{self.target}.part").write_bytes(b"x" * 1000)
        Path(f"{self.target}.lock").write_text("0" * 64 + '\n"tag"')
        self.pull()
        self.assertNotIn("range", self.hub.asked("/resolve/")[0])
        self.assertEqual(self.target.read_bytes(), DATA)

    def test_a_hub_without_ranges_begins_anew(self):
        self.hub.ignores_range = True
        self.hub.cuts = [2_000_000]
        self.pull()
        self.assertEqual(self.target.read_bytes(), DATA)
        self.assertEqual(self.hub.asked("/resolve/")[1]["range"], "bytes=2000000-")

    def test_passing_faults_are_waited_for(self):
        self.hub.statuses = {"/revision/": [503], "/tree/": [429], "/resolve/": [500, 416]}
        self.pull()
        self.assertEqual(self.target.read_bytes(), DATA)

    def test_two_at_once(self):
        self.hub.gate = threading.Event()
        processes = [self.start(REPO) for _ in range(2)]
        time.sleep(0.5)  # both have asked, or wait
        self.hub.gate.set()
        for process in processes:
            output, errors = process.communicate(timeout=30)
            self.assertEqual((process.returncode, output, errors), (0, f"{self.target}\n", ""))
        self.assertEqual(self.target.read_bytes(), DATA)
        self.assertEqual(len(self.hub.asked("/resolve/")), 1)
        self.assertEqual(self.files(), ["model-Q4_K_M.gguf"])

    def test_nobody_listens(self):
        with Hub() as gone:
            url = gone.url
        self.refuse("cannot reach", HF_ENDPOINT=url)

    def test_progress_is_for_terminals(self):
        self.hub.gate = threading.Event()
        os.environ.update(self.environment())
        self.addCleanup(lambda: [os.environ.pop(name) for name in self.environment()])
        terminal = Terminal("pull", REPO)
        terminal.wait_for(r"model-Q4_K_M.gguf \d+ %: [\d.]+ of 3.0 MB, [\d.]+ MB/s")
        self.hub.gate.set()
        terminal.wait_for("model-Q4_K_M.gguf\r\n")
        self.assertEqual(terminal.wait(), 0)

    # ---- Whom to trust ----

    def test_tokens_stay_with_the_hub(self):
        self.hub.token = "hf_secret"
        with Hub() as other:
            other.files = self.hub.files
            self.hub.elsewhere = other.url.replace("127.0.0.1", "localhost")
            self.pull(HF_TOKEN="hf_secret")
            self.assertEqual(self.target.read_bytes(), DATA)
            self.assertEqual(len(self.hub.asked("/resolve/")), 1)
            for _, headers in self.hub.requests:
                self.assertEqual(headers["authorization"], "Bearer hf_secret")
            (headers,) = other.asked("/resolve/")
            self.assertNotIn("authorization", headers)

    def test_refusals_say_what_to_do(self):
        self.refuse("HF_ENDPOINT", HF_ENDPOINT="")
        self.refuse("no address", HF_ENDPOINT="ftp://host")
        self.refuse("check the name", "some-org/none")
        self.hub.token = "hf_secret"
        self.refuse("set HF_TOKEN")
        self.refuse("the token in HF_TOKEN", HF_TOKEN="wrong")
        self.refuse("no token", HF_TOKEN="two\r\nlines")
        self.hub.token = ""
        self.hub.statuses = {"/resolve/": [403]}
        self.refuse("accept its terms")
        for name in ("model", "../model", "a/b/c", "a/..", "a/b:", "a b/c", "https://host/a/b"):
            self.refuse("no name of a hub's model", name)

    def test_checksums_decide(self):
        self.hub.wrong_bytes = DATA[:-1] + b"x"
        self.refuse("another checksum")
        self.assertFalse(any(name.endswith((".gguf", ".part")) for name in self.files()))
        self.hub.wrong_bytes = DATA + b"x"
        self.refuse("sends 3000002 bytes")
        self.hub.wrong_bytes = b""
        self.pull()
        # Small files have what git calls them by.
        self.hub.files[REPO] = {"small.gguf": b"small"}
        self.assertEqual(self.pull().read_bytes(), b"small")

    def test_nonsense(self):
        for part, body in (
            ("/revision/", b"<html>"),
            ("/revision/", b"[" * 100_000),
            ("/revision/", b'{"sha": "../../etc"}'),
            ("/tree/", b'{"error": 1}'),
            ("/tree/", b"[1, 2]"),
            ("/tree/", b'[{"type": "file", "path": "a.gguf", "size": -1, "oid": "x"}]'),
            ("/tree/", json.dumps([{"type": "file", "path": "a.gguf", "size": 1, "lfs": {"oid": "z" * 64, "size": 1}}]).encode()),
        ):  # fmt: skip
            with self.subTest(body[:40]):
                self.hub.bodies = {part: body}
                self.refuse("makes no sense")
        self.hub.bodies = {"/tree/": b" " * (17 << 20)}
        self.refuse("more than")
        self.hub.bodies = {}
        self.hub.elsewhere = self.hub.url
        self.refuse("nowhere")
        self.hub.elsewhere = "file://"
        self.refuse("no address")
        self.assertFalse(self.target.exists())

    def test_names_that_lead_elsewhere(self):
        paths = ["../../../../escaped-Q8_0.gguf", "/tmp/escaped-Q8_0.gguf", "a/../../escaped-Q8_0.gguf", "a//b-Q8_0.gguf",
                 "..\\escaped-Q8_0.gguf", "a\nb-Q8_0.gguf", "./a-Q8_0.gguf"]  # fmt: skip
        self.hub.files[REPO] = dict.fromkeys(paths, b"escaped")
        self.refuse("has no GGUF file")
        for path in paths:
            self.refuse("has no GGUF file", REPO, "--file", path)
        self.hub.files[REPO]["fine-F16.gguf"] = b"fine"
        self.assertEqual(self.pull().read_bytes(), b"fine")
        self.refuse("no model in a file", REPO, "--file", paths[0])
        self.assertEqual(self.files(), ["fine-F16.gguf"])

    @unittest.skipUnless(shutil.which("openssl"), "needs openssl to make a certificate")
    def test_certificates_are_verified(self):
        key, certificate = self.cache / "key.pem", self.cache / "certificate.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days",
                        "2", "-subj", "/CN=hub", "-addext", "subjectAltName=IP:127.0.0.1"],
                       check=True, capture_output=True)  # fmt: skip
        with Hub((certificate, key)) as hub:
            hub.files = self.hub.files
            self.refuse("certificate", HF_ENDPOINT=hub.url)
            self.assertEqual(hub.requests, [])
            trusted = {"SSL_CERT_FILE": str(certificate), "HF_ENDPOINT": hub.url}
            # The certificate is for another name.
            self.refuse("certificate", **trusted | {"HF_ENDPOINT": hub.url.replace("127.0.0.1", "localhost")})
            self.pull(**trusted)
            self.assertEqual(self.target.read_bytes(), DATA)
            self.target.unlink()
            # Nobody leads from there to where everybody can listen.
            hub.elsewhere = self.hub.url
            self.refuse("from https to http", **trusted)

    def test_proxies_are_asked(self):
        self.pull(HF_ENDPOINT="http://hub.invalid", http_proxy=self.hub.url)
        self.assertEqual(self.target.read_bytes(), DATA)
        self.assertEqual(set(self.hub.hosts), {"hub.invalid"})
        # Not for this machine.
        self.hub.hosts.clear()
        self.pull(http_proxy="http://127.0.0.1:9")
        self.assertEqual(set(self.hub.hosts), {None})

    # ---- The disk ----

    def test_a_full_disk_keeps_the_part(self):
        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))

        process = self.start(REPO, preexec_fn=limit)
        _, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 1)
        self.assertRegex(errors, r"\Aforerun: cannot write [^\n]*ulimit[^\n]*\n\Z")
        self.assertEqual(Path(f"{self.target}.part").stat().st_size, 1_000_000)
        self.pull()
        self.assertEqual(self.hub.asked("/resolve/")[-1]["range"], "bytes=1000000-")

    def test_more_than_the_disk_has(self):
        entry = {"type": "file", "path": "huge.gguf", "size": 1 << 43, "lfs": {"oid": "0" * 64, "size": 1 << 43}}
        self.hub.bodies = {"/tree/": json.dumps([entry]).encode()}
        self.refuse("free some space")
        self.assertEqual(self.hub.asked("/resolve/"), [])


if __name__ == "__main__":
    unittest.main()
