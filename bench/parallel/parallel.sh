# shellcheck shell=sh
# Sourced by bench/run.sh: parallel training on threads and processes, a tensor-parallel block
# against a hand-written one, many tensors at once between processes, and training on processes
# against torch, if the interpreter named by PYTHON has it.
configure build-bench -Dtests=disabled -Dexamples=disabled >&2
ninja -C build-bench bench/parallel_data bench/parallel_tp_block bench/parallel_redistribute_all \
  bench/parallel_steps >&2
build-bench/bench/parallel_data
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1  # threads per process
mpi_launch 2 build-bench/bench/parallel_data
mpi_launch 2 build-bench/bench/parallel_tp_block
mpi_launch 4 build-bench/bench/parallel_redistribute_all
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
  "${PYTHON:-python3}" bench/parallel/compare.py build-bench/bench/parallel_steps
