// Ranks that communicate until something fails, for check.py. Each rank writes its own files: its
// standard error; and once it has communicated, its process id and the measured costs.
//
// usage: endure FOLDER COUNT     collectives of COUNT floats from or to every rank
#include <cstdio>
#include <cstdlib>
#include <string>

#include <unistd.h>

#include <cleave/comm/mpi.hpp>
#include <cleave/comm/run.hpp>

#include "../comm/failing_call.hpp"

using namespace cleave;

namespace {

void write(const std::string& file, const std::string& text) {
  const std::string draft = file + ".draft";
  std::FILE* to = std::fopen(draft.c_str(), "w");
  if (to == nullptr) return;
  std::fputs(text.c_str(), to);
  std::fclose(to);
  std::rename(draft.c_str(), file.c_str());  // readers see either nothing or the whole file
}

std::string text_of(const MachineCosts& costs) {
  char text[200];
  std::snprintf(text, sizeof text, "%d inside %g %g between %g %g %d", int(getpid()),
                costs.inside.latency_us, costs.inside.bytes_per_us, costs.between.latency_us,
                costs.between.bytes_per_us, costs.ranks_per_node);
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string folder = argv[1];
  const index_t count = std::atoll(argv[2]);
  return run(argc, argv, [&](World& world) {
    const std::string file = folder + "/rank" + std::to_string(world.rank());
    if (std::freopen((file + ".said").c_str(), "w", stderr) == nullptr) return 2;
    for (long round = 0;; ++round) {
      for (const CollectiveKind kind : testing::all_kinds)
        testing::communicate(world.communicator(), kind, count);
      if (round == 3) write(file + ".begun", text_of(world.communicator().state().machine));
    }
  });
}
