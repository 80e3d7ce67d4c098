#!/usr/bin/env bash
# Runs the unit tests of kernels, models and sampling as the other architecture has them
# (ARM64 on x86-64, x86-64 on ARM64), under emulation, and on an ARM64 machine without i8mm
# the kernels that use it. Minutes, and no word on speed.
set -euo pipefail

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$scripts/.."
readonly tests=(core_test kernels_test model_test sampling_test)

"$scripts/setup.sh" packages emulated
"$scripts/build.sh" emulated "${tests[@]}"
case $(uname -m) in
  x86_64) emulator=(qemu-aarch64 -cpu max) ;;
  *) emulator=(qemu-x86_64 -cpu max) ;;
esac
# Death tests start their program again, and the system would not know how to.
for test in "${tests[@]}"; do
  "${emulator[@]}" "build-emulated/bin/$test" --gtest_brief=1 --gtest_filter='-*DeathTest.*'
done
if [ "$(uname -m)" = aarch64 ] && ! grep -qw i8mm /proc/cpuinfo; then
  "$scripts/build.sh" release kernels_test
  FORERUN_KERNELS=i8mm qemu-aarch64 -cpu max build/bin/kernels_test --gtest_brief=1 \
    --gtest_filter='*/i8mm:Products.*:KernelsTest.*'
fi
echo "forerun: all tests passed under emulation"
