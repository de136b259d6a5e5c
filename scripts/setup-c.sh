#!/usr/bin/env bash
# Provides what the C libraries and their examples are built with: compilers for C and C++, make,
# pkg-config, and the development packages of NATS's client, msgpack-c and curl; with --for-tests also
# what their tests need. Prints nothing if nothing is missing. Missing packages are installed from
# Debian's archive, which needs root or sudo.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/debian-packages.sh
. scripts/debian-packages.sh

has_library() { has_program pkg-config && pkg-config --exists "$1"; }

# Whether clang has its libraries for sanitizers and for fuzzing.
has_runtime() {
  has_program clang && compgen -G "$(clang -print-resource-dir)/lib/*/libclang_rt.fuzzer[-.]*" >/dev/null
}

# Missing packages, one per line.
missing() {
  has_program cc || printf 'gcc\nlibc6-dev\n'
  has_program c++ || echo g++
  has_program pkg-config || echo pkg-config
  has_library libnats || echo libnats-dev
  has_library msgpack-c || has_library msgpack || echo libmsgpack-dev
  has_library libcurl || echo libcurl4-openssl-dev
  [[ -n $for_tests ]] || return 0
  has_program nm || echo binutils
  has_program clang || echo clang
  has_runtime || echo libclang-rt-dev
  has_program openssl || echo openssl
  has_program valgrind || echo valgrind
  has_program cmake || echo cmake
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

provide_packages "the C libraries cannot be built"
