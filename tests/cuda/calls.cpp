// Cases of the calls of the runtime and NCCL, in addition to values.
#include "../comm/device/test_device_group.cpp"
#include "../interop/test_dlpack_streams.cpp"
#include "../kernels/cuda/test_launches.cpp"
#include "../kernels/cuda/test_row_launches.cpp"
#include "../ops/stencil/test_stencil_launches.cpp"
#include "../tensor/cuda/test_memory.cpp"
#include "../tensor/cuda/test_stream_order.cpp"
#include "../tensor/cuda/test_transfer.cpp"
#if defined(CLEAVE_HAS_NCCL)
#include "../comm/nccl/test_all_gather.cpp"
#include "../comm/nccl/test_async.cpp"
#include "../comm/nccl/test_failures.cpp"
#include "../comm/nccl/test_graphs.cpp"
#include "../comm/nccl/test_handles.cpp"
#include "../comm/nccl/test_lowering.cpp"
#include "../comm/nccl/test_table.cpp"
#include "../comm/nccl/test_waiting_calls.cpp"
#endif
