# shellcheck shell=sh disable=SC2034
# Sourced by the scripts that newcomers run: `need PACKAGE..` installs missing Debian packages, as
# root or by sudo, and does nothing if all are installed.
#
# Without root or sudo it prints what it would have installed and continues. On systems other than
# Debian it does nothing: Meson then reports what it cannot find, and disables optional features.

# The packages that every build directory needs: compiler, build system, all optional features.
build_packages="g++ meson ninja-build pkg-config python3 doctest-dev libopenmpi-dev openmpi-bin
  libboost-mpi-dev libboost-serialization-dev libopenblas-dev libfftw3-dev
  libscalapack-openmpi-dev libelpa-dev libhdf5-openmpi-dev libnetcdf-mpi-dev
  librandom123-dev"

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
      echo "neither root nor sudo: continuing without$missing" >&2
      return 0
    fi
    root=sudo
  fi
  echo "installing$missing" >&2
  # shellcheck disable=SC2086  # a list of words
  $root apt-get -qq update >&2 </dev/null &&
    $root env DEBIAN_FRONTEND=noninteractive \
      apt-get -qq install -y --no-install-recommends $missing >/dev/null </dev/null
}

# configure DIRECTORY [MESON_OPTION..]: configures a new or existing build directory.
configure() {
  if [ -f "$1/build.ninja" ]; then meson setup --reconfigure "$@"; else meson setup "$@"; fi
}

# mpi_launch N PROGRAM [ARGUMENT..]: starts N processes, on any number of cores, as root or not.
mpi_launch() {
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
    OMPI_MCA_mpi_yield_when_idle=1 mpirun -n "$@"
}
