// What `run` calls on every rank, without its type.
#pragma once

#include <memory>
#include <type_traits>

#include <cleave/comm/world.hpp>

namespace cleave::detail {

/// The user's function, whatever its type: little is to be compiled for another one. A reference.
class RankFunction {
 public:
  template <class F>
    requires(!std::is_same_v<F, RankFunction>)
  explicit RankFunction(F& f) : call_(call<F>) {
    if constexpr (std::is_function_v<F>) object_ = reinterpret_cast<void*>(&f);
    else object_ = const_cast<void*>(static_cast<const void*>(std::addressof(f)));
  }

  /// What f returns, 0 for void.
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
