#!/usr/bin/env bash
# Provides nats-server: builds the version that is pinned here with Go, or else unpacks Debian's package.
# scripts/setup.sh sources it, and `pserver setup` runs it from the installed package. It changes nothing
# outside DIRECTORY and its parent, the caches of Go, and Debian's package lists.
#
#   scripts/provide-broker.sh DIRECTORY [--or-keep PROGRAM]
#
# PROGRAM is a broker that works but is old: it is used if Go cannot build the pinned one.

# shellcheck source=scripts/as-root.sh
. "$(dirname "${BASH_SOURCE[0]}")/as-root.sh"
# shellcheck source=scripts/broker-version.sh
. "$(dirname "${BASH_SOURCE[0]}")/broker-version.sh"

readonly PINNED_BROKER=2.12.15
readonly GO_TIMEOUT_SECONDS=600

say() { printf 'setup: %s\n' "$*" >&2; }
fail() {
  say "$*"
  exit 1
}

# support_of PROGRAM: as broker_support, or "none" if the program is missing or does not run.
support_of() {
  local version
  if command -v "$1" >/dev/null && version=$(broker_version "$1"); then
    broker_support "$version"
  else
    printf 'none\n'
  fi
}

is_good() { [[ $1 == recommended || $1 == supported ]]; }

# warn_about PROGRAM: what an old but usable broker lacks. A short form of the list by version in
# src/broker/broker-version.ts, which `pserver up` prints.
warn_about() {
  say "WARNING: $1 is nats-server $(broker_version "$1"); 2.12 is recommended, 2.10.28 and 2.11.2 are the oldest without these gaps."
  say "WARNING: it may lose acknowledged updates at a power loss and records above 32 MiB, purges disturb other consumers before 2.9.15, security fixes are missing; never run it as a cluster."
}

# build_broker DIRECTORY: builds the pinned broker with Go, without a C compiler. A failed attempt leaves
# a file next to DIRECTORY; while that exists, the same Go does not try again.
build_broker() {
  command -v go >/dev/null || return 1
  local go_version directory state failed
  go_version=$(go version) || return 1
  mkdir -p "$1"
  directory=$(cd "$1" && pwd)
  state=$(dirname "$directory")
  failed=$state/go-failed
  [[ -f $failed && $(<"$failed") == "$go_version $PINNED_BROKER" ]] && return 1
  say "building nats-server $PINNED_BROKER with Go"
  if GOBIN="$directory" CGO_ENABLED=0 GOFLAGS=-trimpath timeout "$GO_TIMEOUT_SECONDS" \
    go install "github.com/nats-io/nats-server/v2@v$PINNED_BROKER" >"$state/go-install.log" 2>&1 </dev/null; then
    rm -f "$failed"
    return 0
  fi
  printf '%s %s\n' "$go_version" "$PINNED_BROKER" >"$failed"
  say "Go could not build it (remove $failed to try again): $(tail -n 1 "$state/go-install.log")"
  return 1
}

# unpack_debian PACKAGE MEMBER TARGET: takes a program out of Debian's package. Installing the package
# would start it as a service of the system, on the port that we or others use.
unpack_debian() {
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return 1
  say "unpacking $1 of the Debian archive"
  local scratch
  scratch=$(mktemp -d)
  # apt reads packages as a user of its own.
  chmod 755 "$scratch"
  if ! (cd "$scratch" && apt-get download -q "$1") >/dev/null 2>&1; then
    say "it cannot be had with the present package lists: running apt-get update"
    as_root apt-get update -q >/dev/null 2>&1 ||
      say "that failed; as root run: apt-get update"
    (cd "$scratch" && apt-get download -q "$1") >/dev/null 2>&1 || true
  fi
  local package
  package=$(find "$scratch" -name '*.deb' -print -quit)
  if [[ -z $package ]] || ! dpkg-deb -x "$package" "$scratch/unpacked"; then
    rm -rf "$scratch"
    return 1
  fi
  mkdir -p "$(dirname "$3")"
  install -m 755 "$scratch/unpacked/$2" "$3"
  rm -rf "$scratch"
}

# provide_broker DIRECTORY [PROGRAM]: puts nats-server into DIRECTORY, or settles for PROGRAM, which is old.
provide_broker() {
  local program=$1/nats-server
  if build_broker "$1"; then return; fi
  if [[ -n ${2:-} ]]; then
    warn_about "$2"
  elif unpack_debian nats-server usr/sbin/nats-server "$program" && [[ $(support_of "$program") == warned ]]; then
    warn_about "$program"
  elif ! is_good "$(support_of "$program")"; then
    fail "no broker: install Go 1.21 or newer (https://go.dev/dl) and run this again, or put nats-server 2.12 (https://github.com/nats-io/nats-server/releases) on the PATH, or set PSERVER_NATS_SERVER to one"
  fi
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  set -euo pipefail
  kept=
  if [[ $# == 3 && $2 == --or-keep ]]; then
    kept=$3
  elif [[ $# != 1 ]]; then
    fail "expected DIRECTORY [--or-keep PROGRAM]; received $*"
  fi
  # Called by hand: try again what failed before.
  rm -f "$(dirname "$1")/go-failed"
  provide_broker "$1" "$kept"
fi
