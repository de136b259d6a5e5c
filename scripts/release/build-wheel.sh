#!/usr/bin/env bash
# Builds the wheel that is published for an architecture, on any machine with Debian's packages: libpserver and the
# libraries that it needs, linked into one file by Zig's compiler for the glibc named in carried-libraries.json, so
# that the wheel runs on every Linux with that glibc or a newer one. OpenSSL and msgpack-c are Debian's, as it
# compiled them; NATS's C client is compiled from its sources. Ends with an error if one of them lacks fixes.
#
#   scripts/release/build-wheel.sh ARCHITECTURE ZIG DIRECTORY
#       for x86_64 or aarch64, with the environment ZIG that has the package ziglang, into DIRECTORY; times in it are
#       SOURCE_DATE_EPOCH
#   scripts/release/build-wheel.sh --check-age [YYYY-MM-DD]
#       only checks that Debian fixes what wheels carry on that day, today by default
#
# PSERVER_GITHUB names another place than https://github.com to fetch sources from.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/debian-archive.sh
. scripts/debian-archive.sh
# shellcheck source=scripts/release/failures.sh
. scripts/release/failures.sh

readonly CARRIED=scripts/release/carried-libraries.json

# pinned EXPRESSION: a value of carried-libraries.json, where `of` finds a library by its name.
pinned() {
  node -p "const carried = require('./$CARRIED');
    const of = (name) => carried.libraries.find((each) => each.name === name); $1"
}

release=$(pinned carried.debian.release)

# check_age DAY: days compare as text.
check_age() {
  local until
  until=$(pinned carried.debian.supportedUntil)
  [[ ! $1 > $until ]] ||
    fail "wheels carry libraries of Debian $release, which gets security fixes until $until; it is $1: name a newer release in $CARRIED"
}

# Debian's newest packages of the libraries, none of which may be without security support.
unpack_debian() {
  local name package version newest lists packages=(debian-security-support)
  use_debian "$debian" "$work/debian" "$release" "$release-updates" "$release-security" ||
    fail "the packages of Debian $release for $debian cannot be had"
  for name in openssl msgpack-c; do
    package=$(pinned "of('$name').debian")
    version=$(pinned "of('$name').version")
    newest=$(apt-cache policy "$package" | awk '/^  Candidate:/ { print $2 }')
    [[ $newest == "$version" ]] ||
      fail "$package: expected $version; Debian $release has $newest: name that in $CARRIED"
    packages+=("$package=$version")
  done
  mkdir -p "$work/packages"
  (cd "$work/packages" && logged "packages of Debian cannot be fetched" apt-get download -q "${packages[@]}")
  unpack_packages "$root" "$work"/packages/*.deb
  lists=$root/usr/share/debian-security-support/security-support
  for name in openssl msgpack-c; do
    if awk -v name="$name" '$1 == name { found = 1 } END { exit !found }' \
      "$lists-limited" "$lists-ended.deb$(pinned carried.debian.number)"; then
      fail "Debian's security support of $name is limited or ends early"
    fi
  done
  for name in openssl msgpack-c; do
    install -m 644 -D "$root/usr/share/doc/$(pinned "of('$name').debian")/copyright" "$work/notices/licenses/carried/$name"
  done
}

# program NAME ARGUMENT…: makes $work/NAME, which runs Zig with these arguments.
program() {
  local name=$1
  shift
  printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$zig" "$*" >"$work/$name"
  chmod 755 "$work/$name"
}

# Zig brings stubs of each glibc. Absolute paths do not get into what is compiled.
provide_compiler() {
  local found
  found=$("$tools/bin/python" -c 'import ziglang; print(ziglang.__path__[0])')
  zig=$found/zig
  export ZIG_GLOBAL_CACHE_DIR=$tools/cache ZIG_LOCAL_CACHE_DIR=$tools/cache
  program cc cc -target "$architecture-linux-gnu.$(pinned carried.glibc)" "-ffile-prefix-map=$PWD=."
  program ar ar
  program ranlib ranlib
  mkdir -p "$work/notices/licenses/carried"
  # The compiler adds parts of its own runtime library, and glibc's that are always linked statically.
  cat "$tools"/lib/python3*/site-packages/ziglang-*.dist-info/licenses/ziglang/{LICENSE,lib/libc/glibc/LICENSES} \
    >"$work/notices/licenses/carried/ziglang"
}

# NATS's C client, as a static library. A newer patch of the same version has fixes.
compile_nats() {
  local from version commit newest source=$work/nats.c
  from=${PSERVER_GITHUB:-https://github.com}/$(pinned "of('nats.c').github")
  version=$(pinned "of('nats.c').version")
  commit=$(pinned "of('nats.c').commit")
  git init -q "$source"
  logged "NATS's C client cannot be fetched from $from" \
    git -C "$source" fetch -q --depth 1 "$from" "refs/tags/v$version"
  [[ $(git -C "$source" rev-parse 'FETCH_HEAD^{commit}') == "$commit" ]] ||
    fail "nats.c $version: expected commit $commit; received $(git -C "$source" rev-parse 'FETCH_HEAD^{commit}')"
  newest=$(git ls-remote --tags "$from" "refs/tags/v${version%.*}.*" | sed -n 's|.*refs/tags/v\([0-9.]*\)$|\1|p' | sort -V | tail -n 1)
  [[ $newest == "$version" ]] || fail "nats.c: expected $version; there is $newest: name that in $CARRIED"
  git -C "$source" -c advice.detachedHead=false checkout -q FETCH_HEAD
  install -m 644 "$source/LICENSE" "$work/notices/licenses/carried/nats.c"
  # Only objects are compiled: nothing is linked to try the compilers.
  logged "NATS's C client cannot be compiled" cmake -S "$source" -B "$work/nats" -G "Unix Makefiles" \
    -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$architecture" -DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY \
    -DCMAKE_C_COMPILER="$work/cc" -DCMAKE_CXX_COMPILER="$work/cc" -DCMAKE_AR="$work/ar" -DCMAKE_RANLIB="$work/ranlib" \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_C_FLAGS="-I$libraries_include" \
    -DOPENSSL_INCLUDE_DIR="$root/usr/include" -DOPENSSL_SSL_LIBRARY="$libraries/libssl.a" \
    -DOPENSSL_CRYPTO_LIBRARY="$libraries/libcrypto.a" -DNATS_BUILD_TLS_FORCE_HOST_VERIFY=ON \
    -DNATS_BUILD_STREAMING=OFF -DNATS_BUILD_EXAMPLES=OFF -DBUILD_TESTING=OFF
  logged "NATS's C client cannot be compiled" cmake --build "$work/nats" --target nats_static -j "$(nproc)"
  mkdir -p "$root/usr/include/nats"
  cp "$source"/src/{nats,status,version}.h "$root/usr/include/nats/"
}

# Everything in one file that exports only our own functions.
link_library() {
  logged "libpserver cannot be linked" make -s -j "$(nproc)" -C src/client/c BUILD="$work/build" CC="$work/cc" \
    PKG_CONFIG=true CPPFLAGS="-I$root/usr/include -I$libraries_include" CFLAGS=-O3 LDFLAGS=-s \
    LIBS="$work/nats/lib/libnats_static.a $libraries/libssl.a $libraries/libcrypto.a -ldl -lm -pthread" \
    "$work/build/lib/libpserver.so"
}

if [[ ${1:-} == --check-age ]]; then
  check_age "${2:-$(date -u +%F)}"
  exit
fi
(($# == 3)) || fail "expected ARCHITECTURE ZIG DIRECTORY, or --check-age; received $*"
architecture=$1 tools=$(realpath "$2") directory=$3
case $architecture in
  x86_64) debian=amd64 ;;
  aarch64) debian=arm64 ;;
  *) fail "expected x86_64 or aarch64; received $architecture" ;;
esac
check_age "$(date -u +%F)"
[[ -n ${SOURCE_DATE_EPOCH:-} ]] || fail "expected the time of the commit in SOURCE_DATE_EPOCH"
work=$PWD/build/release-wheel/$architecture
root=$work/root libraries=$work/root/usr/lib/$architecture-linux-gnu
libraries_include=$work/root/usr/include/$architecture-linux-gnu
rm -rf "$work"
mkdir -p "$work"
unpack_debian
provide_compiler
compile_nats
link_library
mkdir -p "$work/notices/sboms"
node scripts/release/write-sbom.mjs wheel "$architecture" >"$work/notices/sboms/nats-pserver.cdx.json"
unset APT_CONFIG
scripts/make-wheel.sh "$work/build/lib/libpserver.so" "$work/notices" \
  "manylinux_$(pinned 'carried.glibc.replace(".", "_")')_$architecture" "$directory"
