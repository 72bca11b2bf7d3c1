// A file that all ranks of a test use.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <unistd.h>

#include <cleave/comm/world.hpp>

namespace cleave::testing {

/// A name that all ranks have, of a file that the first one removes at the end.
struct SharedFile {
  const World& world;
  std::string path;

  /// @collective every rank
  explicit SharedFile(const World& all, const std::string& ending = ".npy") : world(all) {
    std::int64_t number = getpid();
    world.communicator().run(
        Collective::broadcast(ConstView::dense(&number, DType::int64, Shape::filled(1, 1)),
                              View::dense(&number, DType::int64, Shape::filled(1, 1)), 0));
    path = (std::filesystem::temp_directory_path() / ("cleave-" + std::to_string(number) + ending))
               .string();
  }
  SharedFile(const SharedFile&) = delete;
  ~SharedFile() {
    if (world.rank() == 0) std::remove(path.c_str());
  }
  std::string bytes() const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

}  // namespace cleave::testing
