#!/usr/bin/env bash
# Makes static pages of all documents and of the reference in a directory, which is replaced only if all goes
# well: the documents, the commands and the TypeScript packages at its top, the Python packages in python/.
# Needs dist/ and what scripts/setup-docs.sh provides. A broken link is an error.
#
#   scripts/make-docs.sh DIRECTORY
set -euo pipefail
cd "$(dirname "$0")/.."
directory=$1

directory=$(realpath -m "$directory")
mkdir -p "$(dirname "$directory")"
scratch=$(mktemp -d "$directory.new-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
node .tools/docs/node_modules/typedoc/bin/typedoc --options scripts/docs/typedoc.json --logLevel Warn --out "$scratch" >&2
PYTHONPATH=src/client/python .tools/docs/python/bin/python -m pdoc --docformat restructuredtext --no-show-source \
  --output-directory "$scratch/python" pserver pserver.aio pserver.diloco pserver.torch legion >&2
rm -rf "$directory"
mv "$scratch" "$directory"
chmod 755 "$directory"
