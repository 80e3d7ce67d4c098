"""What is measured about speculation: one run of `forerun bench spec` per setting."""

from dataclasses import asdict, dataclass

MODELS = {
    "smollm2": "SmolLM2-135M, Q4_1",
    "smollm2-q8": "SmolLM2-135M, Q8_0",
    "smollm2-deep": "125 layers made of SmolLM2",
}
# Each might be the best that a user could choose instead of `auto`.
SINGLE = ("sssd", "suffix", "pld", "knapspec", "swift")
# Where many share a pass; with fewer methods each has its turn again sooner.
SINGLE_OF_MANY = ("sssd", "suffix")
PUBLISHED = ("pld", "rest", "pia", "jacobi", "suffix")
BATCHES = (8, 16)
TEMPERATURE = 0.8


@dataclass(frozen=True)
class Setting:
    name: str  # of its file
    model: str
    methods: tuple[str, ...]
    draft: bool = False  # a draft model, for those that can use one
    live: bool = True  # a live datastore that begins empty
    batch: int = 1
    temperature: float = 0
    tree: str = ""  # empty: what suits each method

    def described(self) -> dict:
        """As JSON has it."""
        return {**asdict(self), "methods": list(self.methods)}


def all_settings() -> list[Setting]:
    settings = []
    for model in MODELS:
        for draft in (False, True):
            base = f"{model}-draft" if draft else model
            drafts = ("draft",) if draft else ()
            settings.append(Setting(base, model, ("auto", *SINGLE, *drafts), draft))
            settings.append(Setting(f"{base}-sampled", model, ("auto",), draft, temperature=TEMPERATURE))
            for batch in BATCHES:
                settings.append(Setting(f"{base}-{batch}-at-once", model, ("auto", *SINGLE_OF_MANY, *drafts), draft, batch=batch))
    settings.append(Setting("as-published", "smollm2", PUBLISHED, live=False, tree="own"))
    return settings
