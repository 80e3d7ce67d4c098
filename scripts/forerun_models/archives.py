"""Downloads one archive of downloads.toml with pip and checks its hash.

pip is the downloader because it honours the package index, proxy and certificates
that the user has configured; no host is named anywhere in the project.
"""

import subprocess
import sys
import tomllib
from pathlib import Path

from .errors import SetupError

_LIST = Path(__file__).resolve().parents[1] / "downloads.toml"


def downloads() -> dict:
    return tomllib.loads(_LIST.read_text())


def download(archive: dict, folder: Path, *, source: bool = False) -> Path:
    """Puts the archive into `folder` (a wheel, or the source archive) and returns its path.

    Throws SetupError. pip's progress goes to standard output.
    """
    wanted = f"{archive['package']}=={archive['version']}"
    requirement = folder / "requirement.txt"
    requirement.write_text(f"{wanted} --hash=sha256:{archive['sha256']}\n")
    before = set(folder.iterdir())
    # A source archive's build backend is in our environment: isolation would fetch
    # another one, unpinned.
    kind = ["--no-binary", ":all:", "--no-build-isolation"] if source else ["--only-binary", ":all:"]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir", "download"]
    options = ["--no-deps", "--require-hashes", "--dest", folder, "--requirement", requirement]
    run = subprocess.run([*pip, *kind, *options], stderr=subprocess.PIPE, text=True)
    requirement.unlink()
    if run.returncode != 0:
        raise SetupError(_explain(wanted, run.stderr))
    (path,) = set(folder.iterdir()) - before
    return path


def _explain(wanted: str, pip_errors: str) -> str:
    """One line for what pip says in many."""
    text = pip_errors.lower()
    if "do not match the hashes" in text:
        return f"{wanted}: the download is not the expected file (sha256 differs): try again; if it stays so, check your package index"
    if "no space left" in text:
        return f"{wanted}: no space left on the disk: free some and try again"
    # The cause pip names first; what follows is its consequence.
    unreachable = ("connection", "name resolution", "timed out", "timeout", "proxy", "network is unreachable", "ssl")
    if any(word in text for word in unreachable):
        return f"{wanted}: cannot reach the package index: check the network or pip's configuration ('pip config list') and try again"
    if "no matching distribution" in text or "from versions: none" in text:
        return f"{wanted}: not found in the package index: check the network and pip's configuration ('pip config list')"
    errors = [line for line in pip_errors.splitlines() if line.lower().startswith("error")]
    reason = (errors or pip_errors.strip().splitlines() or ["pip failed"])[0].strip()
    return f"{wanted}: the download failed ({reason}): try again"
