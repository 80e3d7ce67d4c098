"""Prose and code from what is installed here: manuals, package documentation, Python's library.

Only a source of things to ask about; a model trained with them saw the teacher's answers.
"""

import ast
import gettext
import gzip
import html
import importlib.util
import re
import sysconfig
import textwrap
from collections.abc import Iterator
from pathlib import Path

INFO = Path("/usr/share/info")
PACKAGES = Path("/usr/share/doc")
LOCALES = Path("/usr/share/locale/de/LC_MESSAGES")
_PROSE_FILES = re.compile(r"(README|NEWS|FAQ|HACKING|TODO|DESIGN)[^/]*$|\.(txt|md|rst|html?)(\.gz)?$", re.IGNORECASE)
_LARGEST_FILE = 1 << 20
_SHORTEST, _LONGEST = 80, 1600  # letters of a paragraph


def documents() -> Iterator[list[str]]:
    """Paragraphs of one document after another, in an order that does not change."""
    for path in sorted(INFO.glob("*.info*.gz")):
        yield from _split(prose(_read(path)))
    for path in sorted(p for p in PACKAGES.rglob("*") if _PROSE_FILES.search(p.name) and p.is_file()):
        if path.stat().st_size <= _LARGEST_FILE:
            yield from _split(prose(_without_tags(_read(path)) if ".htm" in path.name else _read(path)))
    yield from (_split_one(prose(text)) for text in _python_topics())
    for path in _library():
        yield from _split(prose("\n\n".join(text for text, _ in _definitions(path))))


def functions() -> Iterator[str]:
    """Source of functions of Python's library, a screen long at most."""
    for path in _library():
        for _, code in _definitions(path):
            if 200 <= len(code) <= 1500 and "\n" in code:
                yield code


def prose(text: str) -> list[str]:
    """The paragraphs that read like sentences, each on one line."""
    found = []
    for block in re.split(r"\n\s*\n", text.replace("\r", "")):
        paragraph = " ".join(block.split())
        if _SHORTEST <= len(paragraph) <= _LONGEST and _is_prose(paragraph):
            found.append(paragraph)
    return found


def _is_prose(paragraph: str) -> bool:
    letters = sum(c.isalpha() or c == " " for c in paragraph)
    return letters >= 0.88 * len(paragraph) and paragraph[0].isalpha() and paragraph[-1] in '.!?:)"'


def _split(paragraphs: list[str], n_letters: int = 8000) -> Iterator[list[str]]:
    """Long files become several documents."""
    document: list[str] = []
    for paragraph in paragraphs:
        document.append(paragraph)
        if sum(map(len, document)) >= n_letters:
            yield document
            document = []
    if sum(map(len, document)) >= 4 * _SHORTEST:
        yield document


def _split_one(paragraphs: list[str]) -> list[str]:
    return next(_split(paragraphs), [])


def _read(path: Path) -> str:
    try:
        data = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
        return data.decode()
    except (OSError, EOFError, UnicodeDecodeError):
        return ""  # damaged, or not in a form that this reads


def _without_tags(text: str) -> str:
    text = re.sub(r"(?is)<(script|style|pre)\b.*?</\1>", "\n\n", text)
    text = re.sub(r"(?i)</?(p|div|li|h[1-6]|td|tr|dd|dt|br)\b[^>]*>", "\n\n", text)
    return html.unescape(re.sub(r"<[^>]+>", "", text))


def _python_topics() -> Iterator[str]:
    if importlib.util.find_spec("pydoc_data.topics"):
        from pydoc_data.topics import topics

        for name in sorted(topics):
            yield topics[name]


def _library() -> list[Path]:
    root = Path(sysconfig.get_paths()["stdlib"])
    return sorted(p for p in root.rglob("*.py") if not {"test", "tests", "site-packages", "idle_test"} & set(p.parts))


def _definitions(path: Path) -> Iterator[tuple[str, str]]:
    """(docstring, source) of what a Python file defines; the source of functions only."""
    source = _read(path)
    try:
        tree, lines = ast.parse(source), source.split("\n")
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            text = ast.get_docstring(node) or ""
            is_function = isinstance(node, ast.FunctionDef)
            code = textwrap.dedent("\n".join(lines[node.lineno - 1 : node.end_lineno])) if is_function else ""
            if text or code:
                yield text, code


def german_sentences() -> list[str]:
    """What the installed programs' German translations say in whole sentences."""
    found: dict[str, None] = {}
    for path in sorted(LOCALES.glob("*.mo")):
        try:
            with path.open("rb") as file:
                catalogue = gettext.GNUTranslations(file)._catalog
        except (OSError, ValueError, IndexError):
            continue  # some catalogues are damaged, or in a form that Python does not read
        for text in catalogue.values():
            sentence = " ".join(text.split())
            if 40 <= len(sentence) <= 220 and "%" not in sentence and _is_prose(sentence):
                found[sentence] = None
    return list(found)
