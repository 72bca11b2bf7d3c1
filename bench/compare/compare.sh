# shellcheck shell=sh
# Sourced by bench/run.sh: the programs of examples/compare beside their counterparts.
need libfftw3-mpi-dev
configure build-bench -Dtests=disabled -Dexamples=enabled >&2
pairs=
folder=examples/compare
for counterpart in "$folder"/*_mpi.cpp "$folder"/*_fftw.cpp \
  "$folder"/*_scalapack.cpp; do
  other=$(basename "$counterpart" .cpp)
  name=${other%_*}
  ninja -C build-bench "$folder/${name}_cleave" "$folder/$other" >&2
  pairs="$pairs $name build-bench/$folder/${name}_cleave build-bench/$folder/$other"
done
# shellcheck disable=SC2086  # a list of words
python3 bench/compare/ratios.py $pairs
