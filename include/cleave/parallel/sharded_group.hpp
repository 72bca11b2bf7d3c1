// A group of parameters that are gathered together: this rank's shards in one flat tensor, and the
// unsharded parameters while they are used. Independent of modules and placements.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/async/async.hpp>
#include <cleave/core/error.hpp>
#include <cleave/grad/record.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/ops/elementwise/cast.hpp>
#include <cleave/parallel/flat_layout.hpp>
#include <cleave/parallel/group_gradients.hpp>
#include <cleave/parallel/group_order.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::inline v0::parallel {

/// x converted to element type To; x itself if it has this type.
template <class To, class X>
auto elements_as(const X& x) {
  if constexpr (std::is_same_v<To, typename X::value_type>) return x;
  else return cast<To>(x);
}

/// @tparam Device  of the parameters; on a GPU they are gathered, and their gradients reduced, on
///                 the second stream of a rank
/// @tparam T       element type of the stored parameters
/// @tparam C       element type in which they are gathered and used
/// @tparam R       element type in which gradients are reduced over ranks
template <class Device, class T, class C, class R>
class ShardedGroup final : public GroupLink {
  template <class E>
  using Flat = Tensor<E, 1, Device>;
  using Gradients = GroupGradients<R, Device>;

 public:
  using device_type = Device;
  using stored_type = T;
  using compute_type = C;
  using reduce_type = R;

  /// The unsharded parameters, with the count of in-place changes at which they were gathered.
  struct Whole {
    Flat<C> elements;
    unsigned changes;
  };

  FlatLayout layout;
  std::shared_ptr<GroupOrder> order;
  std::vector<const int*> uses{};  ///< per recorded call: how often backward still needs the whole
  const std::string* path = nullptr;  ///< of the module, see `with_paths`

  /// @collective every rank of the mesh
  template <class Mesh>
  ShardedGroup(const Mesh& mesh, int axis, std::shared_ptr<GroupOrder> of)
      : layout(mesh.extents()[axis]), order(std::move(of)), axis_(axis) {
    const auto held = std::make_shared<const Mesh>(mesh);
    mesh_ = {held, &held->state()};
    duplicated_mesh_ = mesh_->duplicate();
    group_ = duplicated_mesh_->group(mask());
  }

  AxisMask mask() const { return AxisMask(1) << axis_; }
  int axis() const { return axis_; }
  const Shape& coordinate() const { return mesh_->coordinate(); }
  index_t rank() const { return coordinate()[axis_]; }
  index_t own_size() const { return layout.size(rank()); }

  /// Allocates this rank's shards. @pre all parameters have been added to the layout
  void allocate() {
    // never empty, so that the count of in-place changes is the same on all ranks
    shard_ = Flat<T>({std::max<index_t>(1, own_size())});
  }
  /// The address of this rank's shard of parameter i.
  T* part(std::size_t i) const { return shard_.data() + layout.begin(i, rank()); }
  const std::shared_ptr<void>& storage() const { return shard_.storage(); }

  /// The number of in-place changes of the parameters.
  unsigned changes() const { return changes_in(Device{}, shard_.storage()); }

  /// Sets the number of neighbours on the axis that together keep the parameters between forward
  /// and backward. All ranks of the axis: each keeps its shards. One: each rank keeps the unsharded
  /// parameters. Otherwise: each keeps a part of them.
  /// @collective the ranks of the axis
  /// @throws Error unless `ranks` divides the number of ranks of the axis
  void keep_among(index_t ranks) {
    if (ranks < 1 || layout.ranks() % ranks != 0)
      throw Error("fully_shard",
                  "reshard_after_forward is " + std::to_string(ranks) + "; axis '" +
                      mesh_->label(mask()) + "' of " + std::to_string(layout.ranks()) +
                      " ranks is not divisible by it",
                  {.rank = mesh_->world_rank()});
    keepers_ = ranks;
    if (ranks == 1 || ranks == layout.ranks()) return;
    std::vector<int> neighbours(std::size_t(ranks), 0);
    std::iota(neighbours.begin(), neighbours.end(), int(rank() - rank() % ranks));
    neighbours_ = &group_->cached_subgroup(
        neighbours, mesh_->label(mask()) + " of " + std::to_string(ranks) + " neighbours");
  }
  bool reshards() const { return keepers_ > 1 || layout.ranks() == 1; }

  /// The part of the whole that this rank keeps for backward, if neighbours share it; else null.
  std::shared_ptr<const Whole> part_of(const Whole& whole) {
    if (neighbours_ == nullptr) return nullptr;
    if (auto part = part_.lock(); part != nullptr && part->changes == whole.changes) return part;
    const IndexRange own = shard_range(layout.size(), keepers_, rank() % keepers_);
    const auto part = std::make_shared<const Whole>(
        Whole{whole.elements.slice(0, own.begin, own.end).clone(), whole.changes});
    part_ = part;
    return part;
  }

  void start() override {
    if (is_fresh(whole_.lock())) return;
    if (gather_ && gather_changes_ == changes()) return;
    gather_.reset();
    gather_changes_ = changes();
    const cleave::detail::PlaceScope place(path);  // also if another group prefetches this one
    const auto part = tape::Sweep::current() != nullptr ? part_.lock() : nullptr;
    if (is_fresh(part)) return start_among_neighbours(part->elements);
    is_gathered_whole_ = layout.is_one_order();
    const Flat<C> mine = elements_as<C>(shard_.slice(0, 0, own_size()));
    if (layout.ranks() == 1) {  // nothing moves
      gather_.emplace(start_async(Device{}, mesh_->group(), [mine] { return mine; }));
      return;
    }
    start_gather(mine, layout.pieces(), *group_);
  }

  /// The unsharded parameters in their current state.
  /// @collective the ranks of the axis
  std::shared_ptr<const Whole> take() {
    if (auto whole = whole_.lock(); is_fresh(whole)) return whole;
    start();
    auto gather = std::move(*gather_);
    gather_.reset();
    Flat<C> elements = std::move(gather).wait();
    if (!is_gathered_whole_) {
      const Flat<C> joined({layout.size()});
      layout.join(Device{}, elements.view(), joined.view());
      elements = joined;
    }
    auto whole = std::make_shared<const Whole>(Whole{std::move(elements), gather_changes_});
    whole_ = whole;
    return whole;
  }

  bool is_wanted() const override {
    return std::any_of(uses.begin(), uses.end(), [](const int* count) { return *count > 0; });
  }

  /// Keeps the whole while backward calls the module again, because gradients need it right after.
  void keep(std::shared_ptr<const Whole> whole) {
    if (kept_ == nullptr)
      tape::Sweep::current()->at_end.push_back([self = weak_from_this()](bool) {
        if (const auto group = self.lock()) group->drop();
      });
    kept_ = std::move(whole);
  }
  void let_go() { kept_.reset(); }
  void drop() override {
    kept_.reset();
    gather_.reset();
  }

  /// Takes the gradients of a call: reduces them over ranks, with the accumulated ones, or only
  /// accumulates them if `sums_gradients` is false.
  /// @collective the ranks of the axis, if gradients are reduced
  static void take_gradients(const std::shared_ptr<ShardedGroup>& self, Gradients gradients) {
    if (self->kept_gradients_) {
      gradients.add(self->layout, *self->kept_gradients_);
      self->kept_gradients_.reset();
    }
    if (self->order->sums_gradients) return reduce(self, std::move(gradients));
    gradients.own();
    self->kept_gradients_.emplace(std::move(gradients));
  }
  void reduce_kept() override {
    if (!kept_gradients_) return;
    Gradients gradients = *std::exchange(kept_gradients_, std::nullopt);
    if (gradients.drop_stale())
      reduce(std::static_pointer_cast<ShardedGroup>(shared_from_this()), std::move(gradients));
  }
  /// Drops the accumulated gradients.
  void drop_gradients() { kept_gradients_.reset(); }

 private:
  static bool are_equal(const std::vector<Box>& pieces) {
    return std::all_of(pieces.begin(), pieces.end(),
                       [&](const Box& box) { return box.extent(0) == pieces[0].extent(0); });
  }

  bool is_fresh(const std::shared_ptr<const Whole>& whole) const {
    return whole != nullptr && whole->changes == changes();
  }

  static Collective named(const Collective& of, const std::string& axes, std::uint64_t detail) {
    Collective call = of.named("fully_shard", axes.c_str());
    call.detail = detail;
    return call;
  }

  /// Starts an all-gather.
  ///
  /// In forward, a prefetched group may remain unused, and its shard may change while peers still
  /// read. So the result is allocated at once, and peers read this rank's part from a copy in it.
  /// Backward ends all its gathers, so that the worker can allocate the result when the gather
  /// begins, after earlier work has freed its memory.
  void start_gather(const Flat<C>& mine, std::vector<Box> pieces, Communicator& group) {
    Flat<C> source = mine;
    std::optional<Flat<C>> result;
    if (tape::Sweep::current() == nullptr) {
      result = Flat<C>({layout.size()});
      source = (*result)[pieces[std::size_t(group.rank())]];
      if (source.size() > 0) source.copy_(mine);
    }
    gather_.emplace(start_async(Device{}, mesh_->group(),
                                [source, result, size = layout.size(), pieces = std::move(pieces),
                                 held = group.shared_from_this(), name = mesh_->label(mask()),
                                 detail = numbered_detail(order->module_number, number)] {
                                  const Flat<C> all = result ? *result : Flat<C>({size});
                                  Collective call = named(
                                      Collective::all_gather(source.view(), all.view(), pieces),
                                      name, detail);
                                  call.even = are_equal(pieces);
                                  held->run(call);
                                  return all;
                                }));
  }
  void start_among_neighbours(const Flat<C>& part) {
    std::vector<Box> pieces;
    for (index_t r = 0; r < keepers_; ++r) {
      const IndexRange range = shard_range(layout.size(), keepers_, r);
      pieces.push_back(
          {Shape(std::array<index_t, 1>{range.begin}), Shape(std::array<index_t, 1>{range.end})});
    }
    is_gathered_whole_ = true;
    start_gather(part, std::move(pieces), *neighbours_);
  }

  /// Starts the reduction; the next one, or the end of backward, passes the result to the leaves.
  static void reduce(const std::shared_ptr<ShardedGroup>& self, Gradients gradients) {
    const bool is_partial = gradients.complete(self->layout);
    std::vector<OtherSum> others = gradients.other_sums();
    auto sum = std::make_shared<Async<Flat<R>>>(
        self->start_sum(gradients.take_sums(), is_partial, std::move(others)));
    GroupOrder::take_reduction(self->order,
                               [self, sum, gradients = std::move(gradients)](bool complete) {
                                 if (complete) gradients.deliver(self->layout, sum->wait());
                               });
  }

  /// Starts a reduce-scatter of gradients in by-rank order; the result is this rank's part.
  ///
  /// @param is_partial  whether ranks of the axis have different contributions; if not, this rank's
  ///                    part is copied without communication over the axis
  Async<Flat<R>> start_sum(Flat<R> sums, bool is_partial, std::vector<OtherSum> others) const {
    const Flat<R> mine({own_size()});
    return start_async(
        Device{}, mesh_->group(),
        [sums = std::move(sums), mine, is_partial, others = std::move(others), layout = layout,
         rank = rank(), group = group_, mesh = duplicated_mesh_, mask = mask(),
         detail = numbered_detail(order->module_number, number)] {
          const std::vector<Box> pieces = layout.pieces();
          if (is_partial && layout.ranks() > 1) {
            Collective call =
                named(Collective::reduce_scatter(ReduceOp::sum, sums.view(), mine.view(), pieces),
                      mesh->label(mask), detail);
            call.even = are_equal(pieces);
            group->run(call);
          } else if (mine.size() > 0) {
            mine.copy_(sums[pieces[std::size_t(rank)]]);
          }
          for (const OtherSum& other : others) sum_over(*mesh, other, layout, rank, mine, detail);
          return mine;
        });
  }

  /// One all-reduce of this rank's shards of several parameters; in place if they are all.
  static void sum_over(const MeshState& mesh, const OtherSum& other, const FlatLayout& layout,
                       index_t rank, const Flat<R>& mine, std::uint64_t detail) {
    const auto part = [&](std::size_t i) {
      const index_t at = layout.begin(i, rank);
      return mine.slice(0, at, at + layout.extents(i, rank).product());
    };
    const bool is_all = other.parts.size() == layout.count();
    index_t size = 0;
    for (const std::size_t i : other.parts) size += part(i).size();
    if (size == 0) return;  // the same on all ranks of these axes
    const Flat<R> packed = is_all ? mine : Flat<R>({size});
    const auto each = [&](const auto& move) {
      index_t at = 0;
      for (const std::size_t i : other.parts) {
        const Flat<R> here = part(i);
        move(here, packed.slice(0, at, at + here.size()));
        at += here.size();
      }
    };
    if (!is_all) each([](const auto& here, const auto& there) { there.copy_(here); });
    mesh.group(other.axes)
        ->run(named(Collective::all_reduce(ReduceOp::sum, packed.view(), packed.view()),
                    mesh.label(other.axes), detail));
    if (!is_all) each([](const auto& here, const auto& there) { here.copy_(there); });
  }

  int axis_;
  std::shared_ptr<const MeshState> mesh_;
  std::shared_ptr<const MeshState> duplicated_mesh_;  ///< for asynchronous communication
  std::shared_ptr<Communicator> group_;               ///< of the axis, in the duplicated mesh
  Flat<T> shard_;
  std::weak_ptr<const Whole> whole_;
  std::shared_ptr<const Whole> kept_;
  std::weak_ptr<const Whole> part_;  ///< this rank's of keepers_ parts
  index_t keepers_ = 0;
  Communicator* neighbours_ = nullptr;  ///< the ranks of group_ that share the whole; may be null
  std::optional<Gradients> kept_gradients_;
  std::optional<Async<Flat<C>>> gather_;
  unsigned gather_changes_ = 0;     ///< the count of in-place changes at which gather_ started
  bool is_gathered_whole_ = false;  ///< the result of gather_ is in whole order, not by rank
};

}  // namespace cleave::inline v0::parallel
