#!/usr/bin/env bash
# Compares what published chat templates render here and in transformers. FORERUN_PROGRAM names the program; folders
# with further templates may follow (*.jinja).
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# pip says on standard output how far it is.
templates=$("$("$scripts/setup.sh" python)" "$scripts/template_checks/templates.py" | tail -n1)
python=$("$scripts/setup.sh" python "$scripts/template_checks/requirements.txt")
exec "$python" -B "$scripts/template_checks/compare.py" "$templates" "$@"
