# shellcheck shell=sh
# Sourced by bench/run.sh: builds and runs bench/cuda; needs nvcc to build and a GPU to run.
configure build-bench -Dcuda=enabled -Dtests=disabled -Dexamples=disabled >&2
if ! ninja -C build-bench bench/cuda_bench >&2; then
  echo "bench/cuda needs the CUDA toolkit: nvcc, cudart, cuBLASLt" >&2
  exit 2
fi
exec build-bench/bench/cuda_bench "$@"
