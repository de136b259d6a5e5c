# Installs packages from Debian's archive; sourced by the scripts of set-up.

# shellcheck source=scripts/as-root.sh
. "$(dirname "${BASH_SOURCE[0]}")/as-root.sh"

# How long to wait for other installations on this machine.
readonly LOCK_SECONDS=1800

say() { printf 'setup: %s\n' "$*" >&2; }
has_program() { command -v "$1" >/dev/null; }

apt_get() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o "DPkg::Lock::Timeout=$LOCK_SECONDS" "$@"
}

install_packages() {
  apt_get install -y --no-install-recommends -o Dpkg::Use-Pty=0 "$@"
}

# provide_packages PURPOSE: installs the packages that `missing`, a function of the caller, prints, one per
# line. PURPOSE says what cannot be done without them. Needs root or sudo, unless nothing is missing.
provide_packages() {
  local purpose=$1 packages by_hand
  mapfile -t packages < <(missing)
  if ((${#packages[@]} == 0)); then return; fi
  if has_program apt-get && [[ -d /var/lib/apt ]]; then
    # apt does not wait for the lock of its package lists, so set-ups take turns. Any user may lock the
    # directory; it stays locked until this shell closes it.
    exec {apt_lock}</var/lib/apt
    flock -w "$LOCK_SECONDS" "$apt_lock" || say "another set-up has not finished after $LOCK_SECONDS s"
    # Another set-up may have installed them since.
    mapfile -t packages < <(missing)
  fi
  if ((${#packages[@]} == 0)); then
    exec {apt_lock}<&-
    return
  fi
  by_hand="install these packages of Debian (as root: apt-get update && apt-get install ${packages[*]}), or what holds the same elsewhere"
  if [[ -z ${apt_lock:-} ]]; then
    say "$purpose: $by_hand"
    return 1
  fi
  say "installing ${packages[*]}"
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  if ! install_packages "${packages[@]}" >"$log" 2>&1; then
    say "they cannot be had with the present package lists: running apt-get update"
    apt_get update >>"$log" 2>&1 || true
    if ! install_packages "${packages[@]}" >>"$log" 2>&1; then
      tail -n 5 "$log" >&2
      say "$purpose: $by_hand"
      return 1
    fi
  fi
  exec {apt_lock}<&-
  mapfile -t packages < <(missing)
  if ((${#packages[@]} > 0)); then
    say "still missing after the installation: ${packages[*]}"
    return 1
  fi
}
