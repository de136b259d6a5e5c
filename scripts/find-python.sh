#!/usr/bin/env bash
# Prints the path of a CPython 3.9 or newer that has the given modules: PSERVER_PYTHON, else Debian's,
# else the first on the PATH. If there is none, says in one line what each of them lacks.
#
#   scripts/find-python.sh [MODULE…]
set -euo pipefail

# why_not PYTHON MODULE…: what is wrong with it; nothing if it can be used.
why_not() {
  local python=$1
  shift
  if ! command -v "$python" >/dev/null; then
    echo "is not there"
    return
  fi
  "$python" - "$@" 2>/dev/null <<'PYTHON' || echo "does not run"
import importlib.util as modules, platform, sys
if sys.implementation.name != "cpython" or sys.version_info < (3, 9):
    print(f"is {sys.implementation.name} {platform.python_version()}")
else:
    missing = [name for name in sys.argv[1:] if modules.find_spec(name) is None]
    if missing:
        print(f"has no {', '.join(missing)}")
PYTHON
}

if [[ -n ${PSERVER_PYTHON:-} ]]; then
  candidates=("$PSERVER_PYTHON")
else
  candidates=(/usr/bin/python3 python3)
fi
reasons=
for python in "${candidates[@]}"; do
  reason=$(why_not "$python" "$@")
  if [[ -z $reason ]]; then
    command -v "$python"
    exit
  fi
  reasons+="${reasons:+; }$python $reason"
done
wanted="CPython 3.9 or newer${*:+ with $*}"
printf 'python: expected %s; %s (PSERVER_PYTHON names another)\n' "$wanted" "$reasons" >&2
exit 1
