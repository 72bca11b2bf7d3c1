// A parameter that takes any callable without making the function a template: functions that are
// often called with lambdas are compiled once.
#pragma once

#include <concepts>
#include <type_traits>

namespace cleave::testing {

template <class Signature>
class FunctionRef;

/// Refers to a callable that outlives the call it is passed to.
template <class Result, class... Args>
class FunctionRef<Result(Args...)> {
 public:
  template <class F>
    requires(!std::same_as<F, FunctionRef> && std::is_invocable_r_v<Result, const F&, Args...>)
  FunctionRef(const F& f)
      : function_(&f), call_([](const void* function, Args... args) -> Result {
          return (*static_cast<const F*>(function))(args...);
        }) {}

  Result operator()(Args... args) const { return call_(function_, args...); }

 private:
  const void* function_;
  Result (*call_)(const void*, Args...);
};

}  // namespace cleave::testing
