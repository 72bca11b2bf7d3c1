// For networks with bitwise equal losses on any mesh: a linear layer of exact products, and the
// exact norm of the gradients. The operations are in ops/.
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <vector>

#include <cleave/functional/reduce_gather.hpp>
#include <cleave/kernels/exact_words.hpp>
#include <cleave/kernels/host/exact_row.hpp>
#include <cleave/nn/clip.hpp>
#include <cleave/nn/layers.hpp>
#include <cleave/ops/products/exact_products.hpp>

namespace cleave::inline v0::nn {

/// y = x W^T + b by exact products, which its gradients use too. @see cleave::linear<exact>
template <class W = Lazy<float, 2>, class B = Lazy<float, 1>>
struct ExactLinear {
  W weight;  ///< [outputs, inputs]
  B bias;    ///< [outputs]
  static constexpr names members{"weight", "bias"};
  using colwise = Cut<Replicate, Shard<0>, Shard<0>>;
  using rowwise = Cut<Shard<-1>, Shard<1>, Replicate>;

  /// @param x  [.., inputs]
  auto operator()(const auto& x) const {
    return cleave::linear<exact>(x, detail::made(weight), detail::made(bias));
  }
};
template <class W, class B>
ExactLinear(W, B) -> ExactLinear<W, B>;

namespace detail {

/// Adds the squares of the elements of a gradient to exact sums.
inline void add_squares(const Trained<Host>& p, kernels::ExactRows& sums) {
  if (p.gradient.size() == 0) return;
  with_real_type("grad_norm", p.gradient.dtype, [&]<class Real>(Real*) {
    over_dense_gradient<Real>(Host{}, p.gradient, [&](index_t begin, index_t end, const Real* g) {
      constexpr index_t most = kernels::ExactRows::block;
      double wide[std::size_t(most)];
      for (index_t i = 0, n = end - begin; i < n; i += most) {
        const index_t count = std::min(most, n - i);
        for (index_t j = 0; j < count; ++j) wide[j] = double(accumulator_t<Real>(g[i + j]));
        sums.add_products(wide, wide, count);
      }
    });
  });
}

}  // namespace detail

/// `grad_norm` as the root of the exact sum of squares, rounded once: the same on any mesh.
/// @collective the ranks of every mesh
template <cleave::detail::ExactTag E, class M>
double grad_norm(const M& m) {
  using Words = Tensor<kernels::ExactWord, 1>;
  constexpr kernels::ExactTerms terms = kernels::ExactTerms::squares;
  const kernels::ExactFormat format = kernels::exact_format<double>(terms);
  static_assert(std::is_same_v<trained_device_t<M>, Host>,
                "cleave: the exact norm of gradients supports parameters on the host only");
  const std::vector<Trained<Host>> list = trained_parameters(m);
  std::vector<const MeshState*> meshes;
  for (const Trained<Host>& p : list) {
    if (p.mesh != nullptr && !p.mesh->is_member())
      throw Error("grad_norm", "a parameter is on a mesh that does not contain this rank");
    if (std::find(meshes.begin(), meshes.end(), p.mesh) == meshes.end()) meshes.push_back(p.mesh);
  }
  const Words total({index_t(format.words())});
  total.fill_(0);
  for (const MeshState* mesh : meshes) {
    const Words mine({index_t(format.words())});
    kernels::ExactRows sums(format, mine.data());
    for (const Trained<Host>& p : list)
      if (p.mesh == mesh && p.has_gradient && p.is_first_replica()) detail::add_squares(p, sums);
    sums.finish();
    const Words all =
        mesh == nullptr
            ? mine
            : Words(functional::all_reduce(mine, Sum{}, functional::Group(mesh->group().host()))
                        .wait());
    for (index_t i = 0; i < total.size(); ++i) total(i) += all(i);
  }
  return kernels::exact_value<double>(terms, total.data(), {kernels::ExactEpilogue::root, 1});
}

/// `clip_grad_norm_` with the exact norm.
template <cleave::detail::ExactTag E, class M>
double clip_grad_norm_(const M& m, double max_norm) {
  return detail::clip_to(m, max_norm, grad_norm<E>(m));
}

}  // namespace cleave::inline v0::nn
