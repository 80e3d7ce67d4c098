"""What measurements of drafts from texts are called, and what tables take from them."""

from .measured import Methods, decode_ms

VARIANTS = ("pooled", "paper", "code")
BASELINES = ("pld", "rest", "pia", "suffix")
LEARNING = ("pia", "suffix")  # of the baselines, those that remember their answers
BATCH_METHODS = ("none", "sssd", "auto")
HARD_MODELS = {"smollm2": "SmolLM2-135M, Q4_1", "smollm2-q8": "SmolLM2-135M, Q8_0"}


def sssd(variant: str) -> str:
    """As `bench spec` names it."""
    return "sssd" if variant == "pooled" else f"sssd:variant={variant}"


def store_only(variant: str) -> str:
    """Windows of the input that end with what was searched for: nothing is drafted from it."""
    return f"{sssd(variant)}:input-window=1"


def of_kind(files: list[dict], kind: str) -> list[dict]:
    """In the order of their sizes, if they have any."""
    found = [file for file in files if file["identity"]["kind"] == kind]
    return sorted(found, key=lambda file: file["identity"].get("batch", file["identity"].get("size", 0)))


def by_set(files: list[dict], kind: str) -> dict[str, dict]:
    """By name, the main set first: the one that the page was measured with."""
    found = of_kind(files, kind)
    found.sort(key=lambda file: file["identity"]["prompts"] != file["identity"]["set_prompts"])
    return {file["identity"]["set"]: file for file in found}


def per_pass(count: float, result: dict) -> float:
    return count / max(1, sum(run["steps"] for run in result["runs"]))


def drafting_us(result: dict) -> float:
    """What finding a pass's drafts takes."""
    return per_pass(1000 * result["draft_share"] * decode_ms(result["runs"]), result)


def of_100(result: dict, source: str) -> float:
    """Of 100 tokens of the answers, those that were drafted from there."""
    return 100 * result["by_source"].get(source, {}).get("accepted", 0) / max(1, result["tokens"])


def gain(result: dict) -> float:
    """Drafted tokens that a pass brings."""
    return result["tokens_per_step"] - 1


def last_runs(result: dict, n: int) -> dict:
    """Of its last prompts alone; the share of drafting stays that of all."""
    runs = result["runs"][-n:]
    identical, drafted, accepted = (sum(run[key] for run in runs) for key in ("identical", "drafted", "accepted"))
    found = {**result, "runs": runs, "prompts": len(runs), "identical": identical, "drafted": drafted}
    return {**found, "tokens_per_step": 1 + per_pass(accepted, found)}


def warm_methods(file: dict) -> Methods:
    """Of the prompts that are measured, not of those that came first."""
    return {name: last_runs(result, file["identity"]["n_prompts"]) for name, result in file["methods"].items()}


# ---- Stores ----


def stores_of(file: dict) -> list[dict]:
    """Those that were drafted from."""
    return file.get("stores", [])


def n_tokens(file: dict) -> int:
    return sum(store["tokens"] for store in stores_of(file))


# ---- Batches ----


def throughput(file: dict, name: str) -> float:
    """Tokens per second of all requests together."""
    result = file["methods"][name]
    return 1000 * result["tokens"] / decode_ms(result["runs"])


def latency_ms(file: dict, name: str) -> float:
    """As the paper has it: how long a request waits for a token."""
    return 1000 * file["identity"]["batch"] / throughput(file, name)


def speed_with_prompts(methods: Methods, name: str) -> float:
    """Speedup, if reading the prompts counts."""

    def took(method: str) -> float:
        return sum(run["prompt_ms"] + run["decode_ms"] for run in methods[method]["runs"])

    return took("none") / took(name)
