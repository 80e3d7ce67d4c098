"""Prompts by domain, divided into those that domains are built from and those that are measured."""

from collections import defaultdict
from pathlib import Path

from .setup import read_prompts


def by_domain(path: Path) -> dict[str, list[dict]]:
    """First turns by category. Of one category alone two domains are made, so that there is something to tell apart."""
    found: dict[str, list[dict]] = defaultdict(list)
    for prompt in read_prompts(path):
        category = prompt.get("category") or "all"
        found[category].append({**prompt, "category": category, "turns": prompt["turns"][:1]})
    if len(found) == 1:
        ((name, prompts),) = found.items()
        halves = {f"{name}-{half + 1}": prompts[half::2] or prompts for half in (0, 1)}
        return {half: [{**prompt, "category": half} for prompt in of_half] for half, of_half in halves.items()}
    return dict(found)


def divided(domains: dict[str, list[dict]], n_build: int, n_measure: int) -> dict[str, dict[str, list[dict]]]:
    """Of each domain, `build` and `measure`: others, if there are any. `n_measure` is of all domains together."""
    per_domain = max(1, n_measure // len(domains))
    result = {}
    for name, prompts in domains.items():
        n = min(n_build, max(2, len(prompts) - per_domain))
        build = (prompts * 2)[: max(2, n)] if len(prompts) < 2 else prompts[: max(2, n)]
        rest = prompts[len(build) :] or prompts
        result[name] = {"build": build, "measure": rest[:per_domain]}
    return result
