// Ranks on a mesh: their coordinates, and the elements they own.
//
//     hello_mesh --ranks 6            six threads
//     mpirun -n 6 hello_mesh          six processes
#include <cstdio>

#include <cleave/cleave.hpp>

using namespace cleave;

struct rack : axis {};  // a mesh axis is a type, of any name
struct node : axis {};

int main(int argc, char** argv) {
  return run(argc, argv, [](World& world) {
    const index_t nodes = world.size() % 2 == 0 ? 2 : 1;
    const auto mesh = init_device_mesh<rack, node>(world, {world.size() / nodes, nodes});

    // a table of 5 x 6 zeros: rows over the racks, columns over the nodes
    const auto table = zeros<float>({5, 6}, mesh, Shard<0>{}, Shard<1>{});

    for (int turn = 0; turn < world.size(); ++turn) {
      world.barrier();
      if (turn != world.rank()) continue;
      const Box mine = table.local_box();
      std::printf("rank %d of %d is at %s of %s: table[%d:%d, %d:%d]\n", world.rank(), world.size(),
                  to_string(mesh.coordinate()).c_str(), mesh.describe().c_str(), int(mine.begin[0]),
                  int(mine.end[0]), int(mine.begin[1]), int(mine.end[1]));
      std::fflush(stdout);
    }
  });
}
