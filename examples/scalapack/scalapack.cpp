// A matrix product of ScaLAPACK's, pdgemm_, on the memory of DTensors.
//
//     mpirun -n 4 scalapack
//
// The local arrays of x[m, n] hold rows; to ScaLAPACK, which stores columns, they are the matrix
// [n, m]. So c = a b is computed as transpose(c) = transpose(b) transpose(a): b comes first.
#include <cmath>
#include <cstdio>

#include <cleave/cleave.hpp>
#include <cleave/interop/scalapack.hpp>

using namespace cleave;
using axes::dp;
using axes::tp;

extern "C" void pdgemm_(const char* transa, const char* transb, const int* m, const int* n,
                        const int* k, const double* alpha, const double* a, const int* ia,
                        const int* ja, const int* desca, const double* b, const int* ib,
                        const int* jb, const int* descb, const double* beta, double* c,
                        const int* ic, const int* jc, const int* descc);

int main(int argc, char** argv) {
  return run(argc, argv, [](World& world) {
    const int across = world.size() % 2 == 0 ? 2 : 1;
    const auto mesh = init_device_mesh<dp, tp>(world, {world.size() / across, across});

    const int m = 70, n = 50, k = 90, first = 1;
    const double one = 1, zero = 0;
    const auto rows = BlockCyclic<0, 16>{};
    const auto columns = BlockCyclic<1, 16>{};
    const auto a = rand<double>({m, k}, mesh, rows, columns);
    const auto b = rand<double>({k, n}, mesh, rows, columns);
    const auto c = zeros<double>({m, n}, mesh, rows, columns);
    const auto da = scalapack::descriptor(a);
    const auto db = scalapack::descriptor(b);
    const auto dc = scalapack::descriptor(c);
    pdgemm_("N", "N", &n, &m, &k, &one, b.to_local().data(), &first, &first, db.data(),
            a.to_local().data(), &first, &first, da.data(), &zero, c.to_local().data(), &first,
            &first, dc.data());

    const auto x = a.full_tensor(), y = b.full_tensor(), z = c.full_tensor();
    double error = 0;
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        double sum = 0;
        for (int l = 0; l < k; ++l) sum += x(i, l) * y(l, j);
        error = std::fmax(error, std::fabs(z(i, j) - sum));
      }
    if (world.rank() == 0)
      std::printf("%s\nlargest difference from a loop's product: %s\n", to_string(c).c_str(),
                  error < 1e-12 ? "below 1e-12" : std::to_string(error).c_str());
  });
}
