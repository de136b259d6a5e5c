#!/usr/bin/env bash
# Provides Chromium for the end-to-end tests of the page. Prints nothing if it is there.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/debian-packages.sh
. scripts/debian-packages.sh

missing() {
  if ! has_program chromium; then printf '%s\n' chromium; fi
}

provide_packages "the tests of the page need a browser"
