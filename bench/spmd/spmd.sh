# shellcheck shell=sh
# Sourced by bench/run.sh: what a program adds to its kernels, steps of AdamW against the same calls,
# a chain of elementwise operations against a loop written by hand, a training step against calls,
# collectives that are merged and hidden, and the weights of attention against torch, if the
# interpreter named by PYTHON has it.
configure build-bench -Dtests=disabled -Dexamples=disabled >&2
ninja -C build-bench bench/spmd bench/spmd_adam bench/spmd_auto_schemas bench/spmd_fused_chain \
  bench/spmd_gpt_step bench/spmd_rounds bench/spmd_softmax_mask >&2
build-bench/bench/spmd
build-bench/bench/spmd_adam
build-bench/bench/spmd_auto_schemas
build-bench/bench/spmd_fused_chain
OPENBLAS_NUM_THREADS=1 build-bench/bench/spmd_gpt_step
OPENBLAS_NUM_THREADS=1 build-bench/bench/spmd_rounds
OMP_NUM_THREADS=1 "${PYTHON:-python3}" bench/spmd/softmax_mask.py build-bench/bench/spmd_softmax_mask
