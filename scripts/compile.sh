#!/usr/bin/env bash
# Compiles into a directory that then holds nothing else; the directory is replaced only if the
# compilation succeeds.
#
#   scripts/compile.sh package dist
#   scripts/compile.sh programs build/programs
set -euo pipefail
cd "$(dirname "$0")/.."
what=$1
directory=$2

# Next to the target, so that the relative paths in source maps stay right.
scratch=$(dirname "$directory")/.$(basename "$directory")-new
mkdir -p "$(dirname "$directory")"
rm -rf "$scratch"
trap 'rm -rf "$scratch"' EXIT
case $what in
  package)
    node_modules/.bin/tsc -p tsconfig.build.json --outDir "$scratch/types"
    node scripts/bundle.mjs package "$scratch/types" "$scratch"
    node scripts/bundle-page.mjs "$scratch/page"
    node scripts/write-man-pages.mjs "$scratch/types" "$scratch/man"
    find "$scratch/types" \( -name '*.js' -o -name '*.js.map' \) -delete
    ;;
  programs)
    node_modules/.bin/tsc -p tsconfig.run.json --outDir "$scratch"
    node scripts/bundle.mjs tests "$scratch" "$scratch/bundled"
    ;;
  *)
    printf 'compile.sh: expected package or programs; received %s\n' "$what" >&2
    exit 2
    ;;
esac
rm -rf "$directory"
mv "$scratch" "$directory"
