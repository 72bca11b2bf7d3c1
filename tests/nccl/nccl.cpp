// The cases of redistributions over NCCL, compiled as one.
#include "test_async.cpp"
#include "test_failures.cpp"
#include "test_handles.cpp"
#include "test_lowering.cpp"
