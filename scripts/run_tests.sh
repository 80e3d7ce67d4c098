#!/usr/bin/env bash
# Runs the scripts' own tests in their Python environment.
set -euo pipefail
shopt -s inherit_errexit

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=$("$scripts/setup.sh" python)
cd "$scripts"
PYTHONDONTWRITEBYTECODE=1 exec "$python" -m unittest discover --start-directory tests
