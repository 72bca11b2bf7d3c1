// A directory for the checkpoints of a test.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <dirent.h>
#include <unistd.h>

#include <cleave/comm/world.hpp>
#include <cleave/core/error.hpp>
#include <cleave/functional.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::testing {

inline std::vector<std::string> files_of(const std::string& directory) {
  std::vector<std::string> names;
  if (DIR* const open = opendir(directory.c_str())) {
    while (const dirent* const entry = readdir(open))
      if (entry->d_name[0] != '.') names.push_back(entry->d_name);
    closedir(open);
  }
  return names;
}

/// A new directory that the ranks of a world share; rank 0 removes it at the end.
class SharedDirectory {
 public:
  explicit SharedDirectory(const World& world) : world_(&world) {
    Tensor<std::uint8_t, 1> name({256});
    name.fill_(0);
    if (world.rank() == 0) {
      const std::string made = new_directory();
      if (made.size() >= std::size_t(name.size())) throw Error("test", made + " is too long");
      std::copy(made.begin(), made.end(), name.data());
    }
    const auto all = functional::broadcast(name, 0, world).wait();
    path_ = reinterpret_cast<const char*>(all.data());
  }
  ~SharedDirectory() {
    if (world_->rank() != 0) return;
    for (const std::string& name : files_of(path_)) {
      for (const std::string& file : files_of(path_ + "/" + name))
        unlink((path_ + "/" + name + "/" + file).c_str());
      rmdir((path_ + "/" + name).c_str());
    }
    rmdir(path_.c_str());
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  static std::string new_directory() {
    for (int number = 0;; ++number) {
      const std::filesystem::path path =
          std::filesystem::temp_directory_path() /
          ("cleave-checkpoint-" + std::to_string(getpid()) + "-" + std::to_string(number));
      if (std::filesystem::create_directory(path)) return path.string();  // else there is one
    }
  }

  const World* world_;
  std::string path_;
};

/// Before rank 0 removes what other ranks read.
inline void barrier(const World& world) {
  const Tensor<std::int32_t, 0> one(std::array<index_t, 0>{}, {1});
  functional::all_reduce(one, Sum{}, world).wait();
}

}  // namespace cleave::testing
