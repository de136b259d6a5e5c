#!/usr/bin/env bash
# Provides what the C libraries and their examples are built with: compilers for C and C++, make,
# pkg-config, and the development packages of NATS's client, msgpack-c and curl; with --for-tests also what their tests run with.
# Says nothing when all is there. What is missing comes from Debian's archive, and needs root or sudo.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*" >&2; }

has_program() { command -v "$1" >/dev/null; }
has_library() { has_program pkg-config && pkg-config --exists "$1"; }

# Packages that are missing, one a line.
missing() {
  has_program cc || printf 'gcc\nlibc6-dev\n'
  has_program c++ || echo g++
  has_program pkg-config || echo pkg-config
  has_library libnats || echo libnats-dev
  has_library msgpack-c || has_library msgpack || echo libmsgpack-dev
  has_library libcurl || echo libcurl4-openssl-dev
  [[ -n $for_tests ]] || return 0
  has_program nm || echo binutils
  has_program clang-14 || has_program clang || echo clang-14
  compgen -G '/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a' >/dev/null || echo libclang-rt-14-dev
  has_program valgrind || echo valgrind
  has_program cmake || echo cmake
}

as_root() {
  if ((EUID == 0)); then
    "$@"
  elif has_program sudo; then
    # A password is only asked for where somebody can type it.
    if [[ -t 0 ]]; then sudo "$@"; else sudo -n "$@"; fi
  else
    return 1
  fi
}

install_packages() {
  local options=(-y -q --no-install-recommends -o Dpkg::Use-Pty=0)
  DEBIAN_FRONTEND=noninteractive as_root apt-get install "${options[@]}" "$@"
}

for_tests=
case ${1:-} in
  "") ;;
  --for-tests) for_tests=yes ;;
  *)
    say "expected nothing or --for-tests; received $1"
    exit 1
    ;;
esac

mapfile -t packages < <(missing)
if ((${#packages[@]} == 0)); then exit 0; fi

by_hand="install these packages of Debian (as root: apt-get update && apt-get install ${packages[*]}), or what holds the same elsewhere"
if ! has_program apt-get; then
  say "the C libraries cannot be built: $by_hand"
  exit 1
fi
say "installing ${packages[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! install_packages "${packages[@]}" >"$log" 2>&1 </dev/null; then
  say "they cannot be had with the present package lists: running apt-get update"
  as_root apt-get update -q >>"$log" 2>&1 </dev/null || true
  if ! install_packages "${packages[@]}" >>"$log" 2>&1 </dev/null; then
    tail -n 5 "$log" >&2
    say "the C libraries cannot be built: $by_hand"
    exit 1
  fi
fi
mapfile -t packages < <(missing)
if ((${#packages[@]} > 0)); then
  say "still missing after the installation: ${packages[*]}"
  exit 1
fi
