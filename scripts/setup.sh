#!/usr/bin/env bash
# Makes a fresh checkout ready to build and run: checks Node, installs the packages that
# package-lock.json pins, and finds or provides a broker; with --for-tests also the etcd that only
# tests need. Prints nothing if nothing is missing.
# Outside the checkout it changes only the caches of npm and Go, and Debian's package lists.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/provide-broker.sh
. scripts/provide-broker.sh

readonly TOOLS=.tools
readonly LOCAL_BROKER=$TOOLS/bin/nats-server
readonly LOCAL_ETCD=$TOOLS/bin/etcd
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
install_packages() {
  cmp -s package-lock.json "$INSTALLED_LOCK" && return
  say "installing the packages of package-lock.json"
  npm ci --ignore-scripts --include=dev --no-audit --no-fund --loglevel=error >/dev/null </dev/null
  cp package-lock.json "$INSTALLED_LOCK"
}

# The broker of tests and of `pserver up`: one that is installed and good, else one in .tools/bin.
find_or_provide_broker() {
  if [[ -n ${PSERVER_NATS_SERVER:-} ]]; then
    case $(support_of "$PSERVER_NATS_SERVER") in
      recommended | supported) ;;
      warned) warn_about "$PSERVER_NATS_SERVER" ;;
      *) fail "PSERVER_NATS_SERVER=$PSERVER_NATS_SERVER: expected nats-server 2.9.4 or newer" ;;
    esac
    return
  fi
  # The places where src/broker/find-broker.ts looks, Debian's among them.
  local path_broker local_support path_support
  path_broker=$(PATH="$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin" command -v nats-server || true)
  local_support=$(support_of "$LOCAL_BROKER")
  path_support=$(support_of "${path_broker:-nats-server}")
  if is_good "$local_support"; then return; fi
  # The broker of an older set-up would be found before it.
  if is_good "$path_support"; then
    rm -f "$LOCAL_BROKER"
    return
  fi
  local old=
  if [[ $local_support == warned ]]; then
    old=$LOCAL_BROKER
  elif [[ $path_support == warned ]]; then
    old=$path_broker
  fi
  provide_broker "$TOOLS/bin" "$old"
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
find_or_provide_broker
if [[ -n $for_tests ]]; then provide_etcd; fi
