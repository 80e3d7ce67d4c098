#!/usr/bin/env bash
# Checks that every C++ source is formatted; --fix formats them instead.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
mapfile -t files < <(find examples include src tests tools -name '*.h' -o -name '*.cpp' | sort)

if [ "${1:-}" = --fix ]; then
  clang-format -i "${files[@]}"
elif ! clang-format --dry-run -Werror "${files[@]}"; then
  echo "forerun: these sources are not formatted: run 'make format'" >&2
  exit 1
fi
