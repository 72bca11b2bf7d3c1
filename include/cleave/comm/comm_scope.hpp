// Where in a program a rank communicates: the dotted path of a scope (of a module, or a CommScope),
// and whether gradients are being computed.
// Traces list collectives by it.
//
// Every thread has a current place; asynchronous work, and records of the tape, keep the place
// where they were created. Without traces this costs a pointer.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <cleave/core/call_site.hpp>

namespace cleave::inline v0 {

namespace detail {

/// The place of a thread in its program.
struct CommPlace {
  const std::string* path = nullptr;  ///< of `kept_path`; null: not in a named scope
  bool is_backward = false;
  CallSite site{};  ///< of the user's call, for calls that take a CallSite

  static CommPlace& current() noexcept {
    static thread_local CommPlace place;
    return place;
  }
};

/// The one copy of a path, which stays until the program ends; null for "".
inline const std::string* kept_path(std::string_view path) {
  if (path.empty()) return nullptr;
  struct Kept {
    std::string path;
    Kept* next;
  };
  static std::mutex mutex;
  static Kept* lists[64];  // by hash; never freed, since threads may end late
  unsigned hash = 0;
  for (const char c : path) hash = 31 * hash + static_cast<unsigned char>(c);
  const std::lock_guard lock(mutex);
  Kept*& list = lists[hash % 64];
  for (const Kept* kept = list; kept != nullptr; kept = kept->next)
    if (kept->path == path) return &kept->path;
  list = new Kept{std::string(path), list};
  return &list->path;
}

/// The innermost scope that contains both: "blocks.0" for "blocks.0.mlp.up" and "blocks.0.norm".
inline const std::string* common_path(const std::string* a, const std::string* b) {
  if (a == b) return a;
  if (a == nullptr || b == nullptr) return nullptr;
  const auto ends = [](const std::string& path, std::size_t i) {
    return i == path.size() || path[i] == '.';
  };
  std::size_t length = 0;
  for (std::size_t i = 0;; ++i) {
    if (ends(*a, i) && ends(*b, i)) length = i;
    if (i == a->size() || i == b->size() || (*a)[i] != (*b)[i]) break;
  }
  return kept_path(std::string_view(*a).substr(0, length));
}

/// Sets the place of this thread for its lifetime.
class PlaceScope {
 public:
  explicit PlaceScope(CommPlace place) : before_(std::exchange(CommPlace::current(), place)) {}
  explicit PlaceScope(const std::string* path)
      : PlaceScope(CommPlace{path, CommPlace::current().is_backward, CommPlace::current().site}) {}
  explicit PlaceScope(CallSite site)
      : PlaceScope(CommPlace{CommPlace::current().path, CommPlace::current().is_backward, site}) {}
  PlaceScope(const PlaceScope&) = delete;  // one scope
  PlaceScope& operator=(const PlaceScope&) = delete;
  ~PlaceScope() { CommPlace::current() = before_; }

 private:
  CommPlace before_;
};

/// The path of a name inside of this thread's current scope.
inline const std::string* path_inside(std::string_view name) {
  const std::string* const outer = CommPlace::current().path;
  return kept_path(outer == nullptr ? std::string(name) : *outer + "." + std::string(name));
}

}  // namespace detail

/// For its lifetime, lists what this thread communicates, and what the gradients of its operations
/// communicate, under a name inside of the module that is called.
///
///     const CommScope scope("loss");
class CommScope {
 public:
  explicit CommScope(std::string_view name) : scope_(detail::path_inside(name)) {}

 private:
  detail::PlaceScope scope_;
};

}  // namespace cleave::inline v0
