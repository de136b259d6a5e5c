#!/usr/bin/env bash
# Provides what the Python wheel is built with: CPython 3.9 or newer with venv, CMake, and strip; with
# --for-tests also what its tests need (numpy, h5py, PyTorch, pytest, hypothesis) and, in .tools, the mypy and
# black of the checks. Prints nothing if nothing is missing. Missing packages are installed from Debian's
# archive, which needs root or sudo; mypy and black come from the package index.
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
  has_python "${BUILD_MODULES[@]}" "${TEST_MODULES[@]}" && return
  local module
  for module in "${TEST_MODULES[@]}"; do
    debian_has "$module" || echo "python3-$module"
  done
}

# provide_checks: makes the environment of the checks. Set-ups that run at once take turns.
provide_checks() {
  if has_checks; then return; fi
  mkdir -p "$(dirname "$CHECKS")"
  exec {lock}>"$CHECKS.lock"
  flock -w "$LOCK_SECONDS" "$lock" || say "another set-up has not finished after $LOCK_SECONDS s"
  if has_checks; then return; fi
  say "installing mypy and black in $CHECKS"
  local python
  python=$(scripts/find-python.sh "${BUILD_MODULES[@]}")
  rm -rf "$CHECKS"
  "$python" -m venv "$CHECKS"
  if ! "$CHECKS/bin/python" -m pip install -q --only-binary=:all: -r "$CHECK_REQUIREMENTS" >"$CHECKS/log" 2>&1 </dev/null; then
    say "the Python files cannot be checked: $(grep -oE 'ERROR: .*' "$CHECKS/log" | tail -n 1)"
    exit 1
  fi
  cp "$CHECK_REQUIREMENTS" "$CHECKS/installed.txt"
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
if [[ -n $for_tests ]]; then provide_checks; fi
