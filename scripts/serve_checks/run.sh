#!/usr/bin/env bash
# Checks a real `forerun serve`: with clients, against its description, and with all that can go wrong.
# FORERUN_PROGRAM names the program.
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=$("$scripts/setup.sh" python "$scripts/serve_checks/requirements.txt")
cd "$scripts/serve_checks"
"$python" -B -m unittest discover --pattern 'test_*.py'
"$python" -B check_schema.py
"$python" -B faults.py
