# shellcheck shell=sh
# Sourced by bench/run.sh: operations against their building blocks, a call against its cost before
# operations were defined once for all call paths, and calls against NumPy and torch, if the
# interpreter named by PYTHON has them.
configure build-bench -Dtests=disabled -Dexamples=disabled >&2
ninja -C build-bench bench/ops bench/ops_calls >&2
build-bench/bench/ops

# `dispatch.dtensor_add_one.vs_before`: the overhead of a mesh on adding one, divided by the
# overhead with the headers of that commit; both programs interleaved, the median of the ratios of
# pairs.
before=b37f976
if git archive --output build-bench/before.tar "$before" include 2>/dev/null; then
  mkdir -p build-bench/before
  tar -xf build-bench/before.tar -C build-bench/before
  for headers in before now; do
    case $headers in now) tree=. ;; *) tree=build-bench/before ;; esac
    g++ -std=c++20 -O2 -pthread -I "$tree/include" bench/ops/add_one.cpp \
      -o "build-bench/add_one_$headers" >&2
  done
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
    echo "$(build-bench/add_one_now) $(build-bench/add_one_before)"
  done | awk '{ print $1 / $2, $1, $2 }' | sort -n |
    awk 'NR == 8 { printf "dispatch.dtensor_add_one.vs_before %.2f ratio\n", $1 }'
else
  echo "the history lacks commit $before: omitting dispatch.dtensor_add_one.vs_before" >&2
fi

OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
  "${PYTHON:-python3}" bench/ops/compare.py build-bench/bench/ops_calls
