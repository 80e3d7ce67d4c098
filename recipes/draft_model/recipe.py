#!/usr/bin/env python3
"""Makes a small draft model for SmolLM2: README.md beside this says how.

recipe.py prepare --teacher smollm2.gguf --measure prompts.jsonl --data DATA
recipe.py run     --teacher smollm2.gguf --data DATA --work WORK --out OUT --minutes 17
"""

import argparse
import sys
import tempfile
from pathlib import Path

_HERE = Path(__file__).resolve().parent
# Its own packages, and the scripts' of this repository; both beside it where only they were copied.
sys.path[:0] = [str(_HERE), *(str(folder / "scripts") for folder in _HERE.parents[:2])]


def main() -> int:
    arguments = _parse()
    from draft_recipe.journal import Clock  # imports of what is slow to load wait until the clock runs

    clock = Clock(getattr(arguments, "minutes", 0) * 60)
    from forerun_models.errors import SetupError

    try:
        arguments.run(arguments, clock)
        return 0
    except SetupError as error:
        print(f"recipe: {error}", file=sys.stderr)
    except OSError as error:
        print(f"recipe: {error.filename or 'input or output'}: {error.strerror or error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("recipe: interrupted; run the same command to continue", file=sys.stderr)
    return 1


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(metavar="STEP", required=True)
    prepare = _command(commands, "prepare", _prepare, "write the files of tokens that all other steps read")
    prepare.add_argument(
        "--measure",
        type=Path,
        required=True,
        metavar="JSONL",
        help="prompts to measure with, never trained on: category and turns in each line",
    )
    prepare.add_argument("--prompts", type=Path, metavar="JSONL", help="more turns of users to train on")
    prepare.add_argument("--turns", type=int, default=24000, help="turns to draw from patterns (default %(default)s)")
    prepare.add_argument(
        "--program", default="build/bin/forerun", help="forerun, which tokenises (default %(default)s)"
    )
    run = _command(
        commands, "run", _run, "sample, train, write and measure in the time given; goes on from an earlier run"
    )
    run.add_argument("--minutes", type=float, required=True, help="this run's time")
    run.add_argument(
        "--more-runs",
        type=int,
        default=0,
        metavar="N",
        help="runs of the same length that will follow (default 0: this is the last)",
    )
    _command(
        commands, "check", _check, "take all those steps in a minute at a small size, to see that they work here"
    ).set_defaults(minutes=0.6)
    sample = _command(commands, "sample", _sample, "only let the teacher write rows")
    train = _command(commands, "train", _train, "only train")
    for command in (sample, train):
        command.add_argument("--minutes", type=float, required=True)
    _command(commands, "export", _export, "only write the model's file")
    _command(commands, "evaluate", _evaluate, "only measure the model's file")
    return parser.parse_args()


def _command(commands, name: str, run, about: str) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=about)
    command.set_defaults(run=run)
    command.add_argument("--teacher", type=Path, required=True, metavar="GGUF")
    command.add_argument(
        "--data", type=Path, default=Path("data"), help="folder of the files of tokens (default %(default)s)"
    )
    command.add_argument("--seed", type=int, default=1)
    if name != "prepare":
        command.add_argument(
            "--work",
            type=Path,
            default=Path("work"),
            help="folder for what a later run goes on from (default %(default)s)",
        )
        command.add_argument("--out", type=Path, default=Path("out"), help="folder for results (default %(default)s)")
        command.add_argument(
            "--earlier", type=Path, metavar="DIR", help="an earlier run's --out, where its --work was lost"
        )
        command.add_argument("--small", action="store_true", help="the sizes of 'check'")
    return command


def _prepare(arguments, clock) -> None:
    from draft_recipe import prepare
    from forerun_models.gguf_copy import Source

    arguments.data.mkdir(parents=True, exist_ok=True)
    tokenizer = prepare.Tokenizer(arguments.program, arguments.teacher)
    print(prepare.write_measure(arguments.data / "measure.npz", tokenizer, arguments.measure))
    extra = prepare.extra_turns(arguments.prompts) if arguments.prompts else []
    teacher = Source(arguments.teacher)
    print(
        prepare.write_prompts(
            arguments.data / "prompts.npz", tokenizer, teacher, extra, arguments.seed, arguments.turns
        )
    )


def _recipe(arguments):
    from draft_recipe.steps import SMALL, Places, Recipe, Sizes

    data = arguments.data
    places = Places(
        arguments.teacher, data / "prompts.npz", data / "measure.npz", arguments.work, arguments.out, arguments.earlier
    )
    return Recipe(places, SMALL if arguments.small else Sizes(), arguments.seed)


def _run(arguments, clock) -> None:
    _recipe(arguments).run(clock, arguments.more_runs, arguments.minutes)


def _check(arguments, clock) -> None:
    """Two runs, so that going on is tried too; leaves nothing behind."""
    from draft_recipe.journal import Clock

    each = arguments.minutes / 2
    with tempfile.TemporaryDirectory() as folder:
        arguments.work, arguments.out, arguments.small = Path(folder) / "work", Path(folder) / "out", True
        _recipe(arguments).run(Clock(each * 60), 1, each)
        _recipe(arguments).run(Clock(each * 60), 0, each)


def _sample(arguments, clock) -> None:
    _recipe(arguments).sample(clock.left())


def _train(arguments, clock) -> None:
    recipe = _recipe(arguments)
    recipe.train(clock, 0.0, recipe.measure())


def _export(arguments, clock) -> None:
    recipe = _recipe(arguments)
    recipe.export(recipe.training())


def _evaluate(arguments, clock) -> None:
    recipe = _recipe(arguments)
    recipe.evaluate(recipe.measure())


if __name__ == "__main__":
    sys.exit(main())
