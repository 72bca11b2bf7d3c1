// The library cleave-cuda-compiled: for nvcc.
#include <cleave/compiled_cuda.hpp>
