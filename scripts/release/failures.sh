# For the scripts that make a release: how they end, and how they run what is only of interest if it fails. To be sourced.

fail() {
  printf 'release: %s\n' "$*" >&2
  exit 1
}

# logged WHAT COMMAND…: runs it silently, with its output in $work/log; the end of that says why it failed.
logged() {
  local what=$1
  shift
  # shellcheck disable=SC2154 # of whoever sources this
  "$@" >"$work/log" 2>&1 </dev/null && return
  tail -n 30 "$work/log" >&2
  fail "$what, see above"
}
