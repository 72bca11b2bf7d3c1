// The ranks that a functional collective runs over, however the caller names them.
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <cleave/comm/communicator.hpp>
#include <cleave/comm/world.hpp>
#include <cleave/core/error.hpp>

namespace cleave::inline v0::functional {

class Group;

namespace detail {

/// Arguments of which `group_of`, declared with their types, makes a Group: a mesh, or with axes.
template <class... Arguments>
concept NamesGroup = requires(const Arguments&... arguments) {
  { group_of(arguments...) } -> std::same_as<Group>;
};

/// A group in one word, or a list of ranks of a group.
template <class Given>
concept WholeGroup =
    std::same_as<Given, Group> || NamesGroup<Given> || std::convertible_to<Given&, Communicator&> ||
    std::convertible_to<const Given&, std::shared_ptr<Communicator>> ||
    std::convertible_to<const Given&, const World&>;
template <class Given>
concept RankList = std::convertible_to<const Given&, std::vector<int>> ||
                   std::convertible_to<const Given&, std::vector<std::vector<int>>>;

template <class... Arguments>
inline constexpr bool is_listed = false;
template <class Of, class List>
inline constexpr bool is_listed<Of, List> = WholeGroup<Of> && RankList<List>;

}  // namespace detail

/// The ranks of a functional collective; a parameter type that its arguments convert to.
///
///     all_reduce(x, Sum{}, world);                        // a World, a communicator, a mesh
///     all_reduce(x, Sum{}, {mesh, tp{}});                 // axes of a mesh
///     all_reduce(x, Sum{}, {world, {0, 2, 5}});           // a list of ranks; only they call
///     all_reduce(x, Sum{}, {world, {{0, 1}, {2, 3}}});    // lists of equal length: this rank's
///
/// Refers to a communicator whose owner (world, mesh) must outlive it. Lists are checked by the
/// collective that they are passed to; their communicators are created once, and kept by the group
/// in which the ranks are numbered.
///
/// @collective at the first use of an axis or a list: its ranks
class Group {
 public:
  Group(Communicator& communicator) : whole_(&communicator) {}
  /// @throws Error for a null communicator
  Group(const std::shared_ptr<Communicator>& communicator) : whole_(communicator.get()) {
    if (whole_ == nullptr) throw Error("functional::Group", "the communicator is null");
  }
  Group(const World& world) : whole_(&world.communicator()) {}

  /// The arguments of `group_of(arguments...)`: a mesh of one axis; a mesh and some of its axes.
  template <class... Arguments>
    requires(sizeof...(Arguments) > 0 && detail::NamesGroup<Arguments...>)
  Group(const Arguments&... arguments) : Group(group_of(arguments...)) {}

  /// Anything else: a compile error.
  template <class... Arguments>
    requires(sizeof...(Arguments) > 0 && !detail::NamesGroup<Arguments...> &&
             !(sizeof...(Arguments) == 1 && (detail::WholeGroup<Arguments> || ...)) &&
             !detail::is_listed<Arguments...>)
  Group(const Arguments&...) : whole_(nullptr) {
    static_assert(sizeof...(Arguments) == 0,
                  "cleave: this is not a group of ranks; pass the world, a communicator, a mesh of "
                  "one axis, mesh[tp{}], {mesh, tp{}} or {world, {0, 2}}");
  }

  /// Some ranks of another group, in that order.
  Group(const Group& of, const std::vector<int>& ranks)
      : Group(of, std::vector<std::vector<int>>{ranks}) {}
  template <std::same_as<int> Int>
  Group(const Group& of, std::initializer_list<Int> ranks) : Group(of, std::vector<int>(ranks)) {}

  /// Of several lists of equal length, the one that contains this rank.
  Group(const Group& of, std::vector<std::vector<int>> lists)
      : whole_(&of.communicator("functional::Group")), listed_(true), lists_(std::move(lists)) {}
  template <std::same_as<int> Int>
  Group(const Group& of, std::initializer_list<std::initializer_list<Int>> lists)
      : Group(of, std::vector<std::vector<int>>(lists.begin(), lists.end())) {}

  /// A communicator that errors and traces name by mesh axes: "tp", "dp.tp".
  static Group of_axes(Communicator& communicator, std::string axes) {
    Group group(communicator);
    group.axes_ = std::move(axes);
    return group;
  }

  /// This rank's communicator for the group.
  ///
  /// @param operation  the function that the user called, for errors
  /// @collective       at the first use of a list: its ranks
  /// @throws Error     if lists have different lengths, name a rank that does not exist or a rank
  ///                   twice, or none contains this rank
  Communicator& communicator(const char* operation) const {
    if (!listed_) return *whole_;
    const std::vector<int>& ranks = own_list(operation);
    return whole_->cached_subgroup(ranks, to_string(ranks) + " of " + whole_->label());
  }

  /// The mesh axes, if any.
  const std::string& axes() const noexcept { return axes_; }

 private:
  const std::vector<int>& own_list(const char* operation) const {
    const auto fail = [&](const std::string& message) {
      throw Error(operation, message, {.rank = whole_->state().world_rank});
    };
    const std::vector<int>* own = nullptr;
    std::vector<int> list_of(std::size_t(whole_->size()), -1);
    for (int i = 0; i < int(lists_.size()); ++i) {
      const std::vector<int>& list = lists_[std::size_t(i)];
      if (list.size() != lists_[0].size())
        fail("the lists " + to_string(lists_[0]) + " and " + to_string(list) +
             " have different lengths");
      for (const int rank : list) {
        const std::string name = "rank " + std::to_string(rank);
        if (rank < 0 || rank >= whole_->size())
          fail(name + " of the list " + to_string(list) + " does not exist: group '" +
               whole_->label() + "' has " + std::to_string(whole_->size()) + " ranks");
        int& known = list_of[std::size_t(rank)];
        if (known == i) fail(name + " is listed twice in " + to_string(list));
        if (known >= 0)
          fail(name + " is in two lists, " + to_string(lists_[std::size_t(known)]) + " and " +
               to_string(list));
        known = i;
        if (rank == whole_->rank()) own = &list;
      }
    }
    if (own == nullptr)
      fail("rank " + std::to_string(whole_->rank()) + " is not in " +
           (lists_.size() == 1 ? "the list " + to_string(lists_[0])
                               : "any of the " + std::to_string(lists_.size()) + " lists") +
           "; only listed ranks may make this call");
    return *own;
  }

  /// "{0, 2, 5}"; long lists are truncated.
  static std::string to_string(const std::vector<int>& ranks) {
    constexpr std::size_t shown = 16;
    std::string text;
    for (std::size_t i = 0; i < ranks.size() && i < shown; ++i)
      text += (i > 0 ? ", " : "{") + std::to_string(ranks[i]);
    if (ranks.empty()) text = "{";
    return text + (ranks.size() > shown ? ", ..}" : "}");
  }

  Communicator* whole_;
  bool listed_ = false;
  std::vector<std::vector<int>> lists_;
  std::string axes_;
};

}  // namespace cleave::inline v0::functional
