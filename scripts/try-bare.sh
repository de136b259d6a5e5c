#!/usr/bin/env bash
# Tries the checkout on a bare Debian: makes a root of that release with debootstrap, copies HEAD into it, and
# runs the commands there, one after the other, with nothing in their environment but what reaches the package
# archives. For whoever changes what set-up provides. Needs root, git, Node.js and a Debian archive.
#
#   scripts/try-bare.sh [--fresh] bookworm|trixie [COMMAND…]
#
# Each COMMAND is one line of shell, run in the copy; the default is `make demo` and then `make test`. Ends with
# the status of the first that fails. The root is kept, in .tools/bare/RELEASE, with all that was built, so that a
# second run is quick; --fresh makes it again. Two releases can be tried at once.
#
# The root holds what debootstrap calls minbase, git, make, certificates, and Node.js with npm: trixie's own;
# bookworm's are too old, so it gets those of this machine. How this machine reaches Debian's archive, npm's
# registry, Python's index and Go's proxy is carried over. There is no /sys, hence no cgroups, and /etc/hosts is
# empty, hence no name for this machine, nor "localhost". The commands see only their own processes, which end
# with them, as do all mounts.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/debian-archive.sh
. scripts/debian-archive.sh

readonly CHECKOUT=/srv/checkout ROOT_HOME=/root
readonly PACKAGES=(ca-certificates git make)

# Variables that say how to reach the package archives, as a pattern.
readonly PASSED='^(https?_proxy|ftp_proxy|all_proxy|no_proxy|HTTPS?_PROXY|FTP_PROXY|ALL_PROXY|NO_PROXY|PIP_.+|npm_config_.+|NPM_CONFIG_.+|NODE_EXTRA_CA_CERTS|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|GIT_SSL_CAINFO|GO(PROXY|FLAGS|SUMDB|NOSUMDB|PRIVATE|NOPROXY|INSECURE))$'

say() { printf 'bare: %s\n' "$*" >&2; }
fail() {
  say "$*"
  exit 1
}

# logged WHAT COMMAND…: runs it silently; the end of its output says why it failed.
logged() {
  local what=$1
  shift
  say "$what"
  "$@" >"$root.log" 2>&1 </dev/null && return
  tail -n 20 "$root.log" >&2
  fail "that failed, see $root.log"
}

# inside COMMAND…: runs it in the root, with processes and mounts of its own. They end with it, and with this
# script, however that ends. The first of the processes collects those that others leave.
inside() {
  # shellcheck disable=SC2016
  setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --propagation private bash -euc '
    trap "exit 130" INT
    root=$1
    shift
    mount --rbind /dev "$root/dev"
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
    mount -t proc proc "$root/proc"
    chroot "$root" env -i "$@"
    exit' bare "$root" "${environment[@]}" "$@"
}

# copy_setting FILE PATH: copies a file or directory to a path in the root, if this machine has it.
copy_setting() {
  if [[ ! -e $1 ]]; then return; fi
  mkdir -p "$root$(dirname "$2")"
  cp -rLT "$1" "$root$2"
}

make_root() {
  local mirror security
  mirror=$(debian_archive Debian)
  security=$(debian_archive Debian-Security)
  [[ -n $mirror ]] || fail "apt-get knows no archive of Debian here: run apt-get update"
  if ! command -v debootstrap >/dev/null; then
    logged "installing debootstrap" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q debootstrap
  fi
  rm -rf "$root" "$root.new"
  mkdir -p "$root.new"
  logged "making a root of $release in $root" \
    unshare --mount --propagation private debootstrap --variant=minbase "$release" "$root.new" "$mirror"
  {
    printf 'deb %s %s main\n' "$mirror" "$release" "$mirror" "$release-updates"
    if [[ -n $security ]]; then printf 'deb %s %s main\n' "$security" "$release-security"; fi
  } >"$root.new/etc/apt/sources.list"
  # Installed later, netbase would write one that names "localhost" if there were none.
  : >"$root.new/etc/hosts"
  mv "$root.new" "$root"
}

# How to reach the network, and Debian's archive.
carry_network() {
  apt-config dump | grep -E '^Acquire::(https?|ftp|Check-|Retries)' >"$root/etc/apt/apt.conf.d/99machine" || true
  copy_setting /etc/resolv.conf /etc/resolv.conf
  copy_setting /usr/local/share/ca-certificates /usr/local/share/ca-certificates
}

# How to reach the other archives.
carry_settings() {
  local path variable
  for path in /etc/pip.conf /etc/xdg/pip/pip.conf; do copy_setting "$path" "$path"; done
  for path in .pip/pip.conf .config/pip/pip.conf .config/go/env; do copy_setting "$HOME/$path" "$ROOT_HOME/$path"; done
  # What the variables name: certificates, or packages for pip.
  for variable in "${environment[@]}"; do
    path=${variable#*=}
    if [[ $path == /* && ! -e $root$path ]]; then copy_setting "$path" "$path"; fi
  done
  cat "$(npm config get globalconfig)" "$(npm config get userconfig)" 2>/dev/null >"$root$ROOT_HOME/.npmrc" || true
}

install_packages() {
  local packages=("${PACKAGES[@]}")
  if [[ $release == trixie ]]; then packages+=(nodejs npm); fi
  logged "updating its package lists" inside apt-get update -q
  logged "installing ${packages[*]}" \
    inside DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${packages[@]}"
  logged "updating its certificates" inside update-ca-certificates
  if [[ $release == trixie ]]; then return; fi
  say "copying Node.js $(node --version) and npm of this machine"
  local modules=$root/usr/local/lib/node_modules program
  mkdir -p "$modules"
  cp "$(node -p process.execPath)" "$root/usr/local/bin/node"
  cp -rL "$(dirname "$(readlink -f "$(command -v npm)")")/.." "$modules/npm"
  for program in npm npx; do ln -sf "../lib/node_modules/npm/bin/$program-cli.js" "$root/usr/local/bin/$program"; done
}

# What was built there before is kept; everything else becomes as HEAD has it.
copy_checkout() {
  if [[ -n $(git status --porcelain) ]]; then say "changes that are not committed are not tried"; fi
  local copy=$root$CHECKOUT
  [[ -d $copy ]] || git init -q "$copy"
  git -C "$copy" fetch -q "$PWD" HEAD
  git -C "$copy" checkout -q --force --detach FETCH_HEAD
  git -C "$copy" clean -qfd
  say "trying $(git -C "$copy" log -1 --format='%h %s') on $release"
}

fresh=
if [[ ${1:-} == --fresh ]]; then
  fresh=yes
  shift
fi
release=${1:-}
case $release in
  bookworm | trixie) shift ;;
  *) fail "expected bookworm or trixie; received ${release:-nothing}" ;;
esac
commands=("$@")
if ((${#commands[@]} == 0)); then commands=("make demo" "make test"); fi
((EUID == 0)) || fail "only root can make a root: run this with sudo"
root=$PWD/.tools/bare/$release

environment=(HOME="$ROOT_HOME" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb)
while IFS='=' read -r -d '' name value; do
  if [[ $name =~ $PASSED ]]; then environment+=("$name=$value"); fi
done < <(env -0)

mkdir -p "$(dirname "$root")"
exec {lock}>"$root.lock"
flock -n "$lock" || fail "another run uses $root"
if [[ -n $fresh || ! -f $root.stamp ]]; then
  rm -f "$root.stamp"
  make_root
  carry_network
  install_packages
  touch "$root.stamp"
fi
carry_network
carry_settings
copy_checkout
for command in "${commands[@]}"; do
  say "$command"
  inside bash -c "cd $CHECKOUT && $command" || exit
done
