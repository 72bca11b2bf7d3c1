// State that other layers keep with a rank of a world: at most one value of each type.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

namespace cleave::inline v0::detail {

class RankSlots {
 public:
  /// The value of this type. The first call makes it.
  /// @tparam T  a type of the layer that keeps it
  /// @param make  -> std::shared_ptr<T>
  template <class T, class Make>
  std::shared_ptr<T> get(const Make& make) {
    const std::lock_guard lock(mutex_);
    for (const Slot& slot : slots_)
      if (slot.type == &type<T>) return std::static_pointer_cast<T>(slot.value);
    std::shared_ptr<T> value = make();
    slots_.push_back({&type<T>, value});
    return value;
  }
  template <class T>
  T& get() {
    return *get<T>([] { return std::make_shared<T>(); });
  }

 private:
  template <class T>
  static inline char type = 0;  // its address identifies T

  struct Slot {
    const void* type;
    std::shared_ptr<void> value;
  };

  std::mutex mutex_;
  std::vector<Slot> slots_;
};

}  // namespace cleave::inline v0::detail
