#!/usr/bin/env python3
"""Fetches the models that forerun is built and tested with, and makes derived ones."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

_SCRIPTS = Path(__file__).resolve().parent


def main() -> int:
    arguments = _parse()
    if sys.version_info < (3, 11):
        print("forerun: Python 3.11 or newer is needed", file=sys.stderr)
        return 1
    _enter_environment()
    from forerun_models.errors import SetupError

    try:
        return arguments.run(arguments)
    except SetupError as error:
        print(f"forerun: {error}", file=sys.stderr)
    except OSError as error:
        print(f"forerun: {error.filename or 'input or output'}: {error.strerror or error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("forerun: interrupted; run the same command to continue", file=sys.stderr)
    return 1


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    fetch = commands.add_parser("fetch", help="download a real model (smollm2, gemma3-270m)")
    fetch.add_argument("names", nargs="+", metavar="NAME")
    fetch.set_defaults(run=_fetch)

    make = commands.add_parser("make", help="make derived models")
    make.add_argument("names", nargs="*", metavar="NAME", help="names as 'list' shows them; tiny-* means all tiny ones")
    make.add_argument("--all", action="store_true", help="all but smollm2-wide, smollm2-domains and random-*")
    make.add_argument("--seed", type=int, default=1, help="of smollm2-deep (default 1)")
    size = make.add_mutually_exclusive_group()
    size.add_argument("--params", type=_billions, default=1e9, metavar="nB", help="size of smollm2-wide, 1B to 8B (default 1B)")
    size.add_argument("--width", type=int, metavar="N", help="width of smollm2-wide instead")
    make.add_argument("--layers", type=int, metavar="N", help="layers of smollm2-wide, with --width")
    make.add_argument("--type", choices=["f16", "q8_0"], default="f16", help="weights of smollm2-wide (default f16)")
    make.add_argument("--prompts", type=Path, metavar="FILE", help="of smollm2-domains: JSONL with categories")
    make.set_defaults(run=_make)

    show = commands.add_parser("list", help="show every model, and whether it is there")
    show.set_defaults(run=_list)
    return parser.parse_args()


def _billions(text: str) -> float:
    try:
        value = float(text.upper().removesuffix("B"))
    except ValueError:
        value = 0.0
    if not 0.2 <= value <= 8:
        raise argparse.ArgumentTypeError(f"'{text}': give a number of billions between 0.2B and 8B")
    return value * 1e9


def _enter_environment() -> None:
    """Continues in the project's private Python environment, made when absent."""
    setup = subprocess.run([_SCRIPTS / "setup.sh", "python"], stdout=subprocess.PIPE, text=True)
    if setup.returncode != 0:
        sys.exit(1)
    python = setup.stdout.strip()
    if Path(sys.prefix).resolve() != Path(python).parents[1].resolve():
        os.execv(python, [python, *sys.argv])


def _fetch(arguments: argparse.Namespace) -> int:
    from forerun_models import fetch
    from forerun_models.errors import SetupError

    for name in arguments.names:
        if name not in fetch.fetchable():
            raise SetupError(f"no model '{name}' can be fetched: there are {', '.join(fetch.fetchable())}")
    for name in arguments.names:
        fetch.fetch(name)
    return 0


def _make(arguments: argparse.Namespace) -> int:
    from forerun_models import catalog
    from forerun_models.errors import SetupError

    known = catalog.catalog()
    names = [name for name, model in known.items() if arguments.all and not model.only_by_name]
    for name in arguments.names:
        names += [n for n in known if n.startswith("tiny-")] if name == "tiny-*" else [name]
    if not names:
        raise SetupError("name the models to make, or use --all; 'scripts/models.py list' shows them")
    options = catalog.Options(
        arguments.seed, arguments.params, arguments.width, arguments.layers, arguments.type, arguments.prompts
    )
    catalog.make_models(names, options)
    return 0


def _list(_: argparse.Namespace) -> int:
    from forerun_models import cache, catalog, fetch
    from forerun_models.archives import downloads

    rows = [(name, downloads()["models"][name]["title"], (f"{name}.gguf",)) for name in fetch.fetchable()]
    rows += [(m.name, m.about, m.file_names) for m in catalog.catalog().values()]
    for name, about, files in rows:
        is_there = all((cache.models_dir() / file).exists() for file in files)
        print(f"{'here' if is_there else '-':5} {name:24} {about}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
