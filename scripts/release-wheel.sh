#!/usr/bin/env bash
# Builds the wheel that is published, in build/release/, and prints its path. It is built in a bare root of the
# oldest Debian that still gets security fixes, so that it runs on most systems, with the newest packages of that
# release. Ends with an error if Debian gives no more fixes for one of the libraries that the wheel carries.
# Needs what scripts/try-bare.sh needs.
#
#   scripts/release-wheel.sh
#   scripts/release-wheel.sh --check-age [YYYY-MM-DD]    only checks that the release gets fixes on that day, today by default
set -euo pipefail
cd "$(dirname "$0")/.."

# When Debian's long-term support of the release ends: https://wiki.debian.org/LTS.
readonly RELEASE=bookworm SUPPORTED_UNTIL=2028-06-30
readonly ROOT=.tools/bare/release BUILT=build/release

fail() {
  printf 'release-wheel: %s\n' "$*" >&2
  exit 1
}

# check_age DAY: days compare as text.
check_age() {
  [[ ! $1 > $SUPPORTED_UNTIL ]] ||
    fail "wheels are built on Debian $RELEASE, which gets security fixes until $SUPPORTED_UNTIL; it is $1: name a newer release in scripts/release-wheel.sh"
}

case ${1:-} in
  "") ;;
  --check-age)
    check_age "${2:-$(date -u +%F)}"
    exit
    ;;
  *) fail "expected nothing or --check-age; received $1" ;;
esac

check_age "$(date -u +%F)"
# The checkout is built anew, so that no package of an earlier run is left in it.
scripts/try-bare.sh --root "$ROOT" "$RELEASE" \
  "apt-get update -q >/dev/null" \
  "DEBIAN_FRONTEND=noninteractive apt-get upgrade -y -q >/dev/null" \
  "DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends debian-security-support >/dev/null" \
  "rm -rf build && PSERVER_RELEASE=yes make wheel >&2"
mkdir -p "$BUILT"
rm -f "$BUILT"/*.whl
cp "$ROOT"/srv/checkout/build/wheel/*.whl "$BUILT/"
printf '%s\n' "$BUILT"/*.whl
