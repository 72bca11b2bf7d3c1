// A sample of the cases on GPUs, whose host code is compiled with sanitizers: how kernels are
// launched, memory, streams, communication among threads, cuBLASLt.
#if !defined(__SANITIZE_ADDRESS__)
#error "compile this file with -fsanitize=address"
#endif

#include "../comm/device/test_device_group.cpp"
#include "../kernels/cuda/test_gather_rows.cpp"
#include "../kernels/cuda/test_gemm.cpp"
#include "../kernels/cuda/test_launches.cpp"
#include "../kernels/cuda/test_ordered_indices.cpp"
#include "../kernels/cuda/test_reduce_dims.cpp"
#include "../kernels/cuda/test_update_elements.cpp"
#include "../tensor/cuda/test_memory.cpp"
#include "../tensor/cuda/test_stream_order.cpp"
#include "../tensor/cuda/test_transfer.cpp"
