// Open files of the C library.
#pragma once

#include <cstdio>
#include <memory>

namespace cleave::inline v0::detail {

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

/// An open file, closed by its destructor.
using File = std::unique_ptr<std::FILE, FileCloser>;

}  // namespace cleave::inline v0::detail
