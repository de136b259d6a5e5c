#!/usr/bin/env bash
# Tries a wheel as a user would who has an old system: installs it with numpy beside the Python of an old Debian for
# its architecture, and trains with it through TLS, with a broker and a host of an installed npm package. A wheel for
# this machine's processor is also tried in a fork of that process; QEMU runs the other, and does not bear a fork of a
# process with threads. Nothing is installed here but QEMU; the old Debian is unpacked, and has nothing but what its
# Python needs.
#
#   scripts/release/try-wheel.sh WHEEL PSERVER PIP DIRECTORY
#
# PSERVER is the installed dist/pserver.js, PIP a pip of this machine, DIRECTORY an empty one for what is unpacked.
# PSERVER_NATS_SERVER names the broker, if pserver would find none.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/debian-archive.sh
. scripts/debian-archive.sh
# shellcheck source=scripts/debian-packages.sh
. scripts/debian-packages.sh
# shellcheck source=scripts/release/failures.sh
. scripts/release/failures.sh

# The oldest that the archive has: glibc 2.31, and Python 3.9, the oldest that the package runs on.
readonly RELEASE=bullseye PYTHON=3.9
# Until the server is ready, and until the trainer has ended, which takes some seconds.
readonly READY_SECONDS=120 TRAINER_SECONDS=300

missing() { has_program "qemu-$architecture" || echo qemu-user; }

# Runs on the old Python, with the package installed in the first argument; the second says whether it forks.
read -rd '' PROGRAM <<'PYTHON' || true
import os, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import pserver

def train(expected):
    with pserver.connect(trainer=os.environ["PSERVER_TRAINER"]) as ps:
        if ps.begin_init():
            ps.init_param("w", np.arange(5, dtype=np.float32))
            ps.finish_init()
        ps.push("w", np.ones(5, dtype=np.float32), 2.0, 1.0)
        assert ps.pull("w").tolist() == expected, ps.pull("w")

train([1, 3, 5, 7, 9])
if sys.argv[2] == "forks":
    child = os.fork()
    if child == 0:
        # The library in this process is a copy of the parent's.
        train([3, 7, 11, 15, 19])
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
with open("/proc/self/maps") as maps:
    assert not [line for line in maps if "libnats" in line]
print("Python", sys.version.split()[0], "on", os.uname().machine)
PYTHON

(($# == 4)) || fail "expected WHEEL PSERVER PIP DIRECTORY; received $*"
wheel=$1 pserver=$2 pip=$3 directory=$(realpath "$4")
[[ $wheel =~ -(manylinux_[0-9]+_[0-9]+)_(x86_64|aarch64)\.whl$ ]] || fail "expected a wheel for x86_64 or aarch64; received $wheel"
platform=${BASH_REMATCH[1]} architecture=${BASH_REMATCH[2]}
declare -A names=([x86_64]=amd64 [aarch64]=arm64)

root=$directory/root
use_debian "${names[$architecture]}" "$directory/debian" "$RELEASE" || fail "Debian $RELEASE cannot be had"
apt-get install -y -q --download-only --no-install-recommends python3 >"$directory/log" 2>&1 ||
  fail "Python of Debian $RELEASE cannot be fetched: $(tail -n 1 "$directory/log")"
unpack_packages "$root" "$directory"/debian/cache/archives/*.deb
if [[ $architecture == "$(uname -m)" ]]; then
  libraries=$root/lib/$architecture-linux-gnu
  loaders=("$libraries"/ld-linux-*.so.?)
  runner=("${loaders[0]}" --library-path "$libraries")
  forks=forks
else
  provide_packages "wheels cannot be tried"
  runner=("qemu-$architecture" -cpu max -L "$root")
  forks=
fi
platforms=()
for name in "$platform" manylinux_2_17 manylinux2014; do platforms+=(--platform "${name}_$architecture"); done
"$pip" install -q --no-compile --only-binary=:all: --python-version "$PYTHON" --implementation cp "${platforms[@]}" \
  --target "$directory/site" "$wheel" >"$directory/log" 2>&1 ||
  fail "$wheel cannot be installed for Python $PYTHON: $(grep -oE 'ERROR: .*' "$directory/log" | tail -n 1)"

coproc SERVER {
  exec node "$pserver" up --secure --port 0 --http off --store "$directory/store" --json 2>"$directory/server.log"
}
# Bash forgets the number once the server has ended.
server=$SERVER_PID
trap 'kill "$server" 2>/dev/null || true; wait "$server" || true' EXIT
read -r -t "$READY_SECONDS" ready <&"${SERVER[0]}" || fail "no server: $(tail -n 3 "$directory/server.log")"
read -r url file < <(node -p 'const { url, trainers } = JSON.parse(process.argv[1]); `${url} ${Object.values(trainers)[0]}`' "$ready")
said=$(
  set -a
  # shellcheck disable=SC1090
  . "$file"
  PSERVER_URL=$url PSERVER_TRAINER=$(basename "$file" .env)
  timeout "$TRAINER_SECONDS" "${runner[@]}" "$root/usr/bin/python3" -s -c "$PROGRAM" "$directory/site" "$forks" \
    2>"$directory/log"
) || fail "$wheel does not work: $(tail -n 5 "$directory/log")"
printf 'release: %s works: %s\n' "${wheel##*/}" "$said" >&2
