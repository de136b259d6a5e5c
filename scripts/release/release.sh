#!/usr/bin/env bash
# Makes the files of a release from HEAD, in build/release: the npm tarball, the Python wheels, what is in all of them
# (CycloneDX), and SHA256SUMS. Tries the package and each wheel, uploads nothing, and prints what is left to do.
# The same commit gives the same bytes, with the same Node.js and npm. Refuses changes that are not committed, and
# versions that differ. Needs npm 10 or newer, the archives of Debian, npm and Python, and NATS's C client (see
# build-wheel.sh).
#
#   scripts/release/release.sh
#   scripts/release/release.sh --compare    builds once more, in another directory, and compares with build/release
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/release/failures.sh
. scripts/release/failures.sh

readonly BUILT=build/release
readonly ARCHITECTURES=(x86_64 aarch64)
# Stays there, because it is large.
readonly ZIG=$PWD/.tools/zig

say() { printf 'release: %s\n' "$*" >&2; }

provide_zig() {
  local version
  version=$(node -p 'require("./scripts/release/carried-libraries.json").libraries.find((each) => each.pypi === "ziglang").version')
  [[ -f $ZIG/stamp && $(<"$ZIG/stamp") == "$version" ]] && return
  say "installing ziglang $version in $ZIG"
  rm -rf "$ZIG"
  logged "no virtual environment can be made" "$(scripts/find-python.sh venv ensurepip)" -m venv "$ZIG"
  logged "ziglang cannot be installed" "$ZIG/bin/pip" install -q --only-binary=:all: "ziglang==$version"
  printf '%s\n' "$version" >"$ZIG/stamp"
}

build_package() {
  say "building the npm package"
  cd "$source"
  logged "packages cannot be installed" npm ci --ignore-scripts --include=dev --no-audit --no-fund
  logged "the package cannot be built" scripts/compile.sh package dist
  logged "the package cannot be packed" npm pack --ignore-scripts --pack-destination "$out"
}

# All files of a release, from a copy of HEAD without anything else.
build_all() {
  local architecture
  mkdir -p "$source" "$out"
  # With the same modes for root, for whom tar keeps them, and for others.
  git -c tar.umask=0022 archive HEAD | tar -x -C "$source"
  (build_package)
  for architecture in "${ARCHITECTURES[@]}"; do
    say "building the wheel for $architecture"
    "$source/scripts/release/build-wheel.sh" "$architecture" "$ZIG" "$out" >/dev/null
  done
  node "$source/scripts/release/write-sbom.mjs" release "$out" >"$out/nats-pserver-$version.cdx.json"
  (cd "$out" && sha256sum -- *.tgz *.whl *.json >SHA256SUMS)
}

try_all() {
  local wheel
  say "installing the npm package"
  logged "the package cannot be installed" \
    npm install --prefix "$work/app" --ignore-scripts --no-audit --no-fund "$out/nats-pserver-$version.tgz"
  if [[ -z ${PSERVER_NATS_SERVER:-} && -x .tools/bin/nats-server ]]; then
    export PSERVER_NATS_SERVER=$PWD/.tools/bin/nats-server
  fi
  for wheel in "$out"/*.whl; do
    mkdir "$work/${wheel##*_}"
    scripts/release/try-wheel.sh "$wheel" "$work/app/node_modules/nats-pserver/dist/pserver.js" "$ZIG/bin/pip" \
      "$work/${wheel##*_}"
  done
}

case ${1:-} in
  "" | --compare) ;;
  *) fail "expected nothing or --compare; received $1" ;;
esac
[[ -z $(git status --porcelain) ]] || fail "expected a checkout without changes; received: $(git status --porcelain | head -n 5)"
node scripts/release/check-versions.mjs
version=$(node -p 'require("./package.json").version')
npm=$(npm --version)
[[ ${npm%%.*} -ge 10 ]] || fail "expected npm 10 or newer, which can list packages; found $npm"
if [[ ${1:-} == --compare && ! -f $BUILT/SHA256SUMS ]]; then fail "expected files in $BUILT: run make release first"; fi

scripts/setup.sh
scripts/setup-python.sh
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
umask 022
mkdir -p build
work=$(realpath "$(mktemp -d build/release.XXXXXX)")
trap 'rm -rf "$work"' EXIT
source=$work/source out=$work/out
provide_zig
build_all

if [[ ${1:-} == --compare ]]; then
  diff "$BUILT/SHA256SUMS" "$out/SHA256SUMS" >&2 || fail "expected the same files; these differ (< before, > now)"
  say "$(wc -l <"$out/SHA256SUMS") files are the same, byte for byte"
  exit
fi
try_all
rm -rf "$BUILT"
mv "$out" "$BUILT"
cat <<NEXT
$(cd "$BUILT" && cat SHA256SUMS)

These files are in $BUILT, made from $(git log -1 --format='%h, "%s"'). To publish them:

  git tag --sign v$version --message 'nats-pserver $version' && git push origin v$version
  npm publish $BUILT/nats-pserver-$version.tgz
  python3 -m twine upload $BUILT/*.whl

Attach all files, SHA256SUMS and its signature (gpg --armor --detach-sign $BUILT/SHA256SUMS) to the release of the tag.
NEXT
