#!/usr/bin/env bash
# Runs the unit tests of kernels, models and sampling as the other architecture has them
# (ARM64 on x86-64, x86-64 on ARM64), under emulation. Minutes, and no word on speed.
set -euo pipefail

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$scripts/.."
readonly tests=(core_test kernels_test model_test sampling_test)

"$scripts/setup.sh" packages emulated
"$scripts/build.sh" emulated "${tests[@]}"
case $(uname -m) in
  x86_64) emulator=(qemu-aarch64) ;;
  *) emulator=(qemu-x86_64 -cpu max) ;;
esac
# Death tests start their program again, and the system would not know how to.
for test in "${tests[@]}"; do
  "${emulator[@]}" "build-emulated/bin/$test" --gtest_brief=1 --gtest_filter='-*DeathTest.*'
done
echo "forerun: all tests passed under emulation"
