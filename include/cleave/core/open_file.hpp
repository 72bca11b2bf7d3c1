// Files as POSIX has them, for positions beyond the buffers of the C library: several ranks write
// to one file, and a finished file replaces an old one at once.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cleave/core/error.hpp>

namespace cleave::inline v0::detail {

/// An open file or directory. Errors name the function that the user called, and the path.
class OpenFile {
 public:
  OpenFile(const char* operation, std::string path, int flags)
      : operation_(operation),
        path_(static_cast<std::string&&>(path)),
        file_(::open(path_.c_str(), flags, 0666)) {
    if (file_ < 0) fail("cannot be opened");
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { ::close(file_); }

  std::uint64_t size() const {
    struct stat status;
    if (::fstat(file_, &status) != 0) fail("cannot be read");
    return std::uint64_t(status.st_size);
  }
  void resize(std::uint64_t bytes) const {
    if (::ftruncate(file_, off_t(bytes)) != 0) fail("cannot be written");
  }
  void write_at(std::uint64_t offset, const void* data, std::size_t bytes) const {
    for (const auto* from = static_cast<const char*>(data); bytes > 0;) {
      const ssize_t written = ::pwrite(file_, from, bytes, off_t(offset));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) fail("cannot be written");
      from += written, offset += std::uint64_t(written), bytes -= std::size_t(written);
    }
  }
  void read_at(std::uint64_t offset, void* data, std::size_t bytes) const {
    for (auto* to = static_cast<char*>(data); bytes > 0;) {
      const ssize_t read = ::pread(file_, to, bytes, off_t(offset));
      if (read < 0 && errno == EINTR) continue;
      if (read == 0) throw Error(operation_, path_ + " is truncated");
      if (read < 0) fail("cannot be read");
      to += read, offset += std::uint64_t(read), bytes -= std::size_t(read);
    }
  }
  /// Flushes the contents to disk.
  void sync() const {
    if (::fsync(file_) != 0) fail("cannot be written");
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw Error(operation_, path_ + " " + what + ": " + std::strerror(errno));
  }

  const char* operation_;
  std::string path_;
  int file_;
};

/// Renames a finished file or directory to its final name, which replaces a file of that name.
inline void publish(const char* operation, const std::string& finished, const std::string& path) {
  if (::rename(finished.c_str(), path.c_str()) != 0)
    throw Error(operation, path + " cannot be replaced: " + std::strerror(errno));
  const std::size_t slash = path.find_last_of('/');
  const std::string parent = slash == path.npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  OpenFile(operation, parent, O_RDONLY | O_DIRECTORY).sync();
}

}  // namespace cleave::inline v0::detail
