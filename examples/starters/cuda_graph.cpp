// A step of a program as a CUDA graph: captured once, replayed with one call, including
// collectives.
//
//     cuda_graph --ranks 1                                  one GPU
//     CLEAVE_CUDA_COMM=nccl cuda_graph --ranks 4            four GPUs, ranks are threads
//     mpirun -n 4 cuda_graph                                four GPUs, ranks are processes
//
// Power iteration: x becomes a x / |a x| until it is the eigenvector of the largest eigenvalue.
#include <cmath>
#include <cstdio>

#include <cleave/cuda.hpp>

using namespace cleave;
using axes::tp;

int main(int argc, char** argv) {
  return run<Cuda>(argc, argv, [](World& world, Cuda device) {
    const auto mesh = init_device_mesh<tp>(world, {world.size()}, device);

    // a = 1 1^T + I: its largest eigenvalue is n + 1, with a constant eigenvector
    const index_t n = 96;
    Tensor<double, 2> table({n, n});
    for (index_t i = 0; i < n; ++i)
      for (index_t j = 0; j < n; ++j) table(i, j) = i == j ? 2.0 : 1.0;
    Tensor<double, 2> start({n, 1});
    for (index_t i = 0; i < n; ++i) start(i, 0) = double(i);
    const auto a = distribute_tensor(table, mesh, Shard<0>{});   // a[S0]
    const auto x = distribute_tensor(start, mesh, Replicate{});  // x[R]
    const auto length = zeros<double>({1, 1}, mesh, Replicate{});

    // the results of the graph are written to tensors that exist before it
    const auto step = [&] {
      const auto y = matmul(a, x).redistribute(Replicate{});  // y[R]: an all-gather
      const auto norm = sqrt(sum(square(y)));
      length.to_local().fill_(0);
      length.to_local().copy_((length + norm).to_local());
      x.to_local().copy_((y / norm).to_local());
    };
    step();  // first-use initialisation happens outside of the graph
    const cleave::cuda::Graph graph(step);
    for (int i = 0; i < 50; ++i) graph.launch();

    const double eigenvalue = length.to_local().item();  // waits for the GPU
    if (world.rank() == 0) std::printf("largest eigenvalue %.6f\n", eigenvalue);
  });
}
