#!/usr/bin/env bash
# Runs the tests of the scripts and recipes in the scripts' Python environment; what needs
# PyTorch is skipped where that environment has none.
set -euo pipefail
shopt -s inherit_errexit

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=$("$scripts/setup.sh" python)
cd "$scripts"
export PYTHONDONTWRITEBYTECODE=1
"$python" -m unittest discover --start-directory tests
exec "$python" -m unittest discover --start-directory ../recipes/draft_model/tests
