// All ranks of a program, as seen by one of them, and the function that `run` calls on every rank.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include <cleave/comm/communicator.hpp>
#include <cleave/core/call_site.hpp>

namespace cleave::inline v0 {

/// The argument of the user's function in `run`: this rank's place among all ranks, and the
/// communicator from which meshes are made. A handle; copies share the communicator.
class World {
 public:
  /// @throws Error for a null communicator
  explicit World(std::shared_ptr<Communicator> communicator)
      : communicator_(std::move(communicator)) {
    if (communicator_ == nullptr) throw Error("World", "the communicator is null");
  }

  int rank() const noexcept { return communicator_->rank(); }
  int size() const noexcept { return communicator_->size(); }

  Communicator& communicator() const noexcept { return *communicator_; }
  const std::shared_ptr<Communicator>& shared_communicator() const noexcept {
    return communicator_;
  }

  /// A barrier: returns when all ranks have called it.
  ///
  /// @collective every rank of the world
  /// @throws Error if a rank has failed or left, or does not arrive within the time-out
  void barrier(CallSite where = CallSite::here()) const {
    Collective barrier = Collective{}.named("barrier");
    barrier.site = where;
    communicator_->run(barrier);
  }

 private:
  std::shared_ptr<Communicator> communicator_;
};

namespace detail {

/// A reference to the user's function of any type, so that less is compiled per type.
class RankFunction {
 public:
  template <class F>
    requires(!std::is_same_v<F, RankFunction>)
  explicit RankFunction(F& f) : call_(call<F>) {
    if constexpr (std::is_function_v<F>) object_ = reinterpret_cast<void*>(&f);
    else object_ = const_cast<void*>(static_cast<const void*>(std::addressof(f)));
  }

  /// The result of f; 0 for void.
  int operator()(World& world) const { return call_(object_, world); }

 private:
  template <class F>
  static int call(void* object, World& world) {
    F& f = *reinterpret_cast<F*>(object);
    if constexpr (std::is_void_v<decltype(f(world))>) return f(world), 0;
    else return f(world);
  }

  void* object_;
  int (*call_)(void*, World&);
};

}  // namespace detail

}  // namespace cleave::inline v0
