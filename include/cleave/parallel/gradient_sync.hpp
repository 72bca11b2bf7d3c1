// Reduces gradients over mesh axes in buckets, overlapped with backward.
//
// The leaves of the tape pass on their gradients before these are reduced over the ranks of the
// axes. The reduction of a bucket starts when its last gradient has arrived and all earlier buckets
// have started, so that the order is the same on all ranks. The sums are available at the end of
// backward. The code is independent of the types of parameters, which only `add` knows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <cleave/async/async.hpp>
#include <cleave/core/config.hpp>
#include <cleave/core/dtype.hpp>
#include <cleave/grad/backward.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/nn/update.hpp>
#include <cleave/parallel/buckets.hpp>
#include <cleave/parallel/comm_hook.hpp>
#include <cleave/parallel/module_number.hpp>
#include <cleave/tensor/storage.hpp>
#include <cleave/tensor/strided_copy.hpp>

namespace cleave::inline v0::parallel {

/// Adds one array to another. @see update_elements
template <class T>
struct AddStep {
  CLEAVE_HOST_DEVICE void operator()(T& sum, const T& x) const {
    sum = T(accumulator_t<T>(sum) + accumulator_t<T>(x));
  }
};

/// @tparam Device  of the parameters
template <class Device>
class GradientSync final : public tape::GradientReceiver {
 public:
  /// @param axes  of the mesh, over which gradients are reduced
  /// @collective  the ranks that differ in these axes
  GradientSync(const MeshState& mesh, AxisMask axes, const BucketSizes& sizes, bool finds_unused)
      : axes_(axes),
        label_(mesh.label(axes)),
        coordinate_(mesh.coordinate()),
        group_(mesh.group(axes)),
        sizes_(sizes),
        finds_unused_(finds_unused),
        module_number_(next_module_number(mesh)) {
    if (group_->size() > 1) group_->duplicate();
  }
  GradientSync(const GradientSync&) = delete;  // leaves point to it
  GradientSync& operator=(const GradientSync&) = delete;
  ~GradientSync() override {
    for (Member& m : members_) *m.receiver = nullptr;
  }

  /// Registers a parameter, whose gradients this object then receives.
  template <class X>
  void add(const std::string& path, const Tracked<X>& parameter) {
    tape::Leaf<X>& leaf = tape::leaf_of(parameter, "replicate");
    if (leaf.receiver != nullptr)
      throw Error("replicate", "another wrapper already reduces the gradient of " + path);
    const View elements = parameter.value().to_local().view();
    members_.push_back({.path = path,
                        .leaf = tape::Ref<tape::RecordBase>(&leaf),
                        .receiver = &leaf.receiver,
                        .deliver = &deliver<X>,
                        .entry = {elements.dtype, elements.bytes()},
                        .extents = elements.extents});
    leaf.receiver = this;
    leaf.key = int(members_.size()) - 1;
  }
  /// Builds the buckets. @pre all parameters have been added
  void arrange() { arrange(reversed_order(members_.size())); }

  AxisMask axes() const noexcept override { return axes_; }
  std::size_t bucket_count() const noexcept { return buckets_.size(); }

  /// Sets the path under which the communication of buckets is listed. @see with_paths
  void set_path(const std::string* kept) noexcept { path_ = kept; }

  bool is_on() const noexcept { return is_on_; }
  void switch_on(bool on) {
    require_rest("set_requires_gradient_sync");
    is_on_ = on;
  }
  void set_hook(CommHook hook) {
    require_rest("register_comm_hook");
    hook_ = std::move(hook);
  }

  void ready(int key, const Layout& layout, const View& gradient) override {
    enter();
    Member& m = members_[std::size_t(key)];
    if (m.has_arrived)
      throw Error("replicate", "the gradient of " + m.path + " arrives twice in one backward");
    put(m, gives(m, layout) ? &gradient : nullptr);
    m.has_arrived = true;
    arrivals_.push_back(key);
    --buckets_[m.bucket].missing;
    while (is_on_ && next_ < buckets_.size() && buckets_[next_].missing == 0) start(next_++);
  }

  void dropped(int key) override { members_[std::size_t(key)].is_filled = false; }

 private:
  struct Member {
    std::string path;
    tape::Ref<tape::RecordBase> leaf;
    tape::GradientReceiver** receiver;  ///< in the leaf
    void (*deliver)(tape::RecordBase*, void* elements, std::shared_ptr<void> storage);
    BucketEntry entry;
    Shape extents;  ///< on this rank
    std::size_t bucket = 0;
    index_t begin = 0;         ///< the first element in its bucket
    bool has_arrived = false;  ///< in this backward
    bool is_filled = false;    ///< the bucket holds gradients of it that have not been reduced
  };
  struct Finished {};
  struct Bucket {
    DType dtype = DType::float32;
    index_t size = 0;  ///< elements
    std::vector<int> members{};
    std::vector<BucketPart> parts{};
    std::size_t missing = 0;                ///< members whose gradients have not arrived yet
    std::shared_ptr<void> elements{};       ///< allocated when the first gradient arrives
    std::optional<Async<Finished>> work{};  ///< last member, because it reads the elements
  };

  using Place = cleave::detail::PlaceScope;

  /// Passes the sum over ranks to the leaf, as the only owner of the elements.
  template <class X>
  static void deliver(tape::RecordBase* record, void* elements, std::shared_ptr<void> storage) {
    using T = typename X::value_type;
    auto& leaf = *static_cast<tape::Leaf<X>*>(record);
    const auto local = X::local_type::adopt(static_cast<T*>(elements), leaf.like.to_local().shape(),
                                            std::move(storage));
    leaf.arrive(gradient_t<X>::unchecked(local, leaf.like.mesh(), leaf.like.shape()));
  }

  void require_rest(const char* operation) const {
    if (in_progress_) throw Error(operation, "called while a backward is in progress");
  }

  void arrange(const std::vector<int>& order) {
    std::vector<BucketEntry> entries;
    for (const Member& m : members_) entries.push_back(m.entry);
    buckets_.clear();
    for (std::vector<int>& numbers : arrange_buckets(entries, order, sizes_)) {
      Bucket& bucket = buckets_.emplace_back();
      for (const int key : numbers) {
        Member& m = members_[std::size_t(key)];
        m.bucket = buckets_.size() - 1;
        m.begin = bucket.size;
        bucket.dtype = m.entry.dtype;
        bucket.size += m.extents.product();
        bucket.parts.push_back({key, m.path, m.extents, m.begin});
      }
      bucket.missing = numbers.size();
      bucket.members = std::move(numbers);
    }
  }

  /// Whether this rank contributes its gradient: if it is replicated on an axis, only the axis'
  /// first rank does.
  bool gives(const Member& m, const Layout& layout) const {
    bool gives = true;
    for (int a = 0; a < layout.axes; ++a) {
      if (!(axes_ >> a & 1u)) continue;
      if (layout[a].is_partial() && layout[a].op != ReduceOp::sum)
        throw Error("replicate",
                    "the gradient of " + m.path + " is Partial(" + name_of(layout[a].op) +
                        "); buckets are summed, so that a Partial gradient must be Partial(sum)");
      gives = gives && (layout[a].is_partial() || coordinate_[a] == 0);
    }
    return gives;
  }

  View place_of(const Member& m) const {
    auto* const base = static_cast<std::byte*>(buckets_[m.bucket].elements.get());
    return View::dense(base + m.begin * index_t(size_of(m.entry.dtype)), m.entry.dtype, m.extents);
  }

  /// Adds this rank's gradient to the bucket; null if this rank contributes nothing.
  void put(Member& m, const View* gradient) {
    Bucket& bucket = buckets_[m.bucket];
    if (bucket.elements == nullptr)
      bucket.elements = allocate_bytes(Device{}, std::size_t(bucket.size) * size_of(bucket.dtype));
    const View place = place_of(m);
    if (m.entry.bytes > 0) {
      if (m.is_filled) {
        if (gradient != nullptr) add_to(place, *gradient);
      } else if (gradient != nullptr) {
        strided_copy(Device{}, *gradient, place);
      } else {
        const Shape bytes(std::array<index_t, 1>{m.entry.bytes});
        strided_fill(Device{}, View::dense(place.data, DType::uint8, bytes), std::uint8_t(0));
      }
    }
    m.is_filled = true;
  }

  static void add_to(const View& sum, const View& gradient) {
    nn::detail::with_real_type("replicate", sum.dtype, [&]<class Real>(Real*) {
      auto* const to = static_cast<Real*>(sum.data);
      nn::detail::over_dense_gradient<Real>(
          Device{}, gradient, [&](index_t begin, index_t end, const Real* g) {
            update_elements(kernels::On<Device>{}, "replicate", AddStep<Real>{}, end - begin,
                            to + begin, g);
          });
    });
  }

  /// Prepares for a backward, at its first gradient.
  void enter() {
    if (in_progress_) return;
    at_backward_end([this](bool complete) { end(complete, true); });
    place_at_end_ = tape::Sweep::current()->at_end.size();
    in_progress_ = true;
    arrivals_.clear();
    next_ = 0;
  }

  /// @param may_wait  defer once behind functions registered later, which may pass on gradients
  void end(bool complete, bool may_wait) {
    if (complete && may_wait && tape::Sweep::current()->at_end.size() > place_at_end_)
      return at_backward_end([this](bool still) { end(still, false); });
    std::exception_ptr error;
    try {
      if (complete && is_on_) finish();
    } catch (...) {
      error = std::current_exception();
    }
    leave(complete && !is_on_);
    if (error != nullptr) std::rethrow_exception(error);
  }

  /// @param keeps  keep gradients that have arrived for a later backward
  void leave(bool keeps) {
    for (Bucket& bucket : buckets_) {
      bucket.work.reset();
      if (!keeps) bucket.elements.reset();
      bucket.missing = bucket.members.size();
    }
    for (Member& m : members_) {
      m.is_filled = m.is_filled && keeps;
      m.has_arrived = false;
    }
    in_progress_ = false;
  }

  void start(std::size_t number) {
    const Place place(path_);
    Bucket& bucket = buckets_[number];
    for (const int key : bucket.members)
      if (Member& m = members_[std::size_t(key)]; !m.is_filled) put(m, nullptr);
    if (group_->size() == 1 || bucket.size == 0) return;
    const View flat = View::dense(bucket.elements.get(), bucket.dtype,
                                  Shape(std::array<index_t, 1>{bucket.size}));
    const GradientBucket sent(Device{}, int(number), flat, bucket.parts, *group_->duplicate(),
                              label_.c_str(), module_number_);
    bucket.work.emplace(start_async(Device{}, *group_, [this, sent] {
      hook_(sent);
      return Finished{};
    }));
  }

  /// Starts the remaining buckets, and waits for all.
  void finish() {
    const Place place(path_);
    Tensor<std::uint8_t, 1> used({index_t(members_.size())});
    for (std::size_t k = 0; k < members_.size(); ++k) used.data()[k] = members_[k].is_filled;
    if (!finds_unused_) require_all_used();
    while (next_ < buckets_.size()) start(next_++);
    if (finds_unused_) find_used_anywhere(used);
    for (Bucket& bucket : buckets_) {
      if (bucket.work) static_cast<void>(bucket.work->wait());
      for (const int key : bucket.members) {
        if (used.data()[key] == 0) continue;  // not used on any rank
        Member& m = members_[std::size_t(key)];
        m.deliver(m.leaf.get(), place_of(m).data, {place_of(m).data, Holds{bucket.elements}});
      }
      bucket.elements.reset();
    }
    if (!knows_order_) learn_order();
  }

  /// Keeps a bucket's elements alive for the gradient of one parameter.
  struct Holds {
    std::shared_ptr<void> elements;
    void operator()(void*) const {}
  };

  void require_all_used() const {
    std::string names;
    int count = 0;
    for (const Member& m : members_) {
      if (m.is_filled) continue;
      if (++count <= 10) names += (count > 1 ? ", " : "") + m.path;
    }
    if (count > 10) names += " and " + std::to_string(count - 10) + " more";
    if (count > 0)
      throw Error("replicate",
                  "backward computed no gradient for " + names +
                      "; if the loss does not depend on them, name them in `ignored`, or set "
                      "`find_unused_parameters`",
                  {.rank = group_->state().world_rank});
  }

  /// Finds the parameters that are used on some rank; the other ones get no gradient.
  void find_used_anywhere(const Tensor<std::uint8_t, 1>& used) const {
    if (group_->size() == 1) return;
    Communicator& group = group_->host();
    const auto work = start_async(Host{}, group, [this, used, &group] {
      group.duplicate()->run(Collective::all_reduce(ReduceOp::max, used.view(), used.view())
                                 .named("replicate", label_.c_str()));
      return Finished{};
    });
    static_cast<void>(work.wait());
  }

  /// Rebuilds the buckets in the order in which gradients became complete on the first rank.
  void learn_order() {
    Tensor<std::int32_t, 1> order({index_t(members_.size())});
    std::vector<char> has_place(members_.size(), 0);
    index_t n = 0;
    const auto append = [&](int key) {
      if (std::exchange(has_place[std::size_t(key)], 1) == 0) order.data()[n++] = key;
    };
    for (const int key : arrivals_) append(key);
    for (const int key : reversed_order(members_.size())) append(key);
    if (group_->size() > 1) {
      group_->host().run(
          Collective::broadcast(order.view(), order.view(), 0).named("replicate", label_.c_str()));
    }
    arrange(std::vector<int>(order.data(), order.data() + n));
    knows_order_ = true;
  }

  AxisMask axes_;
  std::string label_;
  Shape coordinate_;
  std::shared_ptr<Communicator> group_;
  BucketSizes sizes_;
  bool finds_unused_;
  int module_number_;
  const std::string* path_ = nullptr;
  CommHook hook_ = AllReduce{};
  bool is_on_ = true;
  std::vector<Member> members_{};
  std::vector<int> arrivals_{};  ///< in this backward
  std::size_t next_ = 0;         ///< the first bucket that has not been started
  std::size_t place_at_end_ = 0;
  bool in_progress_ = false;
  bool knows_order_ = false;
  std::vector<Bucket> buckets_{};  ///< last member: work in progress reads the other members
};

}  // namespace cleave::inline v0::parallel
