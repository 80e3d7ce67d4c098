#!/usr/bin/env bash
# build.sh PRESET TARGET...: configures a CMake preset when that is needed, and builds.
set -euo pipefail
shopt -s inherit_errexit

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly preset=$1
shift
cd "$scripts/.."

fail() {
  echo "forerun: $*" >&2
  exit 1
}

case $preset in
  release) folder=build ;;
  *) folder=build-$preset ;;
esac

llama=$("$scripts/setup.sh" llama)

if [ "$preset" = cuda ]; then
  # Where the CUDA toolkit puts itself, if its programs are not on the path.
  if ! command -v nvcc >/dev/null && [ -x /usr/local/cuda/bin/nvcc ]; then PATH=$PATH:/usr/local/cuda/bin; fi
  command -v nvcc >/dev/null || fail "the CUDA build needs NVIDIA's CUDA toolkit: install it and put nvcc on the PATH"
fi

# Ninja configures again by itself when a CMake file changes; only another source tree
# needs telling.
if [ ! -e "$folder/build.ninja" ] || ! grep -qxF "FORERUN_LLAMA_CPP:PATH=$llama" "$folder/CMakeCache.txt"; then
  echo "forerun: configuring $folder"
  log=$(mktemp)
  if ! cmake --preset "$preset" -DFORERUN_LLAMA_CPP="$llama" \
    ${CUDAARCHS:+-DCMAKE_CUDA_ARCHITECTURES="$CUDAARCHS"} >"$log" 2>&1; then
    rm -f "$folder/build.ninja"
    ! grep -q 'no GPU was detected' "$log" ||
      fail "no GPU to build for on this machine: name its architecture, e.g. 'CUDAARCHS=90 make CUDA=1' for an H200"
    sed -n '/^CMake Error/,$p' "$log" >&2
    rm -f "$log"
    fail "configuring failed for the reason above: if something is missing, install it and try again"
  fi
  rm -f "$log"
fi

cmake --build "$folder" --parallel "$("$scripts/setup.sh" jobs)" --target "$@" ||
  fail "the build failed: the first error above says why"
