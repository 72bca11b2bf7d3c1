// The cases of redistribution and of distributed tensors on GPUs.
#include "../dtensor/test_async.cpp"
#include "../dtensor/test_cross_mesh.cpp"
#include "../dtensor/test_dtensor.cpp"
#include "../dtensor/test_redistribute_all.cpp"
#include "../redistribute/test_all_pairs.cpp"
#include "../redistribute/test_walks.cpp"
