#!/usr/bin/env bash
# Provides in .tools/docs what scripts/make-docs.sh makes the reference with: TypeDoc with the TypeScript whose
# API it calls, and pdoc in a virtual environment that sees the system's numpy and PyTorch. Prints nothing if
# nothing is missing. Both come from the package indexes that npm and pip are configured for.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/debian-packages.sh
. scripts/debian-packages.sh
# shellcheck source=scripts/python-modules.sh
. scripts/python-modules.sh

readonly TOOLS=.tools/docs
readonly REQUESTED=(scripts/docs/package.json scripts/docs/package-lock.json scripts/docs/requirements.txt)

# Whether everything that the files request is installed.
is_installed() { cat "${REQUESTED[@]}" | cmp -s - "$TOOLS/installed"; }

scripts/setup-python.sh --for-tests
if is_installed; then exit; fi
mkdir -p .tools
exec {lock}>"$TOOLS.lock"
flock -w "$LOCK_SECONDS" "$lock" || say "another set-up has not finished after $LOCK_SECONDS s"
if is_installed; then exit; fi

say "installing TypeDoc and pdoc in $TOOLS"
rm -rf "$TOOLS"
mkdir "$TOOLS"
cp "${REQUESTED[@]}" "$TOOLS"
npm ci --prefix "$TOOLS" --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null </dev/null
python=$(scripts/find-python.sh "${BUILD_MODULES[@]}" "${TEST_MODULES[@]}")
"$python" -m venv --system-site-packages "$TOOLS/python"
if ! "$TOOLS/python/bin/python" -m pip install -q --only-binary=:all: --ignore-installed \
  -r "$TOOLS/requirements.txt" >"$TOOLS/log" 2>&1 </dev/null; then
  say "pdoc cannot be installed: $(grep -oE 'ERROR: .*' "$TOOLS/log" | tail -n 1)"
  exit 1
fi
cat "${REQUESTED[@]}" >"$TOOLS/installed"
