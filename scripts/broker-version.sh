#!/usr/bin/env bash
# Rates a version of nats-server: prints recommended, supported or too-old. The rules are those of
# src/protocol/broker-version.ts, for set-up, which runs before anything is compiled;
# test/e2e/broker.test.ts compares the two.
#
#   scripts/broker-version.sh 2.12.15      (or sourced, for broker_support and broker_version)

# broker_version PROGRAM: the version that the program reports, such as 2.12.15; fails if there is none.
broker_version() {
  local output
  output=$("$1" --version 2>/dev/null) || return 1
  [[ $output =~ v([0-9]+\.[0-9]+\.[0-9]+[^[:space:]]*) ]] || return 1
  printf '%s\n' "${BASH_REMATCH[1]}"
}

# broker_support VERSION
broker_support() {
  if ! [[ $1 =~ ^v?([0-9]+)\.([0-9]+)\.([0-9]+)([-+].*)?$ ]]; then
    printf 'too-old\n'
    return
  fi
  # Forced to base 10: a leading zero would read as octal.
  local major=$((10#${BASH_REMATCH[1]})) minor=$((10#${BASH_REMATCH[2]})) patch=$((10#${BASH_REMATCH[3]}))
  local number=$((major * 1000000 + minor * 1000 + patch))
  if ((number < 2011002)); then
    printf 'too-old\n'
  elif ((major == 2 && minor == 12)); then
    printf 'recommended\n'
  else
    printf 'supported\n'
  fi
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  set -euo pipefail
  for version in "$@"; do
    broker_support "$version"
  done
fi
