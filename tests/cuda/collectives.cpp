// The cases of functional collectives and of meshes on GPUs.
#include "../comm/test_functional.cpp"
#include "../comm/test_functional_async.cpp"
#include "../comm/test_functional_errors.cpp"
#include "../comm/test_functional_groups.cpp"
#include "../mesh/test_device_mesh.cpp"
#include "../mesh/test_functional_group.cpp"
