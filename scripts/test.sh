#!/usr/bin/env bash
# test.sh FOLDER: runs every test of that build; for the release build then the unit
# tests again with AddressSanitizer and UndefinedBehaviorSanitizer. The models must be
# there.
set -euo pipefail

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$scripts/.."
readonly folder=$1
jobs=$("$scripts/setup.sh" jobs)

# Tests with models use all cores themselves, so those run one after another.
ctest --test-dir "$folder" --output-on-failure --no-tests=error -L unit --parallel "$jobs"
ctest --test-dir "$folder" --output-on-failure --no-tests=error -LE unit

if [ "$folder" = build ]; then
  "$scripts/build.sh" asan unit_tests
  ctest --test-dir build-asan --output-on-failure --no-tests=error -L unit --parallel "$jobs"
fi
echo "forerun: all tests passed"
