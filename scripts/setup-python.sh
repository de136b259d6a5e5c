#!/usr/bin/env bash
# Provides what the Python wheel is built with: CPython 3.9 or newer with venv, CMake, and strip; with
# --for-tests also what its tests and checks need (numpy, h5py, PyTorch, pytest, hypothesis, mypy, black).
# Prints nothing if nothing is missing. Missing packages are installed from Debian's archive, which needs
# root or sudo.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/debian-packages.sh
. scripts/debian-packages.sh
# shellcheck source=scripts/python-modules.sh
. scripts/python-modules.sh

has_python() { scripts/find-python.sh "$@" >/dev/null 2>&1; }
debian_has() { PSERVER_PYTHON=/usr/bin/python3 has_python "$@"; }

# Missing packages, one per line.
missing() {
  has_program cmake || echo cmake
  has_program strip || echo binutils
  has_python "${BUILD_MODULES[@]}" || echo python3-venv
  [[ -n $for_tests ]] || return 0
  has_program mypy || echo mypy
  has_program black || echo black
  has_python "${BUILD_MODULES[@]}" "${TEST_MODULES[@]}" && return
  local module
  for module in "${TEST_MODULES[@]}"; do
    debian_has "$module" || echo "python3-$module"
  done
}

for_tests=
case ${1:-} in
  "") ;;
  --for-tests) for_tests=yes ;;
  *)
    say "expected nothing or --for-tests; received $1"
    exit 1
    ;;
esac

provide_packages "the Python package cannot be built"
