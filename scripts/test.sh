#!/usr/bin/env bash
# test.sh FOLDER: builds and runs every test. Unit tests run with AddressSanitizer and
# UndefinedBehaviorSanitizer, in a build of their own beside the release build; whole models, the
# program, and the unit tests of arithmetic and statistics in the optimised build. (Another folder than
# the release build's: all tests in that.) The models must be there.
set -euo pipefail

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$scripts/.."
readonly folder=$1
jobs=$("$scripts/setup.sh" jobs)

run() {
  ctest --test-dir "$1" --output-on-failure --no-tests=error "${@:2}"
}

if [ "$folder" = build ]; then
  run build -L 'arithmetic|statistics' --parallel "$jobs"
else
  run "$folder" -L 'unit|statistics' --parallel "$jobs"
fi
# Programs wait for each other, for disks and for clocks: with one more test than cores, no core does.
run "$folder" -L 'model|program|scripts' --parallel "$((jobs + 1))"

if [ "$folder" = build ]; then
  "$scripts/build.sh" asan unit_tests
  run build-asan -L unit --parallel "$jobs"
fi
echo "forerun: all tests passed"
