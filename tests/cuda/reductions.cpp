// The cases of reductions, and of what is indexed, on GPUs.
#include "../ops/test_arg_reduce.cpp"
#include "../ops/test_one_hot.cpp"
#include "../ops/test_reduce.cpp"
#include "../ops/test_reduce_partials.cpp"
