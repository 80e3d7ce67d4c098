"""Tables of forerun bench serve's measurements: one for each kind of load."""

from .markdown import section, table
from .speculation_settings import MODELS

TITLES = {False: "## Prompts of their own", True: "## The same instructions before every prompt"}
SECTIONS = list(TITLES.values())
SERVERS = {"none": "forerun, `--spec none`", "auto": "forerun, `--spec auto`"}


def tables(files: list[dict]) -> list[str]:
    lines = []
    files = sorted(files, key=lambda file: list(MODELS).index(file["identity"]["model"]))
    for is_shared, title in TITLES.items():
        chosen = [file for file in files if bool(file["identity"]["prefix"]) == is_shared]
        lines += section(title, load_table(chosen))
    return lines


def load_table(files: list[dict]) -> list[str]:
    head = ["model", "streams", "server", "tokens per second", "of plain", "first text, ms: median, 99 %",
            "between texts, ms: median, 99 %", "other texts"]  # fmt: skip
    rows = [
        [MODELS[file["identity"]["model"]], server["streams"], SERVERS.get(server["server"], server["server"]),
         f"{server['tokens_per_second']:.0f}", f"{server['ratio']:.2f}", pair(server, "first_text"),
         pair(server, "between_texts"), server["other_texts"]]
        for file in files
        for server in file["servers"]
    ]  # fmt: skip
    return table(head, rows)


def pair(server: dict, what: str) -> str:
    return f"{server[f'{what}_p50_ms']:.0f}, {server[f'{what}_p99_ms']:.0f}"
