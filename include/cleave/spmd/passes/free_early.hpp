// Moves instructions to where they free more memory than they take: what reads a value for the last
// time follows closely, so that values live shorter and are still in cache.
#pragma once

#include <cstddef>
#include <vector>

#include <cleave/core/dtype.hpp>
#include <cleave/spmd/passes/fuse_elementwise.hpp>
#include <cleave/spmd/passes/reorder.hpp>
#include <cleave/spmd/program.hpp>

namespace cleave::inline v0::spmd {

namespace detail {

/// The pass over a program. The order depends on the program alone: it is the same on all ranks.
class FreeEarly {
 public:
  constexpr explicit FreeEarly(const Program& of)
      : of_(of),
        users_begin_(of.values.size() + 1, 0),
        next_user_(of.values.size(), 0),
        uses_(of.values.size(), 0),
        missing_(of.code.size(), 0),
        is_emitted_(of.code.size(), 0) {
    find_users();
    for (const Output& output : of.outputs) uses_[std::size_t(output.value)] = PlacedValue::kept;
    order_.reserve(of.code.size());
  }

  constexpr std::vector<int> order() {
    const int count = int(of_.code.size());
    for (int i = 0; i < count; ++i) {
      if (!is_emitted_[std::size_t(i)]) emit(i);
      if (i + 1 < count && !is_emitted_[std::size_t(i) + 1] && continues_run(i, i + 1)) continue;
      while (!changed_.empty()) {
        const int v = changed_.back();
        changed_.pop_back();
        emit_last_users(v);
      }
    }
    return static_cast<std::vector<int>&&>(order_);
  }

 private:
  constexpr const Instruction& code(int i) const { return of_.code[std::size_t(i)]; }

  constexpr void find_users() {
    for (const Instruction& i : of_.code)
      for (int k = 0; k < i.operands; ++k)
        ++users_begin_[std::size_t(i.operand[std::size_t(k)]) + 1];
    for (std::size_t v = 1; v < users_begin_.size(); ++v) users_begin_[v] += users_begin_[v - 1];
    users_.resize(std::size_t(users_begin_.back()));
    for (std::size_t n = 0; n < of_.code.size(); ++n) {
      const Instruction& i = of_.code[n];
      missing_[n] = i.operands;
      for (int k = 0; k < i.operands; ++k) {
        const auto v = std::size_t(i.operand[std::size_t(k)]);
        users_[std::size_t(users_begin_[v] + uses_[v]++)] = int(n);
      }
    }
  }

  constexpr bool continues_run(int i, int next) const {
    return can_be_fused(code(i)) && can_be_fused(code(next)) && are_alike(of_, code(i), code(next));
  }

  constexpr void emit(int n) {
    const Instruction& i = code(n);
    is_emitted_[std::size_t(n)] = 1;
    order_.push_back(n);
    for (int k = 0; k < i.results; ++k) {
      const int v = i.first + k;
      for (int u = users_begin_[std::size_t(v)]; u < users_begin_[std::size_t(v) + 1]; ++u)
        --missing_[std::size_t(users_[std::size_t(u)])];
      changed_.push_back(v);
    }
    for (int k = 0; k < i.operands; ++k) {
      const int v = i.operand[std::size_t(k)];
      if (uses_[std::size_t(v)] == PlacedValue::kept) continue;
      --uses_[std::size_t(v)];
      if (can_be_freed(v)) changed_.push_back(v);
    }
  }

  constexpr bool can_be_freed(int v) const {
    return v >= of_.inputs && uses_[std::size_t(v)] != PlacedValue::kept &&
           of_.values[std::size_t(v)].shape.dims > 0;
  }

  /// Bytes on a rank, if axes have two ranks.
  constexpr index_t bytes(int v) const {
    const PlacedValue& value = of_.values[std::size_t(v)];
    index_t size = value.shape.product() * index_t(size_of(value.dtype));
    for (int a = 0; a < value.layout.axes; ++a)
      if (value.layout[a].shards()) size /= 2;
    return size;
  }

  /// Emits the remaining users of a value if they can be computed now and do not take much more
  /// memory than they free.
  constexpr void emit_last_users(int v) {
    if (!can_be_freed(v) || uses_[std::size_t(v)] == 0) return;
    int& next = next_user_[std::size_t(v)];
    const int begin = users_begin_[std::size_t(v)], end = users_begin_[std::size_t(v) + 1];
    while (begin + next < end && is_emitted_[std::size_t(users_[std::size_t(begin + next)])])
      ++next;
    index_t freed = bytes(v), taken = 0;
    for (int u = begin + next; u < end; ++u) {
      const int n = users_[std::size_t(u)];
      if (is_emitted_[std::size_t(n)]) continue;
      const Instruction& i = code(n);
      if (missing_[std::size_t(n)] > 0 || i.kind == InstructionKind::write) return;
      if (u > begin && users_[std::size_t(u) - 1] == n) continue;  // an operand given twice
      for (int k = 0; k < i.results; ++k) taken += bytes(i.first + k);
      for (int k = 0; k < i.operands; ++k) {
        const int x = i.operand[std::size_t(k)];
        if (x != v && can_be_freed(x) && uses_[std::size_t(x)] == 1) freed += bytes(x);
      }
    }
    if (taken > freed + freed / 8) return;
    for (int u = begin + next; u < end; ++u)
      if (const int n = users_[std::size_t(u)]; !is_emitted_[std::size_t(n)]) emit(n);
  }

  const Program& of_;
  std::vector<int> users_begin_;  ///< per value: the first of its users in `users_`
  std::vector<int> next_user_;    ///< per value: how many of them are known to be emitted
  std::vector<int> users_{};      ///< instructions
  std::vector<int> uses_;         ///< per value: that are not emitted
  std::vector<int> missing_;      ///< per instruction: operands that are not computed
  std::vector<char> is_emitted_;  ///< per instruction
  std::vector<int> changed_{};    ///< values whose users may be emitted
  std::vector<int> order_{};
};

}  // namespace detail

/// Reorders a program; inputs stay first, writes last. Values and what they are computed from stay.
/// @cost linear in the uses of values
constexpr void free_early(Program& program) {
  reorder(program, detail::FreeEarly(program).order());
}

}  // namespace cleave::inline v0::spmd
