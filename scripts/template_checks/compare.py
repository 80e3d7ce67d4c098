"""Compares the prompts of `forerun serve` with those of `transformers`: compare.py [--table FILE] FOLDER...

Every template in the folders renders every conversation with both. What raises an exception there must be an error
here, and if the template itself refused, with its reason; such conversations are counted apart, since they show less.
Ends with 1 where a template differs more than known.toml says.
"""

import argparse
import copy
import json
import os
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from conversations import CONVERSATIONS

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "program"))
os.environ.setdefault("FORERUN_PROGRAM", str(ROOT / "build" / "bin" / "forerun"))
os.environ["TRANSFORMERS_VERBOSITY"] = "error"

from jinja2.exceptions import TemplateError  # noqa: E402
from program import model  # noqa: E402
from server import Server  # noqa: E402
from transformers.utils.chat_template_utils import render_jinja_template  # noqa: E402

# Of the model that lends the server its vocabulary.
_TOKENS = {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}


def with_text_arguments(messages: list[dict]) -> list[dict]:
    """With arguments of calls as OpenAI's clients send them: JSON in a text."""
    messages = copy.deepcopy(messages)
    for message in messages:
        for call in message.get("tool_calls") or []:
            call["function"]["arguments"] = json.dumps(call["function"]["arguments"], ensure_ascii=False)
    return messages


def forms(messages: list[dict]) -> list[list[dict]]:
    """Ways to say the same, in the order in which they are tried: some templates take no dictionary as arguments, or
    nothing without a content."""
    filled = [{**message, "content": ""} if message.get("content", "") is None else message for message in messages]
    return [messages, with_text_arguments(messages), filled, with_text_arguments(filled)]


@dataclass(frozen=True)
class Outcome:
    text: str | None = None
    reason: str = ""  # why there is no text: what the template said itself, or of ours all of it


def render(template: str, conversation: dict) -> Outcome:
    """What transformers makes of it."""
    reasons = []
    for messages in forms(conversation["messages"]):
        try:
            texts, _ = render_jinja_template(
                [messages],
                tools=conversation.get("tools"),
                chat_template=template,
                add_generation_prompt=conversation.get("add_generation_prompt", True),
                **_TOKENS,
            )
            return Outcome(texts[0])
        except Exception as error:
            reasons.append(str(error) if type(error) is TemplateError else "")
    return Outcome(reason=reasons[0])


def ask(server: Server, conversation: dict) -> Outcome:
    request = {**conversation, "messages": with_text_arguments(conversation["messages"])}
    request.setdefault("add_generation_prompt", True)
    request["continue_final_message"] = False
    status, answer, _ = server.ask("POST", "/apply-template", request)
    if status == 200:
        return Outcome(answer["prompt"])
    message = answer["error"]["message"]
    if "\n" in message:
        raise AssertionError(f"an error of several lines: {message!r}")
    return Outcome(reason=message)


def is_same(expected: Outcome, actual: Outcome) -> bool:
    if expected.text is not None or actual.text is not None:
        return expected.text == actual.text
    return " ".join(expected.reason.split()) in " ".join(actual.reason.split())


def compared(path: Path) -> tuple[int, int, list[str]]:
    """How many prompts are the same, how many conversations fail in both, and the names of those that differ."""
    template = path.read_text()
    expected = {name: render(template, conversation) for name, conversation in CONVERSATIONS.items()}
    try:
        with Server("-m", model("smollm2"), "--chat-template-file", path) as server:
            actual = {name: ask(server, conversation) for name, conversation in CONVERSATIONS.items()}
    except AssertionError as error:
        print(error, file=sys.stderr)
        return 0, 0, list(CONVERSATIONS)
    different = [name for name in CONVERSATIONS if not is_same(expected[name], actual[name])]
    n_failing = sum(expected[name].text is None for name in CONVERSATIONS if name not in different)
    return len(CONVERSATIONS) - len(different) - n_failing, n_failing, different


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=Path, help="write the result there too, as a table of Markdown")
    parser.add_argument("folders", type=Path, nargs="+", help="folders of templates (*.jinja)")
    options = parser.parse_args()
    known = tomllib.loads((Path(__file__).parent / "known.toml").read_text())
    n_worse = 0
    rows = []
    for path in sorted(path for folder in options.folders for path in folder.glob("*.jinja")):
        n_same, n_failing, different = compared(path)
        reason = known.get(path.stem, {}).get("reason", "")
        is_worse = len(different) > known.get(path.stem, {}).get("differences", 0)
        n_worse += is_worse
        rows.append(f"| {path.stem} | {n_same} | {n_failing} | {len(different)} | {reason} |")
        line = f"{path.stem}: {n_same} the same, {n_failing} fail in both, {len(different)} different"
        print(line, *(["MORE THAN KNOWN:", ", ".join(different)] if is_worse else []))
    if options.table:
        header = ["| template | same prompt | fails in both | different | why |", "|---|---|---|---|---|"]
        options.table.write_text("\n".join(header + rows) + "\n")
    if not rows:
        print("forerun: there are no templates in these folders", file=sys.stderr)
    return 1 if n_worse or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
