#!/usr/bin/env bash
# Provides Slurm for the end-to-end tests, with munge for its authentication. Debian's packages are unpacked
# into .tools/slurm: installing them would start their services. Prints nothing if nothing is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/as-root.sh
. scripts/as-root.sh

readonly TARGET=.tools/slurm
readonly PACKAGES=(slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge libmunge2)

say() { printf 'setup: %s\n' "$*" >&2; }

# download DIRECTORY: fetches the packages, even if installed, and their dependencies that this machine lacks.
download() {
  mkdir -p "$1/partial"
  apt-get install -y -q --download-only --reinstall --no-install-recommends -o Debug::NoLocking=1 \
    -o Dir::Cache::archives="$1" "${PACKAGES[@]}" >"$1/log" 2>&1 </dev/null
}

if [[ -x $TARGET/usr/sbin/slurmctld && -x $TARGET/usr/sbin/munged ]]; then exit 0; fi

by_hand="the tests of batch jobs need Debian's packages ${PACKAGES[*]}"
if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
  say "$by_hand, unpacked into $PWD/$TARGET"
  exit 1
fi
say "unpacking ${PACKAGES[*]} of the Debian archive"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch" "$TARGET.new"' EXIT
# apt reads and writes packages as a user of its own.
chmod 755 "$scratch"
if ! download "$scratch"; then
  say "they cannot be had with the present package lists: running apt-get update"
  as_root apt-get update -q >/dev/null 2>&1 || say "that failed; as root run: apt-get update"
  if ! download "$scratch"; then
    tail -n 5 "$scratch/log" >&2
    say "$by_hand"
    exit 1
  fi
fi
rm -rf "$TARGET.new"
mkdir -p "$TARGET.new"
for package in "$scratch"/*.deb; do dpkg-deb -x "$package" "$TARGET.new"; done
# The names that installing them would give the daemons: Slurm tells by its own name which of them it is.
for daemon in slurmctld slurmd slurmstepd; do ln -s "$daemon-wlm" "$TARGET.new/usr/sbin/$daemon"; done
rm -rf "$TARGET"
mv "$TARGET.new" "$TARGET"
