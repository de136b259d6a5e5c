#!/usr/bin/env bash
# Checks types and format of the Python package, its tests and its benchmark, and the format of the examples
# and of the peers of the benchmark, with the mypy and black that set-up has installed in .tools. If they are
# missing it says so and succeeds, unless --required is given, as `make test` does after it has installed them.
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

has_checks || not_checked "mypy and black of $CHECK_REQUIREMENTS are missing"
# mypy reads the types of imported packages.
python=$(scripts/find-python.sh "${TEST_MODULES[@]}" 2>&1) || not_checked "${python#python: }"

cd src/client/python
failed=
"$ROOT/$CHECKS/bin/mypy" --no-error-summary --python-executable "$python" --cache-dir "$CACHE" . "$ROOT/bench/python" >&2 || failed=yes
"$ROOT/$CHECKS/bin/black" --quiet --config pyproject.toml --check --diff \
  . "$ROOT/bench/python" "$ROOT/bench/peers" \
  "$ROOT/examples/python" "$ROOT/examples/diloco" "$ROOT/examples/flower" >&2 || failed=yes
[[ -z $failed ]] || fail "types or format are wrong, see above ($CHECKS/bin/black -l 100 with the files formats)"
