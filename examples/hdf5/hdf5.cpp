// A field in an HDF5 file, which all ranks write by rows and read by columns.
//
//     mpirun -n 4 hdf5 [FILE]
//     python3 -c 'import h5py; print(h5py.File("field.h5")["fluid/density"][:])'
#include <cstdio>
#include <string>

#include <cleave/cleave.hpp>
#include <cleave/interop/hdf5.hpp>

using namespace cleave;
using axes::dp;

int main(int argc, char** argv) {
  const std::string path = argc > 1 && argv[1][0] != '-' ? argv[1] : "field.h5";
  return run(argc, argv, [&](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto density = reshape(arange<double>(3500, mesh), {50, 70});

    auto file = hdf5::create(path, mesh);
    file.write("fluid/density", density.redistribute(Balanced<0>{}),
               {.chunk = {10, 70}, .deflate = 4});
    file.write_attribute("fluid/density", "unit", "kg/m3");
    file.write_attribute("/", "time", 0.25);
    file.close();  // replaces an older file

    const auto saved = hdf5::open(path, mesh);
    const auto read = saved.read<double, 2>("fluid/density", mesh, BlockCyclic<1, 8>{});
    const double difference = max(abs(read - density)).item();
    const std::string unit = saved.attribute<std::string>("fluid/density", "unit");
    if (world.rank() == 0)
      std::printf("%s in %s\nlargest difference: %g\n", to_string(read).c_str(), unit.c_str(),
                  difference);
  });
}
