// exchange_halo_async: receives ghosts while the rank computes something else.
#pragma once

#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cleave/async/async.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/ops/stencil/exchange_halo.hpp>

namespace cleave::inline v0 {

namespace detail {

/// One of the values that a job yields together. The last one to be dropped waits for the job.
template <std::size_t K, class All>
class PromisedPart final : public Promised<std::tuple_element_t<K, All>> {
 public:
  explicit PromisedPart(std::shared_ptr<Async<All>> all) : all_(std::move(all)) {}

  void wait() override {
    const All& all = all_->wait();
    if (!this->value_) this->value_.emplace(std::get<K>(all));
  }
  void wait_quietly() noexcept override {}
  bool ready() const override { return all_->ready(); }

 private:
  std::shared_ptr<Async<All>> all_;
};

/// An Async for each value of a tuple.
template <class... X>
std::tuple<Async<X>...> apart(Async<std::tuple<X...>> together) {
  using All = std::tuple<X...>;
  const auto all = std::make_shared<Async<All>>(std::move(together));
  return [&]<std::size_t... K>(std::index_sequence<K...>) {
    return std::tuple<Async<X>...>{Async<X>(std::make_unique<PromisedPart<K, All>>(all))...};
  }(std::index_sequence_for<X...>{});
}

}  // namespace detail

/// Starts `exchange_halo` and returns at once; `apply`, or `wait`, waits for the ghosts.
///
///     const auto h = exchange_halo_async(u, edges(periodic));
///     const auto w = apply(Source{}, q);   // meanwhile
///     const auto v = apply(Heat{}, h);
///
/// Until then the tensors must not be written, which is an Error when the ghosts are read, and
/// nothing else may use their margins.
/// @param a     as for `exchange_halo`; DTensors
/// @return      an Async of a Halo; a std::tuple of several, which arrive together
/// @collective  every rank of the mesh, in the same order as its other asynchronous calls
/// @throws Error as `exchange_halo`, before it communicates
template <class... A>
auto exchange_halo_async(const A&... a) {
  using Arguments = detail::HaloArguments<A...>;
  if constexpr (Arguments::check()) {
    using First = std::tuple_element_t<0, std::tuple<A...>>;
    static_assert(is_dtensor<First>,
                  "cleave: exchange_halo_async takes DTensors; exchange_halo of a Tensor does not "
                  "communicate");
    if constexpr (is_dtensor<First>) {
      const auto exchange = Arguments::prepare(a...);
      const MeshState& mesh = exchange->first().mesh().state();
      const bool member = mesh.is_member();  // a rank outside has nothing to wait for
      auto started =
          start_async(typename First::device_type{}, member ? mesh.group() : *mesh.world(),
                      [exchange, duplicate = member ? mesh.duplicate() : nullptr] {
                        if (duplicate != nullptr) exchange->run(*duplicate);
                        return exchange->halos();
                      });
      auto halos = detail::apart(std::move(started));
      if constexpr (Arguments::tensors == 1) return std::get<0>(std::move(halos));
      else return halos;
    }
  }
}

}  // namespace cleave::inline v0
