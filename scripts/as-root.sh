# Runs commands as root; sourced by the scripts of set-up.

# Whether somebody can type a password. Decided before the scripts redirect anything: sudo itself asks at the
# terminal, wherever input and output of the command go. A job in the background has its terminal only as
# standard error.
as_root_may_ask=
if [[ -t 0 || -t 2 ]]; then as_root_may_ask=yes; fi
readonly as_root_may_ask

# as_root COMMAND...: runs it without input, through sudo unless this user is root; fails where it may not.
as_root() {
  if ((EUID == 0)); then
    "$@" </dev/null
  elif ! command -v sudo >/dev/null; then
    return 1
  elif [[ -n $as_root_may_ask ]]; then
    sudo "$@" </dev/null
  else
    sudo -n "$@" </dev/null
  fi
}
