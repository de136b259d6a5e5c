#!/usr/bin/env bash
# Compiles a project file into a directory that then holds nothing else; the directory is replaced
# only if the compilation succeeds.
#
#   scripts/compile.sh tsconfig.build.json dist
set -euo pipefail
cd "$(dirname "$0")/.."
project=$1
directory=$2

# Next to the target, so that the relative paths in source maps stay right.
scratch=$(dirname "$directory")/.$(basename "$directory")-new
mkdir -p "$(dirname "$directory")"
rm -rf "$scratch"
trap 'rm -rf "$scratch"' EXIT
node_modules/.bin/tsc -p "$project" --outDir "$scratch"
find "$scratch" \( -path '*/cli/main.js' -o -path '*/cli/legion.js' \) -exec chmod +x {} +
rm -rf "$directory"
mv "$scratch" "$directory"
