# Sourced by the scripts that a newcomer runs: `need PACKAGE..` installs what is missing of Debian's
# packages, as root or by sudo, and does nothing where all are there.
#
# Elsewhere than on Debian, or without the rights, it says what it would have installed and goes
# on: Meson then reports what it cannot find, and switches optional features off.

need() {
  command -v dpkg-query >/dev/null 2>&1 || return 0
  missing=
  for package in "$@"; do
    status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null) || status=
    [ "$status" = "install ok installed" ] || missing="$missing $package"
  done
  [ -n "$missing" ] || return 0

  root=
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
      echo "neither root nor sudo: going on without$missing" >&2
      return 0
    fi
    root=sudo
  fi
  echo "installing$missing" >&2
  $root apt-get -qq update >&2 </dev/null
  # shellcheck disable=SC2086  # a list of words
  $root env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq install -y --no-install-recommends $missing >/dev/null </dev/null
}

# configure DIRECTORY [MESON_OPTION..]: a configured build directory, new or from before.
configure() {
  if [ -f "$1/build.ninja" ]; then return 0; fi
  meson setup "$@"
}
