#!/usr/bin/env bash
# Installs what was built, with the packages it needs at run time and the broker of set-up, below
# PREFIX: lib/node_modules/nats-pserver, and links in bin and share/man/man1. Needs no network. DESTDIR is for packagers.
set -euo pipefail
cd "$(dirname "$0")/.."

prefix=${PREFIX:-/usr/local}
target=${DESTDIR:-}$prefix/lib/node_modules/nats-pserver
bin=${DESTDIR:-}$prefix/bin
man=${DESTDIR:-}$prefix/share/man/man1

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# `npm pack` first, so that exactly the files of the published package are installed.
npm pack --ignore-scripts --loglevel=error --pack-destination "$scratch" >/dev/null
rm -rf "$target"
mkdir -p "$target" "$bin" "$man"
tar -xzf "$scratch"/*.tgz -C "$target" --strip-components=1

npm ls --omit=dev --all --parseable --loglevel=error | while IFS= read -r directory; do
  relative=${directory#"$PWD"/}
  # The first line is the package itself.
  [[ $relative == "$directory" ]] && continue
  mkdir -p "$(dirname "$target/$relative")"
  cp -R "$directory" "$(dirname "$target/$relative")/"
done

# The broker that set-up built, or that was named, into the place where the installed package looks first.
# A broker on the PATH needs no copy.
broker=${PSERVER_NATS_SERVER:-.tools/bin/nats-server}
if [[ -x $broker ]]; then
  mkdir -p "$target/.tools/bin"
  install -m 755 "$broker" "$target/.tools/bin/nats-server"
fi

for name in pserver legion; do
  ln -sf "../lib/node_modules/nats-pserver/dist/$name.js" "$bin/$name"
  ln -sf "../../../lib/node_modules/nats-pserver/dist/man/$name.1" "$man/$name.1"
done
printf 'installed %s\n' "$bin/pserver" "$bin/legion"
