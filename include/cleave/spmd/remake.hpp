// Graphs and programs whose extents contain symbols are made again when the extents are known: the
// function is traced, and the graph expanded, for these extents. So everything that depends on
// extents, also in code of the function, is what calls on DTensors make of it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/spmd/extent.hpp>

namespace cleave::inline v0::spmd {

namespace detail {

/// A scope in which symbols stand for extents, on this thread.
class BoundSymbols {
 public:
  BoundSymbols(const Symbols& symbols, const Shape& extents)
      : symbols_(symbols), extents_(extents), outer_(innermost()) {
    innermost() = this;
  }
  BoundSymbols(const BoundSymbols&) = delete;  // a scope guard
  ~BoundSymbols() { innermost() = outer_; }

  /// The innermost scope, or null.
  static const BoundSymbols*& innermost() {
    static thread_local const BoundSymbols* scope = nullptr;
    return scope;
  }

  /// Whether all symbols of an expression stand for extents; sets its value.
  static bool evaluate(const Extent& extent, index_t& value) {
    const BoundSymbols* const scope = innermost();
    if (scope == nullptr) return false;
    value = extent.value().constant;
    for (int i = 0; i < extent.symbols().count; ++i) {
      const int k = scope->symbols_.find(extent.symbols().of[std::size_t(i)].name);
      if (k < 0) return false;
      value += extent.value().factor[std::size_t(i)] * scope->extents_[k];
    }
    return true;
  }

 private:
  const Symbols& symbols_;
  const Shape& extents_;
  const BoundSymbols* outer_;
};

}  // namespace detail

/// Makes a graph or program X again. Empty in constant expressions.
template <class X>
class Remake {
 public:
  constexpr Remake() = default;
  template <class F>
  explicit Remake(const F& f) : function_(new Function(std::make_shared<std::function<X()>>(f))) {}
  constexpr Remake(const Remake& other) { copy(other); }
  constexpr Remake(Remake&& other) noexcept : function_(std::exchange(other.function_, nullptr)) {}
  constexpr Remake& operator=(Remake other) noexcept {
    std::swap(function_, other.function_);
    return *this;
  }
  constexpr ~Remake() {
    if (function_ != nullptr) destroy(function_);
  }

  constexpr explicit operator bool() const { return function_ != nullptr; }
  X operator()() const { return (**function_)(); }

 private:
  using Function = std::shared_ptr<const std::function<X()>>;  // behind a pointer: not constexpr

  constexpr void copy(const Remake& other) {
    if (other.function_ != nullptr) function_ = copy_of(*other.function_);
  }
  static Function* copy_of(const Function& function) { return new Function(function); }
  static void destroy(Function* function) { delete function; }

  Function* function_ = nullptr;
};

/// Whether extents of a graph or program contain symbols.
constexpr bool is_symbolic(const auto& of) { return of.symbols.count > 0; }

namespace detail {

/// Whether extents may contain symbols: not those of a constant without any.
template <class X>
inline constexpr bool may_be_symbolic = true;
template <class X>
  requires requires { std::tuple_size<decltype(X::symbolic)>::value; }
inline constexpr bool may_be_symbolic<X> = std::tuple_size_v<decltype(X::symbolic)> > 0;

/// "batch = 6, seq = 3"
inline std::string extents_text(const Symbols& symbols, const Shape& extents) {
  std::string text;
  for (int i = 0; i < symbols.count; ++i)
    text += (i > 0 ? ", " : "") + std::string(symbols.of[std::size_t(i)].name) + " = " +
            std::to_string(extents[i]);
  return text;
}

/// Calls f while symbols stand for extents; an Error then names them.
template <class F>
auto with_bound(const Symbols& symbols, const Shape& extents, const F& f) {
  const BoundSymbols scope(symbols, extents);
  try {
    return f();
  } catch (const Error& error) {
    throw Error(error.operation(),
                error.message() + "; the program runs with " + extents_text(symbols, extents),
                error.context());
  }
}

/// @throws Error if extents contain symbols, but what made the graph or program is not known
template <class X>
void require_remake(const X& of) {
  if (is_symbolic(of) && !of.remake)
    throw Error("spmd",
                "a graph or program with symbols must be as trace, expand, then and frozen return "
                "it: this one was changed, or made in a constant expression without frozen");
}

/// A graph or program made again for extents of its symbols.
template <class X>
auto remade(const X& of, const Shape& extents) {
  require_remake(of);
  return with_bound(of.symbols, extents, [&] { return of.remake(); });
}

/// A function that makes a symbolic graph or program again, and returns another one as it is.
template <class X>
auto remaking(const X& of) {
  if constexpr (!may_be_symbolic<X>) {
    return [of] { return of; };
  } else {
    require_remake(of);
    if constexpr (std::is_pointer_v<decltype(of.remake)>) return of.remake;
    else
      return [again = of.remake, of = is_symbolic(of) ? X{} : of] { return again ? again() : of; };
  }
}

}  // namespace detail

}  // namespace cleave::inline v0::spmd
