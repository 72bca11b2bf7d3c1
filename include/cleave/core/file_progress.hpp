// How far a rank is with writing or reading arrays, reported to the user while it lasts.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include <cleave/core/error.hpp>

namespace cleave::inline v0 {

namespace detail {

/// Who hears of the transfers of a thread: the innermost of those that live.
class ProgressListener {
 public:
  ProgressListener() : outer_(std::exchange(current(), this)) {}
  ProgressListener(const ProgressListener&) = delete;  // its address is known
  ProgressListener& operator=(const ProgressListener&) = delete;
  virtual void report(std::uint64_t done, std::uint64_t all) const = 0;

  /// Of this thread; may be null.
  static ProgressListener*& current() noexcept {
    static thread_local ProgressListener* innermost = nullptr;
    return innermost;
  }

 protected:
  ~ProgressListener() { current() = outer_; }

 private:
  ProgressListener* outer_;
};

}  // namespace detail

/// While an object lives, functions that this rank calls to write or read arrays call
/// f(bytes done, bytes in all): those of this rank in one call of such a function, about every
/// 8 MiB and at the end. These are save_npy and load_npy of DTensors, nn::save_safetensors,
/// nn::save_checkpoint, nn::load_checkpoint, and write and read of HDF5 and NetCDF files, which
/// report compressed arrays, and chunked ones that are read, only at the end. After the last
/// report, a file that is written is flushed to disk. Bytes of headers and attributes are not
/// counted.
///
///     const FileProgress progress([&](std::uint64_t done, std::uint64_t all) { bar(done, all); });
///     save_npy("x.npy", x);
///
/// If f throws, the call ends with an Error that has its message, on all ranks of collective
/// functions; what was written is removed and an old file stays, as for any error.
///
/// An object hears its own thread only, and hides an outer one. @collective none; files of HDF5 and
/// NetCDF are written in smaller pieces if any rank has an object
template <class F>
class FileProgress final : public detail::ProgressListener {
 public:
  explicit FileProgress(F f) : f_(std::move(f)) {}
  void report(std::uint64_t done, std::uint64_t all) const override { f_(done, all); }

 private:
  F f_;
};

namespace detail {

/// One call's bytes of arrays on this rank.
class FileTransfer {
 public:
  static constexpr std::uint64_t report_bytes = std::uint64_t(8) << 20;

  FileTransfer(const char* operation, std::uint64_t all) : operation_(operation), all_(all) {}

  /// Counts bytes, and reports if there are enough of them.
  /// @throws Error if the user's function throws anything
  void add(std::uint64_t bytes) {
    done_ += bytes;
    const ProgressListener* const listener = ProgressListener::current();
    if (listener == nullptr || bytes == 0) return;
    if (done_ < all_ && done_ - reported_ < report_bytes / 2) return;  // of several pieces
    reported_ = done_;
    try {
      listener->report(done_, all_);
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      throw Error(operation_, std::string("stopped by FileProgress: ") + error.what());
    } catch (...) {
      throw Error(operation_, "stopped by FileProgress");
    }
  }

  /// Calls f(first byte, number of bytes) for pieces of a run of bytes, and counts each.
  template <class F>
  void in_pieces(std::uint64_t bytes, const F& f) {
    for (std::uint64_t at = 0; at < bytes;) {
      const std::uint64_t piece = bytes - at < report_bytes ? bytes - at : report_bytes;
      f(at, piece);
      at += piece;
      add(piece);
    }
  }

 private:
  const char* operation_;
  std::uint64_t all_, done_ = 0, reported_ = 0;
};

}  // namespace detail

}  // namespace cleave::inline v0
