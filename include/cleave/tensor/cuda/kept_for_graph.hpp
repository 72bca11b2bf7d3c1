// Memory that a graph uses and does not own: it is kept as long as the graph is there.
#pragma once

#include <memory>
#include <utility>
#include <vector>

namespace cleave::cuda::detail {

/// What has been taken while a stream of this thread was captured, or let go of meanwhile, and must
/// not be anyone else's before the graph goes. `Graph` takes it over; a capture by other means
/// leaves it alone. One list per thread.
class KeptForGraph {
 public:
  using Memory = std::vector<std::shared_ptr<void>>;

  static KeptForGraph& of_thread() {
    static thread_local KeptForGraph list;
    return list;
  }

  KeptForGraph() = default;
  KeptForGraph(const KeptForGraph&) = delete;  // the thread has one
  KeptForGraph& operator=(const KeptForGraph&) = delete;
  ~KeptForGraph() {
    if (!memory_.empty()) new Memory(std::move(memory_));  // graphs may use it for ever
  }

  void add(std::shared_ptr<void> memory) { memory_.push_back(std::move(memory)); }
  Memory take() { return std::exchange(memory_, {}); }

 private:
  Memory memory_;
};

}  // namespace cleave::cuda::detail
