// The search for the cheapest plan of a product of arrays.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <cleave/ops/products/contraction_step.hpp>
#include <cleave/redistribute/choose.hpp>
#include <cleave/redistribute/plan_cache.hpp>

namespace cleave::inline v0::detail {

/// Sets of operands are masks: bit i stands for operand i.
class ContractionSearch {
 public:
  explicit ContractionSearch(const ContractionCall& call) : call_(call), rule_(*call.rule) {
    all_ = (1u << rule_.operands) - 1;
    result_ = redistribution::without_unit_axes(call.result, call.mesh);
    choose_factors();
    for (unsigned set = 0; set <= all_; ++set) {
      products_.push_back(product_of(set));
      if (set == 0) continue;
      if ((set & (set - 1)) == 0) take_operand(set);
      else find_ways(set);
    }
  }

  /// @return whether there is a plan
  bool found() { return reach(all_, result_).way >= 0; }

  /// @pre found()
  ContractionPlan plan() {
    ContractionPlan plan;
    plan.result = call_.result;
    emit(plan, all_, result_);
    const ContractionStep& last = plan.steps.back();
    plan.result_bytes = move_cost(last.result, result_, last.shape).bytes;
    plan.bytes = plan.result_bytes;
    for (const ContractionStep& step : plan.steps) {
      plan.bytes = redistribution::capped_sum(plan.bytes, step.bytes);
      plan.multiplications = redistribution::capped_sum(plan.multiplications, step.multiplications);
      plan.memory = std::max(plan.memory, step.memory);
    }
    return plan;
  }

 private:
  struct Cost {
    index_t bytes = 0;
    index_t multiplications = 0;
    int communications = 0;

    friend bool operator<(const Cost& a, const Cost& b) {
      return std::tie(a.bytes, a.multiplications, a.communications) <
             std::tie(b.bytes, b.multiplications, b.communications);
    }
    friend Cost operator+(const Cost& a, const Cost& b) {
      return {redistribution::capped_sum(a.bytes, b.bytes),
              redistribution::capped_sum(a.multiplications, b.multiplications),
              a.communications + b.communications};
    }
  };

  /// How a product comes to have a layout: which two products are multiplied under which layouts.
  struct Way {
    Layout layout{};
    Cost cost{};
    unsigned left = 0;  ///< a set; 0: it is an operand
    Layout left_layout{};
    Layout right_layout{};
    index_t multiplications = 0;
    index_t memory = 0;
    int factor = -1;  ///< of panels
    index_t panel = 0;
  };

  /// The cheapest way to a layout, by its key; way -1: there is none.
  struct Reached {
    std::uint64_t key = 0;
    Cost cost{};
    int way = -1;
  };

  /// The product of a set of operands.
  struct Product {
    Rule::Operand dims{};
    Shape shape{};
    std::vector<Way> ways{};  ///< one per layout, the cheapest first
    std::vector<Reached> reached{};
  };

  static constexpr std::int8_t on_all = -1, sum_left = -2, sum_right = -3, avg_left = -4,
                               avg_right = -5;

  bool has_factor(unsigned set, int f) const {
    for (int i = 0; i < rule_.operands; ++i)
      if (set >> i & 1u && rule_.operand[std::size_t(i)].dim_of(f) >= 0) return true;
    return false;
  }

  /// The factors that each axis may shard, and into which parts.
  void choose_factors() {
    double choices = 1;
    for (int a = 0; a < call_.mesh.dims; ++a) {
      if (call_.mesh[a] > 1) choices *= rule_.factors + 3;
      for (int f = 0; f < rule_.factors; ++f) {
        Placement& cut = cut_[std::size_t(a)][std::size_t(f)];
        cut = Placement::shard(0);
        const auto offer = [&](const Rule::Operand& dims, const Placement& p) {
          if (!p.shards() || dims.factor[std::size_t(p.dim)] != f) return;
          cut = p;
          named_[std::size_t(a)] |= 1u << f;
        };
        offer(rule_.result[0], call_.result[a]);
        for (int i = rule_.operands - 1; i >= 0; --i)
          offer(rule_.operand[std::size_t(i)], call_.operands[std::size_t(i)][a]);
      }
    }
    for (int i = 0; i < rule_.operands; ++i)
      for (int a = 0; a < call_.mesh.dims; ++a) {
        const Placement& p = call_.operands[std::size_t(i)][a];
        has_avg_ = has_avg_ || (p.is_partial() && p.op == ReduceOp::avg);
      }
    if (choices <= 1000) named_.fill(~0u);
  }

  /// The dimensions of the product: those of the result of the call first, in its order.
  Product product_of(unsigned set) const {
    Product product;
    if (set == 0) return product;
    if (set == all_) product.dims = rule_.result[0];
    else if ((set & (set - 1)) == 0) product.dims = rule_.operand[std::size_t(lowest(set))];
    else {
      const auto add = [&](int f) {
        if (!has_factor(set, f) || product.dims.dims < 0) return;
        if (product.dims.dims == max_dims) product.dims.dims = -1;
        else product.dims.factor[std::size_t(product.dims.dims++)] = std::int8_t(f);
      };
      for (int d = 0; d < rule_.result[0].dims; ++d) add(rule_.result[0].factor[std::size_t(d)]);
      for (int f = 0; f < rule_.factors; ++f)
        if (rule_.result[0].dim_of(f) < 0 && has_factor(all_ ^ set, f)) add(f);
    }
    if (product.dims.dims >= 0) product.shape = call_.extents.shape(product.dims);
    return product;
  }

  static int lowest(unsigned set) {
    int i = 0;
    while (!(set >> i & 1u)) ++i;
    return i;
  }

  void take_operand(unsigned set) {
    products_[set].ways.push_back({call_.operands[std::size_t(lowest(set))]});
  }

  void find_ways(unsigned set) {
    if (products_[set].dims.dims < 0) return;
    const unsigned first = set & (~set + 1);  // in the left set: a product and its mirror are one
    for (unsigned left = (set - 1) & set; left != 0; left = (left - 1) & set)
      if ((left & first) != 0 && !products_[left].ways.empty() &&
          !products_[set ^ left].ways.empty())
        split(set, left);
    std::stable_sort(products_[set].ways.begin(), products_[set].ways.end(),
                     [](const Way& a, const Way& b) { return a.cost < b.cost; });
  }

  /// Tries all choices for the product of two products.
  void split(unsigned set, unsigned left) {
    std::array<std::vector<std::int8_t>, std::size_t(max_axes)> choices;
    for (int a = 0; a < call_.mesh.dims; ++a) {
      std::vector<std::int8_t>& of_axis = choices[std::size_t(a)];
      of_axis.push_back(on_all);
      if (call_.mesh[a] == 1) continue;
      for (int f = 0; f < rule_.factors; ++f)
        if (named_[std::size_t(a)] >> f & 1u && (dim(left, f) >= 0 || dim(set ^ left, f) >= 0))
          of_axis.push_back(std::int8_t(f));
      of_axis.insert(of_axis.end(), {sum_left, sum_right});
      if (has_avg_) of_axis.insert(of_axis.end(), {avg_left, avg_right});
    }
    Way way;
    way.left = left;
    way.layout = way.left_layout = way.right_layout = Layout::replicated(call_.mesh.dims);
    each_choice(set, choices, way, 0);
  }

  int dim(unsigned set, int f) const { return products_[set].dims.dim_of(f); }

  template <class Choices>
  void each_choice(unsigned set, const Choices& choices, Way& way, int axis) {
    if (axis == call_.mesh.dims) return offer(set, way);
    for (const std::int8_t choice : choices[std::size_t(axis)]) {
      const ReduceOp op = choice <= avg_left ? ReduceOp::avg : ReduceOp::sum;
      const auto place = [&](Layout& layout, unsigned of, bool partial, const Placement& lacking) {
        layout[axis] = lacking;
        if (partial) layout[axis] = Placement::partial(op);
        if (choice >= 0 && dim(of, choice) >= 0)
          layout[axis] = cut_[std::size_t(axis)][std::size_t(choice)].along(dim(of, choice));
      };
      place(way.left_layout, way.left, choice == sum_left || choice == avg_left, {});
      place(way.right_layout, set ^ way.left, choice == sum_right || choice == avg_right, {});
      place(way.layout, set, choice <= sum_left,
            choice >= 0 ? Placement::partial(ReduceOp::sum) : Placement::replicate());
      each_choice(set, choices, way, axis + 1);
    }
  }

  /// Keeps a way if it is the cheapest to its layout so far.
  void offer(unsigned set, Way way) {
    const Product &left = products_[way.left], &right = products_[set ^ way.left];
    const Shape a = redistribution::longest_extents({way.left_layout}, left.shape, call_.mesh);
    const Shape b = redistribution::longest_extents({way.right_layout}, right.shape, call_.mesh);
    way.multiplications = capped_elements(a);
    for (int d = 0; d < right.dims.dims; ++d)
      if (left.dims.dim_of(right.dims.factor[std::size_t(d)]) < 0)
        way.multiplications = redistribution::capped_product(way.multiplications, b[d]);
    const Reached from_left = reach(way.left, way.left_layout);
    if (from_left.way < 0) return;
    const Reached from_right = reach(set ^ way.left, way.right_layout);
    if (from_right.way < 0) return;
    way.memory = bytes_held(set, way, {});
    if (way.memory > call_.memory_limit) {
      const Way &of_left = left.ways[std::size_t(from_left.way)],
                &of_right = right.ways[std::size_t(from_right.way)];
      choose_panels(set, way, {of_left.layout, of_right.layout});
      if (way.panel == 0) return;
    }
    way.cost = from_left.cost + from_right.cost + Cost{0, way.multiplications, 0};
    for (Way& known : products_[set].ways)
      if (known.layout == way.layout) {
        if (way.cost < known.cost) known = way;
        return;
      }
    products_[set].ways.push_back(way);
  }

  /// Which arrays of a product are held in panels along a factor.
  struct Panels {
    int factor = -1;
    index_t extent = 0;
    std::array<bool, 2> of{};
  };

  index_t bytes_held(unsigned set, const Way& way, const Panels& panels) const {
    const auto elements = [&](unsigned of, const Layout& layout, bool is_cut) {
      const Product& product = products_[of];
      Shape local = redistribution::longest_extents({layout}, product.shape, call_.mesh);
      const int cut = is_cut ? product.dims.dim_of(panels.factor) : -1;
      if (cut >= 0) local[cut] = 2 * std::min(local[cut], panels.extent);  // and the next panel
      return capped_elements(local);
    };
    index_t all = elements(set, way.layout, false);
    all = redistribution::capped_sum(all, elements(way.left, way.left_layout, panels.of[0]));
    all = redistribution::capped_sum(all, elements(set ^ way.left, way.right_layout, panels.of[1]));
    return redistribution::capped_product(all, index_t(call_.element_size));
  }

  /// The fewest panels that keep to the memory limit.
  void choose_panels(unsigned set, Way& way, const std::array<Layout, 2>& from) const {
    const std::array<unsigned, 2> sets{way.left, set ^ way.left};
    const std::array to{way.left_layout, way.right_layout};
    index_t fewest = std::numeric_limits<index_t>::max();
    for (int f = 0; f < rule_.factors; ++f) {
      Panels panels{f};
      bool fits = dim(set, f) >= 0 || call_.element_size > 2;
      index_t n = 0;
      for (std::size_t i = 0; i < 2; ++i) {
        const int d = dim(sets[i], f);
        if (d < 0 || redistribution::without_unit_axes(from[i], call_.mesh) == to[i]) continue;
        panels.of[i] = true;
        fits = fits && !from[i].has_partial() && from[i].is_box() && to[i].is_box();
        n = redistribution::longest_extents({to[i]}, products_[sets[i]].shape, call_.mesh)[d];
      }
      if (!fits || n == 0) continue;
      const index_t fixed = bytes_held(set, way, panels);
      panels.extent = 1;
      const index_t of_one = bytes_held(set, way, panels) - fixed;
      if (of_one == 0 || fixed + of_one > call_.memory_limit) continue;
      const index_t most = std::min((call_.memory_limit - fixed) / of_one, n);
      const index_t count = (n + most - 1) / most;
      if (count >= fewest) continue;
      fewest = count;
      way.factor = f;
      way.panel = panels.extent = (n + count - 1) / count;
      way.memory = bytes_held(set, way, panels);
    }
  }

  static index_t capped_elements(const Shape& shape) {
    index_t n = 1;
    for (const index_t extent : shape) n = redistribution::capped_product(n, extent);
    return n;
  }

  /// Partials are kept or reduced, never made; one under another op than sum and avg is reduced
  /// with all others, since their order matters.
  static bool can_move(const Layout& from, const Layout& to) {
    bool is_linear = true;
    for (int a = 0; a < to.axes; ++a) {
      if (to[a].is_partial() && !(from[a] == to[a])) return false;
      if (from[a].is_partial() && from[a].op != ReduceOp::sum && from[a].op != ReduceOp::avg)
        is_linear = false;
    }
    return is_linear || !to.has_partial();
  }

  Cost move_cost(const Layout& from, const Layout& to, const Shape& shape) const {
    if (from == to) return {};
    const Plan plan = choose_plan(redistribution::without_unit_axes(from, call_.mesh),
                                  redistribution::without_unit_axes(to, call_.mesh), shape,
                                  call_.mesh, call_.element_size, call_.model);
    return {received_bytes(plan, call_.mesh, shape, call_.element_size), 0, plan.communications()};
  }

  /// The cheapest way to a layout of a product.
  Reached reach(unsigned set, const Layout& layout) {
    Product& product = products_[set];
    const std::uint64_t key = key_of(product.dims, layout);
    const auto at = std::ranges::lower_bound(product.reached, key, {}, &Reached::key);
    if (at != product.reached.end() && at->key == key) return *at;
    Reached best{key};
    for (std::size_t w = 0; w < product.ways.size(); ++w) {
      const Way& way = product.ways[w];
      if (best.way >= 0 && !(way.cost < best.cost)) break;
      if (!can_move(way.layout, layout)) continue;
      const Cost cost = way.cost + move_cost(way.layout, layout, product.shape);
      if (best.way < 0 || cost < best.cost) best.cost = cost, best.way = int(w);
    }
    product.reached.insert(at, best);
    return best;
  }

  /// Exact among the layouts that are asked of one product: an axis cuts a factor in one way.
  static std::uint64_t key_of(const Rule::Operand& dims, const Layout& layout) {
    std::uint64_t key = 0;
    for (int a = 0; a < layout.axes; ++a) {
      const Placement& p = layout[a];
      int code = 0;
      if (p.is_partial()) code = 1 + int(p.op);
      else if (p.shards()) code = 32 + dims.factor[std::size_t(p.dim)];
      key = key << 6 | std::uint64_t(code);
    }
    return key;
  }

  /// Appends the products behind a layout of a set's. @return the array's number
  int emit(ContractionPlan& plan, unsigned set, const Layout& layout) {
    const Way way = products_[set].ways[std::size_t(reach(set, layout).way)];
    if (way.left == 0) return lowest(set);
    const std::array<unsigned, 2> sets{way.left, set ^ way.left};
    ContractionStep step;
    step.to = {way.left_layout, way.right_layout};
    for (std::size_t i = 0; i < 2; ++i) {
      const Product& product = products_[sets[i]];
      step.array[i] = emit(plan, sets[i], step.to[i]);
      step.from[i] = product.ways[std::size_t(reach(sets[i], step.to[i]).way)].layout;
      step.bytes = redistribution::capped_sum(
          step.bytes, move_cost(step.from[i], step.to[i], product.shape).bytes);
      step.factors += letters_of(sets[i]) + (i == 0 ? "," : "->");
    }
    step.factors += letters_of(set);
    step.result = way.layout;
    step.shape = products_[set].shape;
    step.multiplications = way.multiplications;
    step.memory = way.memory;
    step.panel = way.panel;
    if (way.panel > 0) step.letter = rule_.letter[std::size_t(way.factor)];
    plan.steps.push_back(std::move(step));
    return rule_.operands + int(plan.steps.size()) - 1;
  }

  std::string letters_of(unsigned set) const {
    std::string text;
    const Rule::Operand& dims = products_[set].dims;
    for (int d = 0; d < dims.dims; ++d)
      text += rule_.letter[std::size_t(dims.factor[std::size_t(d)])];
    return text;
  }

  const ContractionCall& call_;
  const Rule& rule_;
  unsigned all_ = 0;
  Layout result_{};
  bool has_avg_ = false;
  /// Per axis: the factors that it may shard, and the parts of each.
  std::array<std::uint32_t, std::size_t(max_axes)> named_{};
  std::array<std::array<Placement, std::size_t(Rule::max_factors)>, std::size_t(max_axes)> cut_{};
  std::vector<Product> products_;
};

}  // namespace cleave::inline v0::detail
