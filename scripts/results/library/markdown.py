"""Tables and sections of a page."""

import textwrap
from collections.abc import Iterable


def row(cells: Iterable) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def table(head: list[str], rows: Iterable[Iterable]) -> list[str]:
    """Nothing, where there are no rows."""
    body = [row(cells) for cells in rows]
    return [row(head), "|---" * len(head) + "|", *body, ""] if body else []


def section(title: str, *parts: list[str]) -> list[str]:
    """Nothing, where its last part, the table, is empty."""
    return [title, "", *(line for part in parts for line in part)] if parts[-1] else []


def paragraph(*lines: str) -> list[str]:
    return [*lines, ""]


def prose(*texts: str) -> list[str]:
    """A paragraph of words with any white space between them."""
    return [*wrapped(" ".join(texts)), ""]


def items(*texts: str) -> list[str]:
    return [*(line for text in texts for line in wrapped(text, "* ", "  ")), ""]


def wrapped(text: str, first: str = "", others: str = "") -> list[str]:
    return textwrap.wrap(" ".join(text.split()), 118, initial_indent=first, subsequent_indent=others,
                         break_long_words=False, break_on_hyphens=False)  # fmt: skip


def picture(page: str, name: str, what: str) -> list[str]:
    return [f"![{what}]({page}/{name}.svg)", ""]
