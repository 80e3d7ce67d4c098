#!/usr/bin/env python3
"""Writes docs/results/README.md: what the papers claim, what we reached, and why the two differ.

    scripts/results/overview.py

Every number of ours is read from the files of the other pages (docs/results/*/); it measures nothing.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass

from library.markdown import table
from library.page import RESULTS, hardware, read_raw
from library.overview_numbers import (
    Files, disco_over_fixed, knapspec_own, knnssd_over_shared, sssd_with_store, swift_own, whole_system,
)  # fmt: skip

PAGES = {
    "speculation": "`auto` beside every single method; batches, sampling, the first tokens, llama.cpp's server",
    "stores": "drafts from texts: SSSD and its rivals, size of the store, batches up to 64",
    "layers": "the model as its own drafter: SWIFT, KnapSpec, Draft & Verify, CLaSp, DEL; ablations, sweeps, long texts",
    "domains": "layers by what a prompt is about: KNN-SSD",
    "stopping": "when to stop drafting: DISCO and every other rule",
    "gpu": "`auto` on a GPU, alone and with many requests at once",
    "network": "`auto` where layers are on other machines, by how far away these are",
    "serving": "`forerun serve` under load: tokens per second, and how long clients wait",
    "engine": "passes, prompts and loading beside libllama",
}


@dataclass(frozen=True)
class Claim:
    paper: str
    says: str  # and on what
    ours: Callable[[Files], str | None]  # None: not measured
    page: str
    why: str  # the two differ


CLAIMS = [
    Claim(
        "SSSD (ACL 2026)",
        "up to 2.9 times less latency; 1.1 to 1.23 with an empty store, about 1.4 for English after 1,000 conversations "
        "(Qwen3-14B, Llama-3.1-8B, GPUs)",
        sssd_with_store,
        "stores",
        "a row costs a CPU more than a GPU that waits for memory, and our stores hold some dozens of answers, not thousands",
    ),
    Claim(
        "SWIFT (ICLR 2025)",
        "1.3 to 1.6 times, 98 to 100 % accepted (LLaMA-2 13B and 70B, CodeLLaMA)",
        swift_own,
        "layers",
        "its random sets of a fixed size miss blocks that are redundant at irregular places; a search by cost finds them",
    ),
    Claim(
        "KnapSpec",
        "1.06 to 1.47 times (Llama-3, Qwen3, 1B to 70B, long texts)",
        knapspec_own,
        "layers",
        "as published it looks at all its branches at once, thousands of rows, which a GPU does nearly for nothing and a "
        "CPU does not; ours looks at 8",
    ),
    Claim(
        "KNN-SSD",
        "1.35 to 1.62 times, 1.11 to 1.26 with one set for all domains (LLaMA-2-13B, Qwen-2.5-14B)",
        knnssd_over_shared,
        "domains",
        "a model of our making, cut so that its redundancy depends on the domain",
    ),
    Claim(
        "DISCO",
        "1.10 times the best fixed length on average, 1.31 times the heuristic one (Starcoder, Vicuna-13B)",
        disco_over_fixed,
        "stopping",
        "our drafter costs a twelfth of a step, so that a token too many costs little",
    ),
    Claim(
        "`--spec auto`",
        "ours: never slower than plain decoding, and as fast as the best of the methods",
        whole_system,
        "speculation",
        "",
    ),
]


def main() -> None:
    files = {page: read_raw(RESULTS / page) for page in PAGES}
    every = [file for of_page in files.values() for file in of_page.values()]
    if not every:
        sys.exit("nothing is measured: run the other scripts in scripts/results/ first")
    path = RESULTS / "README.md"
    path.write_text("\n".join(page_lines(files)).rstrip() + "\n")
    print(path)


def page_lines(files: Files) -> list[str]:
    measured = [file for of_page in files.values() for file in of_page.values()]
    return [
        "# Results",
        "",
        "What the papers claim, what forerun reached, on what. Written by `scripts/results/overview.py` from the files of the",
        "pages below, each of which has a script of its name in `scripts/results/` that measures it again, on your machine",
        "with your prompts. Every text with drafts was the text without, unless a page says otherwise.",
        "",
        *claim_table(files),
        "*Speedups* are over plain decoding of the same engine; forerun's plain decoding itself is faster than libllama's",
        "([engine.md](engine.md)). Models of ours: SmolLM2-135M in Q4_1 and Q8_0, the only real model small enough for all of",
        "this on two cores; `smollm2-deep`, which has copies of its layers that do next to nothing, as large models have such",
        "blocks; `smollm2-domains`, some of whose layers one domain of prompts needs.",
        "",
        f"Hardware: {hardware(measured)}.",
        "",
        *table(["page", "what it measures"], ([f"[{page}.md]({page}.md)", what] for page, what in PAGES.items() if files[page])),
    ]


def claim_table(files: Files) -> list[str]:
    rows = []
    for claim in CLAIMS:
        ours = claim.ours(files)
        if ours is not None:
            rows.append([claim.paper, claim.says, ours, claim.why, f"[{claim.page}]({claim.page}.md)"])
    return table(["paper", "what it says", "what we measured", "why they differ", "page"], rows)


if __name__ == "__main__":
    main()
