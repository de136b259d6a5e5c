#!/usr/bin/env bash
# Provides what the comparison with other systems runs on: Redis, and a virtual environment with Ray in
# .tools/peers that sees the modules of the system, PyTorch and TensorFlow among them if they are installed.
# Prints nothing if nothing is missing. What cannot be had is said and left out.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/debian-packages.sh
. scripts/debian-packages.sh
# shellcheck source=scripts/python-modules.sh
. scripts/python-modules.sh

readonly ENVIRONMENT=.tools/peers

# Missing packages, one per line. redis-tools holds the server without starting it as a service.
missing() {
  has_program redis-server || has_program redis-check-rdb || echo redis-tools
  scripts/find-python.sh "${BUILD_MODULES[@]}" >/dev/null 2>&1 || echo python3-venv
}

provide_packages "Redis is left out" || true
[[ -n ${PEERS_PYTHON:-} || -f $ENVIRONMENT/stamp ]] && exit
python=$(scripts/find-python.sh "${BUILD_MODULES[@]}") || exit 0
say "installing Ray in $ENVIRONMENT"
rm -rf "$ENVIRONMENT"
"$python" -m venv --system-site-packages "$ENVIRONMENT"
if "$ENVIRONMENT/bin/python" -m pip install -q --only-binary=:all: numpy redis ray >"$ENVIRONMENT/log" 2>&1; then
  touch "$ENVIRONMENT/stamp"
else
  say "Ray is left out: $(grep -oE 'ERROR: .*' "$ENVIRONMENT/log" | tail -n 1)"
fi
