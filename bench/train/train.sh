# shellcheck shell=sh
# Sourced by bench/run.sh: training steps against a hand-written loop, two ranks against one, and
# against torch on one thread, if the interpreter named by PYTHON has it.
configure build-bench -Dtests=disabled -Dexamples=disabled >&2
ninja -C build-bench bench/train >&2
build-bench/bench/train
OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
  "${PYTHON:-python3}" bench/train/compare.py build-bench/bench/train
