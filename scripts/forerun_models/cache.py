"""Where downloads and models live, and how they get there: all at once or not at all.

Every file is written under another name in the same folder and renamed when it is
complete, so an interrupted run leaves nothing that looks finished.
"""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from .errors import SetupError


def cache_dir() -> Path:
    """${XDG_CACHE_HOME:-~/.cache}/forerun, made when absent."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return _made(Path(root) / "forerun")


def models_dir() -> Path:
    return _made(cache_dir() / "models")


@contextlib.contextmanager
def scratch_dir(parent: Path):
    """A folder inside `parent`, removed at the end whatever happens."""
    path = Path(tempfile.mkdtemp(prefix=".partial-", dir=parent))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


class Stamp:
    """Remembers from which recipe a model file was made.

    The stamp holds the recipe's identity and the sizes of the files, so a changed
    recipe, a truncated file and a missing part of a split model are all made anew.
    """

    def __init__(self, name: str, recipe: str):
        self._path = _made(models_dir() / ".made") / name
        self._recipe = recipe

    def matches(self, files: list[Path]) -> bool:
        try:
            return self._path.read_text() == self._text(files)
        except OSError:
            return False

    def write(self, files: list[Path]) -> None:
        self._path.write_text(self._text(files))

    def _text(self, files: list[Path]) -> str:
        lines = [f"{f.name} {f.stat().st_size}" for f in files]
        return "\n".join([self._recipe, *lines]) + "\n"


def _made(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError(
            f"cannot make the folder {path} ({error.strerror}): set XDG_CACHE_HOME to a folder you can write"
        ) from None
    return path
