// The function that `run` calls on every rank, type-erased.
#pragma once

#include <memory>
#include <type_traits>

#include <cleave/comm/world.hpp>

namespace cleave::detail {

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

}  // namespace cleave::detail
