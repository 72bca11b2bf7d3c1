// A field and the steps of a simulation in a NetCDF file, which all ranks write and read.
//
//     mpirun -n 4 netcdf [FILE]
//     python3 -c 'import netCDF4; print(netCDF4.Dataset("ocean.nc"))'
#include <cstdio>
#include <string>

#include <cleave/cleave.hpp>
#include <cleave/interop/netcdf.hpp>

using namespace cleave;
using axes::dp;

int main(int argc, char** argv) {
  const std::string path = argc > 1 && argv[1][0] != '-' ? argv[1] : "ocean.nc";
  return run(argc, argv, [&](World& world) {
    const auto mesh = init_device_mesh<dp>(world, {world.size()});
    const auto depth = reshape(arange<double>(3500, mesh), {50, 70}).redistribute(Balanced<0>{});

    auto file = netcdf::create(path, mesh);
    file.write("depth", depth, {"y", "x"}, {.chunk = {10, 70}, .deflate = 4});
    for (index_t step = 0; step < 3; ++step)  // "time" is unlimited
      file.write_record("level", step, depth * double(step), {"time", "y", "x"});
    file.write_attribute("depth", "units", "m");
    file.write_attribute("/", "time_step", 0.25);
    file.close();  // replaces an older file

    const auto saved = netcdf::open(path, mesh);
    const index_t last = saved.variable("level").shape[0] - 1;
    const auto read = saved.read_record<double, 2>("level", last, mesh, BlockCyclic<1, 8>{});
    const double difference = max(abs(read - depth * 2.0)).item();
    const std::string unit = saved.attribute<std::string>("depth", "units");
    if (world.rank() == 0)
      std::printf("%s in %s\nlargest difference: %g\n", to_string(read).c_str(), unit.c_str(),
                  difference);
  });
}
