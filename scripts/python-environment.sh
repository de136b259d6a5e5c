#!/usr/bin/env bash
# Provides a virtual environment with the wheel of `make wheel`, for tests, and prints the path of its
# Python. It is made again when the wheel has changed. Several processes may run this at once.
#
#   scripts/python-environment.sh empty    the wheel, its dependencies, and what the tests run with, all
#                                          from the package index; installed without a compiler on the PATH
#   scripts/python-environment.sh system   the wheel alone, besides the modules of the system: its numpy,
#                                          h5py, PyTorch, pytest and hypothesis
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/python-modules.sh
. scripts/python-modules.sh

readonly TEST_REQUIREMENTS=src/client/python/tests/requirements.txt

fail() {
  printf 'python: %s\n' "$*" >&2
  exit 1
}

# install ARGUMENT…: pip install, of wheels only and without a compiler on the PATH.
install() {
  PATH="$environment/bin" "$environment/bin/python" -m pip install -q --only-binary=:all: "$@" \
    >"$environment/log" 2>&1 </dev/null && return
  fail "pip install $* failed: $(grep -oE 'ERROR: .*' "$environment/log" | tail -n 1)"
}

name=${1:-}
case $name in
  empty) modules=("${BUILD_MODULES[@]}") ;;
  system) modules=("${BUILD_MODULES[@]}" "${TEST_MODULES[@]}") ;;
  *) fail "expected empty or system; received ${name:-nothing}" ;;
esac
wheels=(build/wheel/*.whl)
if [[ ! -f ${wheels[0]} || ${#wheels[@]} != 1 ]]; then fail "expected one wheel in build/wheel: run make wheel"; fi
wheel=$PWD/${wheels[0]}
environment=$PWD/build/python/$name

mkdir -p build/python
exec {lock}>"$environment.lock"
flock -w 600 "$lock" || fail "another process has held $environment.lock for 600 s"

python=$(scripts/find-python.sh "${modules[@]}") || exit 1
stamp="$python $(sha256sum "$wheel" "$TEST_REQUIREMENTS")"
if [[ ! -f $environment/stamp || $(<"$environment/stamp") != "$stamp" ]]; then
  rm -rf "$environment"
  if [[ $name == empty ]]; then
    "$python" -m venv "$environment"
    install "$wheel" -r "$TEST_REQUIREMENTS"
  else
    "$python" -m venv --system-site-packages "$environment"
    install --no-deps "$wheel"
  fi
  printf '%s\n' "$stamp" >"$environment/stamp"
fi
printf '%s\n' "$environment/bin/python"
