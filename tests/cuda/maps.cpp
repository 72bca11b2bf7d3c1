// The cases of operations element by element on GPUs.
#include "../ops/test_apply_op.cpp"
#include "../ops/test_map.cpp"
#include "../ops/test_pointwise.cpp"
#include "../ops/test_transpose.cpp"
