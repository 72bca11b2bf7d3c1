// The steps of every collective before its backend runs it: observers, and the comparison of calls
// across ranks.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/comm_scope.hpp>
#include <cleave/comm/communicator.hpp>
#include <cleave/comm/launch.hpp>
#include <cleave/core/clock.hpp>
#include <cleave/core/error.hpp>

namespace cleave::inline v0 {

CLEAVE_INLINE RankState RankState::from_environment(int rank, int size) {
  RankState state;
  state.world_rank = rank;
  state.world_size = size;
  const auto refuse = [](const char* name, const char* value, const char* use) {
    throw Error("run", std::string(name) + " is '" + value + "'; use " + use);
  };
  if (const char* text = detail::setting("CLEAVE_CHECK")) {
    const std::string level = text;
    if (level == "off") state.check = CheckLevel::off;
    else if (level == "collective") state.check = CheckLevel::collective;
    else if (level != "local") refuse("CLEAVE_CHECK", text, "off, local or collective");
  }
  if (const char* text = detail::setting("CLEAVE_TIMEOUT")) {
    char* end = nullptr;
    state.timeout_seconds = std::strtod(text, &end);
    if (*end != '\0' || !(state.timeout_seconds > 0)) refuse("CLEAVE_TIMEOUT", text, "seconds > 0");
  }
  if (const char* text = detail::setting("CLEAVE_REPRODUCIBLE")) {
    state.reproducible = text == std::string("1");
    if (!state.reproducible && text != std::string("0"))
      refuse("CLEAVE_REPRODUCIBLE", text, "0 or 1");
  }
  state.machine = MachineCosts::from_environment();
  return state;
}

CLEAVE_INLINE void Communicator::run_all(std::span<const Collective> collectives) {
  bool observed = false;
  for (const Collective& collective : collectives)
    observed = prepare(collective, &collective != collectives.data());
  if (!observed) return execute(collectives);
  const auto start = detail::Clock::now();
  execute(collectives);
  const detail::Seconds took = detail::Clock::now() - start;
  const std::lock_guard lock(state_->observing->mutex);
  for (Observer* observer : state_->observers) observer->observe_time(took.count());
}

CLEAVE_INLINE Communicator& Communicator::cached_subgroup(const std::vector<int>& ranks,
                                                          const std::string& label) {
  bool whole = ranks.size() == std::size_t(size_);
  for (std::size_t i = 0; whole && i < ranks.size(); ++i) whole = ranks[i] == int(i);
  if (whole) return *this;
  for (const Cached& known : cached_)
    if (known.ranks == ranks) return *known.group;
  cached_.push_back({ranks, subgroup({ranks.data(), ranks.size()}, label)});
  return *cached_.back().group;
}

CLEAVE_INLINE const std::shared_ptr<Communicator>& Communicator::duplicate() {
  if (duplicate_ == nullptr) {
    std::vector<int> ranks(std::size_t(size_), 0);
    for (int r = 0; r < size_; ++r) ranks[std::size_t(r)] = r;
    duplicate_ = subgroup({ranks.data(), ranks.size()}, label_);
  }
  return duplicate_;
}

CLEAVE_INLINE void Communicator::agree_on_call(const Collective& collective) {
  if (state_->check == CheckLevel::collective && size_ > 1) compare(collective);
  ++sequence_;
}

CLEAVE_INLINE bool Communicator::prepare(const Collective& collective, bool joins) {
  bool observed = false;
  if (state_->observing->count.load(std::memory_order_relaxed) > 0) {
    const std::lock_guard lock(state_->observing->mutex);
    observed = !state_->observers.empty();
    for (Observer* observer : state_->observers) observer->observe(collective, *this, joins);
  }
  agree_on_call(collective);
  return observed;
}

namespace detail {

/// "redistribute of [2, 3] in scope 'loss' at heat.cpp:41", as much as is known and fits; begins
/// with a space if the operation has the name of the collective.
CLEAVE_INLINE void name_caller(const Collective& c, std::array<char, 160>& name) {
  std::string text = c.operation;
  if (text == name_of(c.kind)) text.clear();
  if (const Shape& local = c.source.extents; !text.empty() && local.dims > 0)
    text += " of " + to_string(local);
  if (const std::string* path = CommPlace::current().path; path != nullptr)
    text += " in scope '" + *path + "'";
  const std::string site = to_string(c.site);
  const std::size_t room = name.size() - 1;
  if (site.size() > room) text = ".." + site.substr(site.size() - room + 2);  // the file's name
  else text = text.substr(0, room - site.size()) + site;
  std::copy(text.begin(), text.end(), name.begin());
}

CLEAVE_INLINE std::string to_string(const Signature& s) {
  return std::string(name_of(CollectiveKind(s.kind))) + " of " + std::to_string(s.count) + " " +
         name_of(DType(s.dtype)) + detail_to_string(CollectiveKind(s.kind), s.detail) + " (op " +
         name_of(ReduceOp(s.op)) + ", root " + std::to_string(s.root) + ", call " +
         std::to_string(s.sequence) + ")" + caller_to_string(s.caller.data());
}

}  // namespace detail

CLEAVE_INLINE void Communicator::compare(const Collective& collective) {
  Signature mine;
  mine.sequence = sequence_;
  mine.count = agreed_count(collective);
  mine.kind = std::uint8_t(collective.kind);
  mine.dtype = std::uint8_t(collective.dtype());
  mine.op = std::uint8_t(collective.op);
  mine.root = collective.root;
  mine.detail = collective.detail;
  detail::name_caller(collective, mine.caller);
  std::vector<Signature> all(std::size_t(size_), mine);
  gather_signatures(mine, {all.data(), all.size()});
  for (int r = 1; r < size_; ++r) {
    if (all[std::size_t(r)] == all[0]) continue;
    throw Error(collective.operation[0] != '\0' ? collective.operation : "collective",
                disagreement_message(label_, 0, "runs " + detail::to_string(all[0]), r,
                                     "runs " + detail::to_string(all[std::size_t(r)])) +
                    history(),
                {.rank = state_->world_rank});
  }
  if (agreed_.size() == 3) agreed_.erase(agreed_.begin());
  agreed_.push_back(mine);
}

CLEAVE_INLINE std::string Communicator::history() const {
  std::string text;
  for (const Signature& earlier : agreed_)
    text += (text.empty() ? "; before: " : ", ") + detail::to_string(earlier);
  return text;
}

CLEAVE_INLINE index_t Communicator::agreed_count(const Collective& c) {
  if (c.global_count != 0) return c.global_count;
  if (detail::is_reduction(c.kind)) return c.source.size();
  return c.kind == CollectiveKind::all_gather ? c.destination.size() : 0;
}

}  // namespace cleave::inline v0
