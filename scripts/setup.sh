#!/usr/bin/env bash
# Makes a fresh checkout ready to build and run: checks Node, installs the packages that
# package-lock.json pins, and finds or provides a broker; with --for-tests also the etcd that only
# tests need. Says nothing when all is there.
# Outside the checkout it changes only the caches of npm and Go, and Debian's package lists.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/broker-version.sh
. scripts/broker-version.sh

readonly PINNED_BROKER=2.12.15
readonly TOOLS=.tools
readonly LOCAL_BROKER=$TOOLS/bin/nats-server
readonly LOCAL_ETCD=$TOOLS/bin/etcd
readonly INSTALLED_LOCK=node_modules/.installed-lock.json
readonly GO_TIMEOUT_SECONDS=600

say() { printf 'setup: %s\n' "$*" >&2; }
fail() {
  say "$*"
  exit 1
}

check_node() {
  command -v node >/dev/null || fail "Node.js is missing: install Node.js 20.19 or newer (https://nodejs.org)"
  command -v npm >/dev/null || fail "npm is missing: install the npm that belongs to $(node --version)"
  local version major minor
  version=$(node --version)
  IFS=. read -r major minor _ <<<"${version#v}"
  if ((major < 20 || (major == 20 && minor < 19))); then
    fail "expected Node.js 20.19 or newer; received $version (https://nodejs.org)"
  fi
}

# Installs when the lock file differs from the one that was installed last, by content: the
# times of files say nothing after a checkout. Packages run no code of theirs on the way.
install_packages() {
  cmp -s package-lock.json "$INSTALLED_LOCK" && return
  say "installing the packages of package-lock.json"
  npm ci --ignore-scripts --include=dev --no-audit --no-fund --loglevel=error >/dev/null </dev/null
  cp package-lock.json "$INSTALLED_LOCK"
}

# standing_of PROGRAM: as broker_standing, or "none" if it is not there or does not run.
standing_of() {
  local version
  if command -v "$1" >/dev/null && version=$(broker_version "$1"); then
    broker_standing "$version"
  else
    printf 'none\n'
  fi
}

is_good() { [[ $1 == recommended || $1 == supported ]]; }

# Builds the pinned broker with Go, without a C compiler. An attempt that failed is not repeated
# with the same Go.
build_broker() {
  command -v go >/dev/null || return 1
  local go_version failed=$TOOLS/go-failed
  go_version=$(go version) || return 1
  [[ -f $failed && $(<"$failed") == "$go_version $PINNED_BROKER" ]] && return 1
  say "building nats-server $PINNED_BROKER with Go"
  mkdir -p "$TOOLS/bin"
  if GOBIN="$PWD/$TOOLS/bin" CGO_ENABLED=0 GOFLAGS=-trimpath timeout "$GO_TIMEOUT_SECONDS" \
    go install "github.com/nats-io/nats-server/v2@v$PINNED_BROKER" >"$TOOLS/go-install.log" 2>&1 </dev/null; then
    rm -f "$failed"
    return 0
  fi
  printf '%s %s\n' "$go_version" "$PINNED_BROKER" >"$failed"
  say "Go could not build it (remove $failed to try again): $(tail -n 1 "$TOOLS/go-install.log")"
  return 1
}

as_root() {
  if ((EUID == 0)); then
    "$@"
  elif command -v sudo >/dev/null; then
    # A password is only asked for where somebody can type it.
    if [[ -t 0 ]]; then sudo "$@"; else sudo -n "$@"; fi
  else
    return 1
  fi
}

# unpack_debian PACKAGE MEMBER TARGET: takes a program out of Debian's package. It is not installed:
# that would start it as a service of the system, on the port that we or others use.
unpack_debian() {
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return 1
  say "unpacking $1 of the Debian archive"
  local scratch
  scratch=$(mktemp -d)
  # apt reads packages as a user of its own.
  chmod 755 "$scratch"
  if ! (cd "$scratch" && apt-get download -q "$1") >/dev/null 2>&1; then
    as_root apt-get update -q >/dev/null 2>&1 </dev/null || true
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

# warn_about PROGRAM: what a broker that is old but usable lacks. The list by version is that of
# src/broker/broker-version.ts, which `pserver up` prints; here it is in short.
warn_about() {
  say "WARNING: $1 is nats-server $(broker_version "$1"); 2.12 is recommended, 2.10.28 and 2.11.2 are the oldest without these gaps."
  say "WARNING: it may lose acknowledged updates at a power loss and records above 32 MiB, purges disturb other consumers before 2.9.15, security fixes are missing; never run it as a cluster."
}

provide_broker() {
  if [[ -n ${PSERVER_NATS_SERVER:-} ]]; then
    case $(standing_of "$PSERVER_NATS_SERVER") in
      recommended | supported) ;;
      warned) warn_about "$PSERVER_NATS_SERVER" ;;
      *) fail "PSERVER_NATS_SERVER=$PSERVER_NATS_SERVER: expected nats-server 2.9.4 or newer" ;;
    esac
    return
  fi
  # The places where src/broker/find-broker.ts looks, Debian's among them.
  local path_broker local_standing path_standing
  path_broker=$(PATH="$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin" command -v nats-server || true)
  local_standing=$(standing_of "$LOCAL_BROKER")
  path_standing=$(standing_of "${path_broker:-nats-server}")
  if is_good "$local_standing"; then return; fi
  # A local one of an older set-up would be found before it.
  if is_good "$path_standing"; then
    rm -f "$LOCAL_BROKER"
    return
  fi
  if build_broker; then return; fi
  if [[ $local_standing == warned ]]; then
    warn_about "$LOCAL_BROKER"
  elif [[ $path_standing == warned ]]; then
    warn_about "$path_broker"
  elif unpack_debian nats-server usr/sbin/nats-server "$LOCAL_BROKER" && [[ $(standing_of "$LOCAL_BROKER") == warned ]]; then
    warn_about "$LOCAL_BROKER"
  elif ! is_good "$(standing_of "$LOCAL_BROKER")"; then
    fail "no broker: install Go 1.21 or newer, or nats-server 2.12 (https://nats.io), or set PSERVER_NATS_SERVER to one"
  fi
}

# is_etcd PROGRAM: whether it is etcd 3.4 or newer.
is_etcd() {
  local line major minor
  line=$("$1" --version 2>/dev/null) || return 1
  [[ $line =~ ^etcd\ Version:\ ([0-9]+)\.([0-9]+) ]] || return 1
  major=${BASH_REMATCH[1]} minor=${BASH_REMATCH[2]}
  ((major > 3 || (major == 3 && minor >= 4)))
}

# The places where test/support/etcd.ts looks, in its order.
provide_etcd() {
  local found
  for found in "$LOCAL_ETCD" "$(command -v etcd || true)" /usr/bin/etcd /usr/local/bin/etcd; do
    if [[ -x $found ]]; then
      is_etcd "$found" && return
      fail "expected etcd 3.4 or newer for the tests; $found is none: put a newer one at $PWD/$LOCAL_ETCD"
    fi
  done
  unpack_debian etcd-server usr/bin/etcd "$LOCAL_ETCD" && is_etcd "$LOCAL_ETCD" && return
  rm -f "$LOCAL_ETCD"
  fail "no etcd for the end-to-end tests: put etcd 3.4 or newer on the PATH (Debian: etcd-server), or at $PWD/$LOCAL_ETCD"
}

for_tests=
case ${1:-} in
  "") ;;
  --for-tests) for_tests=yes ;;
  *) fail "expected nothing or --for-tests; received $1" ;;
esac

check_node
install_packages
provide_broker
if [[ -n $for_tests ]]; then provide_etcd; fi
