"""The recipe's steps, and one run through them that fits its time and goes on from an earlier one."""

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from forerun_models.errors import SetupError

from . import blocks as block_kinds
from . import gguf_model, llama, sampling
from .blocks import Block, BlockKind, Labeller, make_blocks
from .chat import ChatIds
from .compose import PromptBook
from .evaluation import Measure
from .journal import Clock, Journal
from .labels_file import load_labels, save_labels
from .llama import Weights
from .sampling import RowKind
from .shape import Shape
from .student import load_parts, new_student, save_parts
from .training import Training, TrainOptions

NAME = "smollm2-draft"
_SAMPLE_SHARE = 0.38  # of all runs' time
_START_S = 45  # a later run's time before it trains
_END_S = 35  # what a run keeps back to save, write and measure


@dataclass(frozen=True)
class Sizes:
    rows: tuple[RowKind, ...] = sampling.KINDS
    blocks: dict[str, BlockKind] = field(default_factory=lambda: block_kinds.KINDS)
    student: tuple[int, int, int, int, int, int] = (4, 384, 1024, 6, 2, 64)  # as Shape's first six
    n_answer: int = 256  # tokens of an answer that is measured with
    n_measured: int | None = None  # prompts; None: all
    train: TrainOptions = TrainOptions()

    def student_shape(self, teacher: Shape) -> Shape:
        return Shape(*self.student, teacher.n_vocab, teacher.rope_base, teacher.eps)


# Takes the same paths in a minute, to see that they work.
SMALL = Sizes(
    rows=tuple(
        replace(k, n_rows=4, n_columns=c, n_new=24, extents=(c // 2, c), text_lengths=t)
        for k, c, t in zip(sampling.KINDS, (192, 256, 192), ((), (64, 100), ()))
    ),
    blocks={name: replace(kind, n_rows=2) for name, kind in block_kinds.KINDS.items()},
    n_answer=8,
    n_measured=4,
    train=TrainOptions(n_warmup=5, positions_at_once=256, save_every_s=5, measure_every_s=5),
)


@dataclass
class Places:
    """Where things lie. `earlier`: weights that were brought back from a machine that is gone."""

    teacher: Path
    prompts: Path
    measure: Path
    work: Path
    out: Path
    earlier: Path | None = None


class Recipe:
    def __init__(self, places: Places, sizes: Sizes, seed: int):
        self.places, self._sizes, self._seed = places, sizes, seed
        places.work.mkdir(parents=True, exist_ok=True)
        places.out.mkdir(parents=True, exist_ok=True)
        self.journal = Journal(places.work / "log.jsonl")
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        torch.backends.cuda.enable_cudnn_sdp(False)  # it plans anew for every length of rows
        self._source = gguf_model.open_model(places.teacher)
        self._shape = gguf_model.model_shape(self._source)
        plain = _tensors(gguf_model.model_weights(self._source, self._shape))
        self._embedding = plain["token_embd"].to(self._device)
        # float16 has three bits more than bfloat16, and this teacher's numbers stay below its end.
        dtype = torch.float16 if self._device.type == "cuda" else torch.float32
        self._teacher = {n: t.to(self._device) for n, t in llama.fused(plain, dtype).items()}
        self._student_shape = sizes.student_shape(self._shape)
        self.journal.write(
            "start",
            device=_device_name(),
            torch=torch.__version__,
            teacher=_hash(places.teacher),
            prompts=_hash(places.prompts),
            seed=seed,
        )

    def run(self, clock: Clock, later_runs: int, minutes: float) -> None:
        """Samples, trains, and in the last run writes the model; each as far as it is not done."""
        all_s = clock.left() + later_runs * minutes * 60
        later_s = later_runs * max(1.0, minutes * 60 - _START_S - _END_S)
        try:
            self.sample(all_s * _SAMPLE_SHARE)
            measure = self.measure()
            training = self.train(Clock(clock.left() - min(_END_S, 0.3 * minutes * 60)), later_s, measure)
            if later_runs == 0:
                self.export(training)
                self.evaluate(measure)
        finally:
            (self.places.out / "log.jsonl").write_bytes((self.places.work / "log.jsonl").read_bytes())

    def sample(self, seconds: float) -> None:
        with torch.no_grad():
            sampling.write_rows(
                self.places.work,
                self._shape,
                self._teacher,
                PromptBook(self.places.prompts),
                self._sizes.rows,
                seconds,
                self._seed,
                self.journal,
            )
        _give_memory_back(self._device)

    def train(self, clock: Clock, later_s: float, measure: Measure) -> Training:
        blocks = self.blocks(measure.ids)
        n_labelled = load_labels(self.places.work, blocks)
        n_columns = max(block.tokens.shape[1] for block in blocks)
        training = self.training(n_columns)
        self.journal.write(
            "blocks",
            blocks=len(blocks),
            positions=sum(len(b.positions) for b in blocks),
            labelled=n_labelled,
            steps_before=training.n_steps,
        )
        labeller = Labeller(self._shape, self._teacher, n_columns)
        agreement = lambda weights: measure.agreement(self._student_shape, weights)
        try:
            training.run(blocks, labeller, clock, later_s, self.journal, self.places.work, agreement)
        finally:  # whatever happened, what was learnt is kept
            training.save(self.places.work)
            save_parts(self.places.out, training.params)
        if later_s:
            n_kept = save_labels(self.places.work, blocks, Clock(0.5 * _END_S))
            self.journal.write("labels kept", blocks=n_kept)
        progress = training.trained_s / (training.trained_s + later_s) if training.trained_s else 0.0
        self.journal.write("agreement", step=training.n_steps, **agreement(training.weights(progress)))
        return training

    def blocks(self, ids: ChatIds) -> list[Block]:
        rows = {kind.name: sampling.read_rows(self.places.work, kind) for kind in self._sizes.rows}
        if None in rows.values():
            raise SetupError(f"{self.places.work} holds no sampled rows: run the step 'sample' first")
        return make_blocks(rows, ids, self._device, self._seed, self._sizes.blocks)

    def training(self, n_columns: int = 1) -> Training:
        """As the last run left it; from weights brought back; or new."""
        params = load_parts(self.places.earlier, self._student_shape) if self.places.earlier else None
        if params is None:
            params = new_student(self._student_shape, self._embedding, self._seed)
        params = {name: p.to(self._device) for name, p in params.items()}
        training = Training(self._student_shape, params, self._sizes.train, n_columns, self._seed)
        training.load(self.places.work)
        return training

    def export(self, training: Training) -> Path:
        path = self.places.out / f"{NAME}.gguf"
        weights = {name: p.cpu().numpy() for name, p in training.params.items()}
        gguf_model.write_model(path, self._source, self._student_shape, weights, NAME)
        self.journal.write(
            "wrote",
            file=path.name,
            bytes=path.stat().st_size,
            sha256=_hash(path),
            steps=training.n_steps,
            trained_s=round(training.trained_s),
        )
        return path

    def evaluate(self, measure: Measure) -> dict:
        """Of the file, read back."""
        source = gguf_model.open_model(self.places.out / f"{NAME}.gguf")
        shape = gguf_model.model_shape(source)
        plain = _tensors(gguf_model.model_weights(source, shape))
        weights = {n: t.to(self._device) for n, t in llama.fused(plain, torch.float32).items()}
        found = measure.agreement(shape, weights)
        self.journal.write("agreement of the file", **found)
        return found

    def measure(self) -> Measure:
        measure = Measure(self.places.measure, self._sizes.n_measured)
        with torch.no_grad():
            measure.answer(
                self.places.work / "answers.npz", self._shape, self._teacher, self._sizes.n_answer, self.journal
            )
        _give_memory_back(self._device)
        return measure


def _tensors(arrays: dict[str, np.ndarray]) -> Weights:
    return {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}


def _give_memory_back(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.empty_cache()


def _device_name() -> str:
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
