#!/usr/bin/env python3
"""Asks a real `forerun serve` whatever docs/openapi.yaml allows, and what it does not, with schemathesis.

No answer may be a fault of the server's, and each must be as described. Every path of the server must be there.

    scripts/serve_checks/check_schema.py [--examples 20] [--seed 1] [--only /tokenize]
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from served import ROOT, CheckedServer

DESCRIPTION = ROOT / "docs" / "openapi.yaml"
ROUTES = ROOT / "src" / "serve" / "app.cpp"
# 501 and 503 are said on purpose. Fields of other types than described may be ignored, so that what the
# description does not allow need not be refused; and what it allows may not fit the model.
CONFIGURATION = """
[checks]
negative_data_rejection.enabled = false
positive_data_acceptance.enabled = false
ignored_auth.enabled = false
not_a_server_error.expected-statuses = ["2xx", "4xx", 501, 503]
"""


def missing_paths() -> set[str]:
    """Of the server, that are not described."""
    described = set(yaml.safe_load(DESCRIPTION.read_text())["paths"])
    return set(re.findall(r'"(/[\w/-]+)"', ROUTES.read_text())) - described


def run_schemathesis(options: argparse.Namespace, url: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        configuration = Path(folder) / "schemathesis.toml"
        configuration.write_text(CONFIGURATION)
        command = [sys.executable, "-m", "schemathesis.cli", "--config-file", configuration, "run", DESCRIPTION, "--url", url,
                   "--phases", "examples,coverage,fuzzing", "--max-examples", str(options.examples), "--seed", str(options.seed),
                   "--request-timeout", "300", "--no-color", "--suppress-health-check", "all", "--continue-on-failure"]  # fmt: skip
        if options.only:
            command += ["--include-path", options.only]
        return subprocess.run(command, cwd=folder).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=20, help="for each path")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="this path")
    options = parser.parse_args()
    if missing := missing_paths():
        print(f"schema: {DESCRIPTION.name} does not describe {', '.join(sorted(missing))}", file=sys.stderr)
        return 1
    # Whatever is asked for, answers are short.
    with CheckedServer("-c", 512, "-n", 6, "--parallel", 4) as server:
        code = run_schemathesis(options, f"http://127.0.0.1:{server.port}")
        server.check_alive()
    return code


if __name__ == "__main__":
    sys.exit(main())
