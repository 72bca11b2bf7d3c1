// How every functional collective starts and runs: the calling thread checks its arguments and
// finds its ranks; then it communicates asynchronously, on a separate group of these ranks.
#pragma once

#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <cleave/async/async.hpp>
#include <cleave/comm/comm_scope.hpp>
#include <cleave/core/call_site.hpp>
#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/functional/bundle.hpp>
#include <cleave/functional/functional_ranks.hpp>

namespace cleave::inline v0::functional::detail {

using cleave::detail::piece_of;

/// The group on which a started collective runs, with names for errors and traces.
class Channel {
 public:
  Channel(std::shared_ptr<Communicator> group, std::string axes, const char* operation)
      : group_(std::move(group)), axes_(std::move(axes)), operation_(operation) {}

  const Communicator& group() const noexcept { return *group_; }
  /// The same ranks for host memory.
  Channel on_host() const { return {{group_, &group_->host()}, axes_, operation_}; }
  const char* operation() const noexcept { return operation_; }
  const std::string& name() const noexcept { return axes_.empty() ? group_->label() : axes_; }

  void run(Collective call) const { run({&call, 1}); }

  /// Runs several calls in one round.
  void run(std::span<Collective> calls) const {
    for (Collective& call : calls) {
      call.operation = operation_;
      call.axes = axes_.c_str();
      call.site = cleave::detail::CommPlace::current().site;
    }
    if (!calls.empty()) group_->run_all(calls);
  }

 private:
  std::shared_ptr<Communicator> group_;
  std::string axes_;
  const char* operation_;
};

/// A collective that has been called but not started.
class Entry {
 public:
  /// @param operation  the function that the user called
  /// @param site       where it was called
  /// @throws Error     if the group is invalid @see Group::communicator
  template <class Device>
  Entry(Device device, const char* operation, const Group& group, CallSite site)
      : operation_(operation),
        scope_(site),
        ranks_(communicator_on(device, group.communicator(operation))),
        axes_(group.axes()) {}

  int size() const noexcept { return ranks_.size(); }
  const char* operation() const noexcept { return operation_; }

  [[noreturn]] void fail(const std::string& message, const std::string& shapes = {}) const {
    throw Error(operation_, message, {.shapes = shapes, .rank = ranks_.state().world_rank});
  }

  /// The dimension `given`, counted from 0. @throws Error if it does not exist
  int dim(int given, const Shape& extents) const {
    const int d = given < 0 ? given + extents.dims : given;
    if (d < 0 || d >= extents.dims)
      fail("dimension " + std::to_string(given) + " of " + std::to_string(extents.dims) +
               " does not exist",
           to_string(extents));
    return d;
  }

  /// The extent of each rank's piece of a dimension. @throws Error if pieces would differ
  index_t piece_extent(const Shape& extents, int d) const {
    if (extents[d] % size() != 0)
      fail("dimension " + std::to_string(d) + " has " + std::to_string(extents[d]) +
               " elements, which the " + std::to_string(size()) + " ranks of group '" +
               (axes_.empty() ? ranks_.label() : axes_) +
               "' cannot share equally; pad it, or redistribute a DTensor, whose shards may differ",
           to_string(extents));
    return extents[d] / size();
  }

  /// The extent of a dimension on all ranks together. @throws Error if index_t cannot hold it
  index_t of_all(const Shape& extents, int d) const {
    if (extents[d] > std::numeric_limits<index_t>::max() / size())
      fail("dimension " + std::to_string(d) + " of the " + std::to_string(size()) +
               " ranks together has more elements than index_t can hold",
           to_string(extents));
    return extents[d] * size();
  }

  /// Starts f(channel) asynchronously.
  /// @collective every rank of the group, in the same order as its other asynchronous calls
  template <class Device, class F>
  auto start(Device device, F f) const {
    return start_async(device, ranks_,
                       [channel = Channel(ranks_.duplicate(), axes_, operation_),
                        f = std::move(f)]() mutable { return f(channel); });
  }

 private:
  const char* operation_;
  cleave::detail::PlaceScope scope_;  ///< until the collective has started
  Communicator& ranks_;
  std::string axes_;
};

}  // namespace cleave::inline v0::functional::detail
