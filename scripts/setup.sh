#!/usr/bin/env bash
# Makes a fresh checkout ready to build and run: checks Node, installs the packages that
# package-lock.json pins, and finds or provides a broker; with --for-tests also the etcd,
# the promtool and the oldest broker that only tests need. Prints nothing if nothing is missing.
# Outside the checkout it changes only the caches of npm, Go and pip, and Debian's packages.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/provide-broker.sh
. scripts/provide-broker.sh

readonly TOOLS=.tools
readonly LOCAL_ETCD=$TOOLS/bin/etcd
readonly LOCAL_PROMTOOL=$TOOLS/bin/promtool
readonly OLDEST_BROKER=2.11.2
readonly INSTALLED_LOCK=node_modules/.installed-lock.json

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

# Installs if the content of the lock file differs from that of the last installation: the times
# of files mean nothing after a checkout. Packages run none of their own code.
install_node_packages() {
  cmp -s package-lock.json "$INSTALLED_LOCK" && return
  say "installing the packages of package-lock.json"
  npm ci --ignore-scripts --include=dev --no-audit --no-fund --loglevel=error >/dev/null </dev/null
  cp package-lock.json "$INSTALLED_LOCK"
}

# The broker of tests and of `pserver up`: one that is installed and good, else one in .tools/bin.
find_or_provide_broker() {
  local named=${PSERVER_NATS_SERVER:-}
  if [[ -n $named ]]; then
    is_good "$named" && return
    fail "PSERVER_NATS_SERVER=$named: expected nats-server $OLDEST_BROKER or newer; received $(broker_version "$named" || echo none)"
  fi
  # The places where src/broker/find-broker.ts looks, Debian's among them.
  local directory directories
  IFS=: read -ra directories <<<"$TOOLS/bin:$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"
  for directory in "${directories[@]}"; do
    if is_good "$directory/nats-server"; then return; fi
  done
  provide_broker "$TOOLS/bin"
}

# unpack_debian PACKAGE MEMBER TARGET: takes a program out of Debian's package. Installing the package
# would start it as a service of the system, on the port that others use.
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

# The oldest broker that may be used; the end-to-end tests run some files with it, too.
provide_oldest_broker() {
  local directory=$TOOLS/oldest-broker
  [[ $(broker_version "$directory/nats-server") == "$OLDEST_BROKER" ]] && return
  build_with_any_go "$OLDEST_BROKER" "$directory" ||
    fail "no nats-server $OLDEST_BROKER for the tests: put it into $PWD/$directory"
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

# promtool checks the alert rules and what /metrics answers; where there is none, the tests leave that out.
provide_promtool() {
  if [[ -x $LOCAL_PROMTOOL ]] || command -v promtool >/dev/null; then return; fi
  unpack_debian prometheus usr/bin/promtool "$LOCAL_PROMTOOL" ||
    say "no promtool for the end-to-end tests (Debian: prometheus): alert rules are checked without it"
}

for_tests=
case ${1:-} in
  "") ;;
  --for-tests) for_tests=yes ;;
  *) fail "expected nothing or --for-tests; received $1" ;;
esac

check_node
install_node_packages
find_or_provide_broker
if [[ -n $for_tests ]]; then
  provide_etcd
  provide_promtool
  provide_oldest_broker
fi
