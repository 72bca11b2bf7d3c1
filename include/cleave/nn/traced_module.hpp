// Modules in traced functions: as arguments, with the dotted names of their parameters, and as
// results.
//
//     const auto graph = spmd::trace(step, spmd::args_of(model), spmd::arg<float>("x", {64, 32}));
//     spmd::Runner runner(spmd::expand(graph, schemas), mesh);
//     auto [loss] = runner.run<Loss>(model, x);
#pragma once

#include <cstddef>
#include <mutex>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include <cleave/grad/backward.hpp>
#include <cleave/nn/map_parts.hpp>
#include <cleave/nn/part.hpp>
#include <cleave/nn/visit.hpp>
#include <cleave/spmd/trace_function.hpp>

namespace cleave::inline v0::nn::detail {

template <class M>
constexpr bool has_traced_parameters() {
  bool traced = false;
  if constexpr (Param<M>) traced = cleave::detail::is_traced<cleave::detail::innermost_t<M>>;
  else if constexpr (Wrapper<M>) return has_traced_parameters<plain_t<M>>();
  else if constexpr (is_vector<M>) return has_traced_parameters<typename M::value_type>();
  else if constexpr (is_tuple<M>)
    [&]<class... X>(const std::tuple<X...>*) {
      traced = (has_traced_parameters<X>() || ...);
    }(static_cast<const M*>(nullptr));
  else if constexpr (Struct<M>)
    [&]<class... X>(Types<X...>) { traced = (has_traced_parameters<X>() || ...); }(fields_t<M>{});
  return traced;
}

/// Whether a module is one of a traced function.
template <class M>
inline constexpr bool is_traced_module = has_traced_parameters<M>();

}  // namespace cleave::inline v0::nn::detail

namespace cleave::inline v0::nn {

/// Options of an optimizer in a traced function: the learning rate is an input of the program.
template <class Options>
struct TracedOptions : Options {
  TracedNumber<double> rate;
};
template <class X>
inline constexpr bool is_traced_options = false;
template <class Options>
inline constexpr bool is_traced_options<TracedOptions<Options>> = true;

}  // namespace cleave::inline v0::nn

namespace cleave::inline v0::spmd {

namespace detail {

/// A text that lives as long as the program; equal texts share memory. Graphs refer to it.
inline const char* interned(const std::string& text) {
  static std::mutex mutex;
  static std::set<std::string>* const texts = new std::set<std::string>;  // outlives other statics
  const std::lock_guard lock(mutex);
  return texts->insert(text).first->c_str();
}

/// The dotted names of the parameters, the buffers and the learning rates of a module, in order.
template <class M>
std::vector<const char*> leaf_names(const M& module, const std::string& prefix) {
  std::vector<const char*> names;
  nn::visit(module, [&]<class X>(const std::string& path, const X&) {
    const std::string name = nn::join_path(prefix, path);
    if constexpr (nn::Param<X> || nn::is_buffer<X>) names.push_back(interned(name));
    else if constexpr (nn::has_learning_rate<X> && !nn::is_traced_options<X>)
      names.push_back(interned(nn::join_path(name, "learning_rate")));
  });
  return names;
}

/// Makes inputs of the parameters, the buffers and the learning rates of a module, in order.
class ModuleInputs {
 public:
  template <class M>
  ModuleInputs(Graph& graph, const M& module, const std::string& prefix)
      : graph_(graph), names_(leaf_names(module, prefix)) {}

  template <class X>
  auto operator()(const X& x) const {
    static_assert(!nn::is_lazy<X>,
                  "cleave: args_of: the module has uninitialised parameters; initialise them with "
                  "place(module, mesh), or with make(module, state) on one device");
    using V = cleave::detail::innermost_t<X>;
    Arg<typename V::value_type, V::dims, typename V::device_type> arg{names_[next_++], {}};
    const Shape shape(cleave::detail::innermost(x).shape());
    for (int d = 0; d < V::dims; ++d) arg.shape[std::size_t(d)] = shape[d];
    if constexpr (tape::is_tracked<X>) return requires_grad(input(graph_, arg));
    else return input(graph_, arg);
  }
  template <class Options>
    requires(nn::has_learning_rate<Options>)
  nn::TracedOptions<Options> options(const Options& x) const {
    return {x, input(graph_, NumberArg<double>{names_[next_++]})};
  }

 private:
  Graph& graph_;
  std::vector<const char*> names_;
  mutable std::size_t next_ = 0;
};

}  // namespace detail

/// A module as an argument of `trace`. @see args_of
template <class M>
struct ModuleArg {
  std::conditional_t<std::is_copy_constructible_v<M>, M, const M&> module;  // shares the elements
  std::string prefix;
};

/// The parameters and buffers of a module as arguments of `trace`, one input for each, with the
/// names "layers.0.up.weight", and the learning rate of an optimizer. The function is called with
/// the same struct of traced values; parameters that require a gradient do so there, too.
///
/// @param prefix  precedes the names: args_of(model, "model") gives "model.layers.0.up.weight"
template <class M>
  requires(nn::Struct<M> || nn::Group<M>)
ModuleArg<M> args_of(const M& module, const std::string& prefix = {}) {
  return {module, prefix};
}

template <class M>
struct InputOf<ModuleArg<M>> {
  static auto make(Graph& graph, const ModuleArg<M>& given) {
    const detail::ModuleInputs make(graph, given.module, given.prefix);
    return nn::map_tensors(given.module, make, make);
  }
};

/// The parameters, the buffers and the learning rates of a module, in order.
template <class M>
  requires(nn::Struct<M> || std::is_same_v<M, nn::None> || nn::is_buffer<M>)
struct LeavesOf<M> {
  static constexpr bool is_traced = nn::detail::is_traced_module<M>;

  static std::vector<const char*> names(const M& m, const char* prefix) {
    return detail::leaf_names(m, prefix);
  }

  template <class F>
  static constexpr void visit(const M& m, const F& f) {
    if constexpr (nn::is_buffer<M>) visit_buffer(m.value, f);
    else
      nn::each_part(m, [&](const auto& part, const auto&) {
        using X = std::remove_cvref_t<decltype(part)>;
        if constexpr (nn::Part<X>) each_leaf(part, f);
        else if constexpr (nn::has_learning_rate<X> && !nn::is_traced_options<X>)
          f(learning_rate_of(part));
      });
  }

 private:
  /// A function, since clang++ would look into a call with a HostNumber for every module.
  template <class Options>
  static constexpr HostNumber learning_rate_of(const Options& options) {
    return {options.learning_rate};
  }
  /// A Tensor, for example the counts of steps of an optimizer, is the same on all ranks.
  template <class X, class F>
  static constexpr void visit_buffer(const X& x, const F& f) {
    if constexpr (is_tensor<X>) f(OnAllRanks<X>{x});
    else each_leaf(x, f);
  }
};

}  // namespace cleave::inline v0::spmd
