# Packages of another release or architecture of Debian than this machine's, without installing them here; sourced
# by other scripts.

# debian_archive LABEL: where this machine gets packages of Debian with that label.
debian_archive() {
  # shellcheck disable=SC2016
  apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Identifier: Packages' 'Origin: Debian' |
    awk -v label="$1" '$1 == label { print $2; exit }'
}

# use_debian ARCHITECTURE DIRECTORY SUITE…: lets apt-get and apt-cache, from here on, see these suites for that
# architecture, with nothing installed, and fetches their package lists; all files of that lie in DIRECTORY. Needs no
# root. Says why, and fails, if the lists cannot be had.
use_debian() {
  local architecture=$1 directory suite uri
  directory=$(realpath -m "$2")
  shift 2
  unset APT_CONFIG
  mkdir -p "$directory"/{lists,cache/archives}/partial
  : >"$directory/status"
  for suite; do
    uri=$(debian_archive "$([[ $suite == *-security ]] && echo Debian-Security || echo Debian)")
    if [[ -z $uri ]]; then
      printf 'debian: apt-get knows no archive with %s here: run apt-get update\n' "$suite" >&2
      return 1
    fi
    printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n' "$uri" "$suite"
  done >"$directory/sources.list"
  cat >"$directory/apt.conf" <<CONFIG
APT::Architecture "$architecture";
APT::Architectures "$architecture";
APT::Sandbox::User "";
Dir::State "$directory";
Dir::State::status "$directory/status";
Dir::Cache "$directory/cache";
Dir::Etc::sourcelist "$directory/sources.list";
Dir::Etc::sourceparts "/dev/null";
CONFIG
  export APT_CONFIG=$directory/apt.conf
  apt-get update -q >"$directory/log" 2>&1 && return
  tail -n 5 "$directory/log" >&2
  return 1
}

# unpack_packages ROOT FILE…: puts the files of packages below ROOT.
unpack_packages() {
  local root=$1 directory package
  shift
  # As on every Debian that is not very old, /lib and its like are links.
  mkdir -p "$root"/usr/{bin,lib,lib64,sbin}
  for directory in bin lib lib64 sbin; do ln -sfn "usr/$directory" "$root/$directory"; done
  for package; do
    dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$root"
  done
}
