#!/usr/bin/env bash
# Checks types and format of the Python package and its tests with mypy and black. Where one of them is
# missing it says so and succeeds, unless --required is given, as `make test` does after it has provided them.
set -euo pipefail
cd "$(dirname "$0")/../src/client/python"

fail() {
  printf 'python: %s\n' "$*" >&2
  exit 1
}

required=
case ${1:-} in
  "") ;;
  --required) required=yes ;;
  *) fail "expected nothing or --required; received $1" ;;
esac

for tool in mypy black; do
  command -v "$tool" >/dev/null && continue
  [[ -z $required ]] || fail "$tool is missing: run scripts/setup-python.sh --for-tests"
  printf 'python: not checked, %s is missing (scripts/setup-python.sh --for-tests installs it)\n' "$tool" >&2
  exit 0
done

cache=../../../build/python/mypy
mkdir -p "$cache"
failed=
mypy --no-error-summary --cache-dir "$cache" >&2 || failed=yes
black --quiet --check --diff . >&2 || failed=yes
[[ -z $failed ]] || fail "types or format are wrong, see above (black src/client/python formats)"
