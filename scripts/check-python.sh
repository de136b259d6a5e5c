#!/usr/bin/env bash
# Checks types and format of the Python package, its tests and its benchmark, and the format of the examples
# and of the peers of the benchmark, with mypy and black. If one of them is missing it says so and succeeds,
# unless --required is given, as `make test` does after it has installed them.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/python-modules.sh
. scripts/python-modules.sh

readonly ROOT=$PWD
readonly CACHE=$ROOT/build/python/mypy

fail() {
  printf 'python: %s\n' "$*" >&2
  exit 1
}

# not_checked WHY: fails, or ends with success, as asked.
not_checked() {
  [[ -z $required ]] || fail "types and format cannot be checked: $1"
  printf 'python: types and format not checked: %s (scripts/setup-python.sh --for-tests installs all)\n' "$1" >&2
  exit 0
}

required=
case ${1:-} in
  "") ;;
  --required) required=yes ;;
  *) fail "expected nothing or --required; received $1" ;;
esac

for tool in mypy black; do
  command -v "$tool" >/dev/null || not_checked "$tool is missing"
done
# mypy reads the types of imported packages.
python=$(scripts/find-python.sh "${TEST_MODULES[@]}" 2>&1) || not_checked "${python#python: }"

cd src/client/python
failed=
mypy --no-error-summary --python-executable "$python" --cache-dir "$CACHE" . "$ROOT/bench/python" >&2 || failed=yes
black --quiet --config pyproject.toml --check --diff . "$ROOT/bench/python" "$ROOT/bench/peers" "$ROOT/examples/python" >&2 || failed=yes
[[ -z $failed ]] || fail "types or format are wrong, see above (black -l 100 with the files formats)"
