#!/usr/bin/env bash
# Installs what was built, with the packages it needs at run time and the broker of set-up, below
# PREFIX: lib/node_modules/nats-pserver, bin/pserver and bin/legion. Needs no network. DESTDIR is for packagers.
set -euo pipefail
cd "$(dirname "$0")/.."

prefix=${PREFIX:-/usr/local}
target=${DESTDIR:-}$prefix/lib/node_modules/nats-pserver
bin=${DESTDIR:-}$prefix/bin

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# `npm pack` first, so that exactly the files of the published package are installed.
npm pack --ignore-scripts --loglevel=error --pack-destination "$scratch" >/dev/null
rm -rf "$target"
mkdir -p "$target" "$bin"
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

ln -sf ../lib/node_modules/nats-pserver/dist/pserver.js "$bin/pserver"
ln -sf ../lib/node_modules/nats-pserver/dist/legion.js "$bin/legion"
printf 'installed %s\n' "$bin/pserver" "$bin/legion"
