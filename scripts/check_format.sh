#!/usr/bin/env bash
# Checks that every C++ source is formatted; --fix formats them instead.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

format() {
  find examples include src tests tools \( -name '*.h' -o -name '*.cpp' \) -print0 |
    xargs -0 -n 64 -P "$(nproc)" clang-format "$@"
}

if [ "${1:-}" = --fix ]; then
  format -i
elif ! format --dry-run -Werror; then
  echo "forerun: these sources are not formatted: run 'make format'" >&2
  exit 1
fi
