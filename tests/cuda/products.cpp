// The cases of matrix products on GPUs.
#include "../ops/test_matmul.cpp"
#include "../ops/test_matmul_two_axes.cpp"
