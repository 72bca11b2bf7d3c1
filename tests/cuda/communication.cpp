// Communication on GPUs: the cases of functional collectives, meshes, redistribution and
// distributed tensors.
#include "../dtensor/test_async.cpp"
#include "../dtensor/test_cross_mesh.cpp"
#include "../dtensor/test_dtensor.cpp"
#include "../dtensor/test_redistribute_all.cpp"
#include "../functional/test_async.cpp"
#include "../functional/test_errors.cpp"
#include "../functional/test_groups.cpp"
#include "../functional/test_mesh_group.cpp"
#include "../functional/test_results.cpp"
#include "../mesh/test_device_mesh.cpp"
#include "../redistribute/test_all_pairs.cpp"
#include "../redistribute/test_walks.cpp"
