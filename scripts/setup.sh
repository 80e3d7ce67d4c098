#!/usr/bin/env bash
# Brings what a build needs onto the machine, and nothing twice.
#
#   setup.sh packages build|test|page|emulated
#                                  Debian packages; installs those that are missing
#   setup.sh python [FILE]         prints the interpreter of the scripts' environment, or of one with FILE's packages
#   setup.sh llama                 prints the llama.cpp source tree to build against
#   setup.sh jobs                  prints how many compilers this machine can run at once
#
# What a step prints on standard output is its answer; progress and the one line that
# says what went wrong go to standard error.
set -euo pipefail
shopt -s inherit_errexit

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly cache=${XDG_CACHE_HOME:-$HOME/.cache}/forerun

# Libraries that are linked, for another architecture too.
readonly library_packages=(libboost1.81-dev libfmt-dev libedit-dev libcurl4-openssl-dev libssl-dev libnlopt-dev libgtest-dev libgmock-dev)
readonly build_packages=(g++ cmake ninja-build pkgconf libcli11-dev libeigen3-dev nlohmann-json3-dev "${library_packages[@]}")
# Of the tests with sanitizers, which clang compiles in half the time.
readonly test_packages=(clang clang-format libclang-rt-dev)
readonly page_packages=(chromium fonts-dejavu-core python3)
readonly llama_parts=3 # counts up when llama_sources.py unpacks more
readonly python_packages=(python3 python3-venv)

fail() {
  echo "forerun: $*" >&2
  exit 1
}

make_cache() {
  mkdir -p "$cache" 2>/dev/null || fail "cannot make the folder $cache: set XDG_CACHE_HOME to a folder you can write"
}

# Without Debian's package manager we can only look for the programs themselves.
require_programs() {
  local program
  for program in "$@"; do
    command -v "$program" >/dev/null ||
      fail "'$program' is missing and this is not Debian: install it and the libraries named in docs/downloads.md"
  done
}

missing_packages() {
  local package
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || echo "$package"
  done
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

install_packages() {
  local missing
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -gt 0 ] || return 0

  [ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null ||
    fail "these packages are missing: ask an administrator for 'apt-get install ${missing[*]}'"
  echo "forerun: installing ${missing[*]}" >&2
  local log
  log=$(mktemp)
  if ! { as_root apt-get -q update &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install "${missing[@]}"; } \
    >&2 2>"$log"; then
    local reason
    reason=$(grep -m1 '^E: ' "$log" || tail -n1 "$log")
    rm -f "$log"
    fail "cannot install the packages (${reason#E: }): check the network, then run 'apt-get install ${missing[*]}' as root"
  fi
  rm -f "$log"
}

# What building for the other architecture and running the result takes.
emulated_packages() {
  local architecture=arm64 triplet=aarch64-linux-gnu
  [ "$(dpkg --print-architecture)" = amd64 ] || { architecture=amd64 triplet=x86-64-linux-gnu; }
  echo "g++-$triplet" qemu-user "${library_packages[@]/%/:$architecture}"
  dpkg --print-foreign-architectures | grep -qx "$architecture" || as_root dpkg --add-architecture "$architecture"
}

setup_packages() {
  local wanted
  case ${1:-} in
    build) wanted=("${build_packages[@]}") ;;
    test) wanted=("${build_packages[@]}" "${test_packages[@]}") ;;
    page) wanted=("${page_packages[@]}") ;;
    emulated)
      command -v dpkg-query >/dev/null || fail "testing under emulation is made for Debian: this is another system"
      local packages
      packages=$(emulated_packages)
      read -ra wanted <<<"$packages"
      wanted+=("${build_packages[@]}")
      ;;
    *) fail "usage: setup.sh packages build|test|page|emulated" ;;
  esac
  if command -v dpkg-query >/dev/null; then
    install_packages "${wanted[@]}"
  else
    require_programs c++ cmake ninja pkg-config
    [ "$1" != test ] || require_programs clang++ clang-format
    [ "$1" != page ] || require_programs chromium
  fi
}

# The environment is named after the hash of its requirements, so a change of them
# makes a new one; the file `complete` is written last.
setup_python() {
  local requirements=${1:-$scripts/requirements.txt} hash environment
  hash=$(sha256sum "$requirements" | cut -c1-12)
  environment=$cache/python-$hash
  if [ ! -e "$environment/complete" ]; then
    make_cache
    ( # One set-up at a time; the lock goes with this subshell.
      flock 9
      [ -e "$environment/complete" ] || make_environment "$environment" "$requirements"
    ) 9>"$cache/python.lock"
  fi
  echo "$environment/bin/python"
}

make_environment() {
  local environment=$1 requirements=$2 python=/usr/bin/python3 log
  if command -v dpkg-query >/dev/null; then install_packages "${python_packages[@]}"; fi
  [ -x "$python" ] || python=$(command -v python3) || fail "'python3' is missing: install Python 3.11 or newer"
  "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' ||
    fail "the scripts need Python 3.11, 3.12 or 3.13, and $python is another: install one of them"
  echo "forerun: setting up Python packages (20 MB)" >&2
  log=$(mktemp)
  if ! { "$python" -m venv --clear "$environment" &&
    "$environment/bin/python" -m pip --disable-pip-version-check --no-cache-dir install --no-deps --only-binary :all: \
      --require-hashes --requirement "$requirements"; } >&2 2>"$log"; then
    local reason="check the network and pip's configuration ('pip config list'), then try again"
    grep -q 'DO NOT MATCH THE HASHES' "$log" && reason="a download is not the expected file (sha256 differs): try again"
    rm -f "$log"
    fail "cannot set up the Python packages: $reason"
  fi
  rm -f "$log"
  touch "$environment/complete"
}

setup_llama() {
  local tree=${FORERUN_LLAMA_CPP:-}
  if [ -n "$tree" ]; then
    [ -e "$tree/src/llama-vocab.cpp" ] ||
      fail "FORERUN_LLAMA_CPP=$tree is no llama.cpp source tree: give its top folder, or unset it to have one fetched"
    (cd "$tree" && pwd)
    return
  fi
  local version
  version=$(sed -n '/^\[llama_cpp\]/,/^\[/s/^version = "\(.*\)"/\1/p' "$scripts/downloads.toml")
  tree=$cache/llama.cpp-$version-$llama_parts
  if [ ! -e "$tree" ]; then
    local python
    python=$(setup_python)
    "$python" "$scripts/llama_sources.py" "$tree" >&2
  fi
  echo "$tree"
}

# One compiler per core, as long as each has about 1.5 GB of memory.
count_jobs() {
  local cores memory_kb jobs
  cores=$(nproc)
  memory_kb=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)
  jobs=$((memory_kb / 1500000))
  echo $((jobs < 1 ? 1 : jobs < cores ? jobs : cores))
}

case ${1:-} in
  packages) setup_packages "${2:-}" ;;
  python) setup_python "${2:-}" ;;
  llama) setup_llama ;;
  jobs) count_jobs ;;
  *) fail "usage: setup.sh packages build|test | python | llama | jobs" ;;
esac
