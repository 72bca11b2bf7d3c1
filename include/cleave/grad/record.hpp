// The tape: records of calls, each with references to the records of its operands. A sweep (one
// backward) visits them from the result to the leaves and frees what they have saved.
//
// Records are typed by their values; the code here is independent of these types. It has no virtual
// functions because it also runs in constant expressions, where programs are traced with their
// gradients, and there g++ 12 and nvcc 13 do not call virtual functions correctly. A tape belongs
// to one rank's thread.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/comm/comm_scope.hpp>
#include <cleave/core/error.hpp>

namespace cleave::inline v0::tape {

struct RecordBase;

/// A reference-counted pointer to a record.
template <class R>
class Ref {
 public:
  constexpr Ref() = default;
  constexpr explicit Ref(R* record) : record_(record) {
    if (record_ != nullptr) ++record_->references;
  }
  constexpr Ref(const Ref& other) : Ref(other.record_) {}
  constexpr Ref(Ref&& other) noexcept : record_(std::exchange(other.record_, nullptr)) {}
  constexpr Ref& operator=(const Ref& other) { return *this = Ref(other); }
  constexpr Ref& operator=(Ref&& other) noexcept {
    R* const record = other.release();
    reset();
    record_ = record;
    return *this;
  }
  constexpr ~Ref() { reset(); }

  /// Drops the reference.
  constexpr void reset() {
    if (R* const record = release(); record != nullptr && --record->references == 0)
      destroy(record);
  }

  constexpr R* get() const { return record_; }
  constexpr R* operator->() const { return record_; }
  constexpr explicit operator bool() const { return record_ != nullptr; }
  /// Gives up the reference without decrementing the count.
  constexpr R* release() { return std::exchange(record_, nullptr); }

 private:
  R* record_ = nullptr;
};

/// The function table of a type of record.
struct Table {
  void (*destroy)(RecordBase*);
  void (*run)(RecordBase*);      ///< passes the record's gradient to its operands
  void (*release)(RecordBase*);  ///< frees the saved values
  void (*forget)(RecordBase*);   ///< drops the contributions received, after a failed sweep
};

struct RecordBase {
  const Table* table;
  Ref<RecordBase>* operands = nullptr;  ///< an array of the derived record
  int operand_count = 0;
  int references = 0;
  int waiting = 0;  ///< in a sweep: the number of users that have not passed their gradient yet
  int version = 0;  ///< counts in-place changes of the value
  /// Runs before other records that are ready. Set for parameters: their gradients can then be
  /// communicated and freed while the sweep continues.
  bool runs_first = false;
  const std::string* path = nullptr;     ///< of the module being called, see `CommPlace`
  const std::string* used_in = nullptr;  ///< in a sweep: the innermost module common to all users

  constexpr explicit RecordBase(const Table* t) : table(t) {
    if (!std::is_constant_evaluated()) path = cleave::detail::CommPlace::current().path;
  }
  RecordBase(const RecordBase&) = delete;  // records point to it
  RecordBase& operator=(const RecordBase&) = delete;
};

/// Destroys a record without references, and all records that only it kept alive. Iterative,
/// because recursion over a long tape could overflow the stack.
constexpr void destroy(RecordBase* last) {
  std::vector<RecordBase*> gone{last};
  while (!gone.empty()) {
    RecordBase* const record = gone.back();
    gone.pop_back();
    for (int i = 0; i < record->operand_count; ++i)
      if (RecordBase* const operand = record->operands[i].release();
          operand != nullptr && --operand->references == 0)
        gone.push_back(operand);
    record->table->destroy(record);
  }
}

/// The functions to call at the end of the sweep in progress on this rank's thread; null without
/// one.
struct Sweep {
  std::vector<std::function<void(bool complete)>> at_end{};

  static Sweep*& current() {
    static thread_local Sweep* sweep = nullptr;
    return sweep;
  }
};

namespace detail {

/// After a failure, drops all partial sums, so that a later sweep does not add to them.
struct ForgetUnlessDone {
  std::vector<Ref<RecordBase>>& records;
  bool done = false;

  constexpr ~ForgetUnlessDone() {
    if (done) return;
    for (const Ref<RecordBase>& record : records) {
      record->waiting = 0;
      record->table->forget(record.get());
    }
  }
};

/// Lists the communication of a complete gradient sum under the module in which the value was used.
constexpr void note_use(RecordBase& operand, const RecordBase& user, bool is_first) {
  if (is_first) operand.used_in = user.path;
  else if (operand.used_in != user.path)
    operand.used_in = cleave::detail::common_path(operand.used_in, user.path);
}

/// Propagates the gradient of `root`, which has been set, to all records that it depends on.
/// @param retain  the records keep their saved values for another sweep
constexpr void visit(RecordBase* root, bool retain) {
  std::vector<Ref<RecordBase>> reached;
  reached.emplace_back(root);
  for (std::size_t i = 0; i < reached.size(); ++i) {
    RecordBase* const record = reached[i].get();
    for (int k = 0; k < record->operand_count; ++k)
      if (RecordBase* const operand = record->operands[k].get(); operand != nullptr) {
        const bool is_first = operand->waiting++ == 0;
        if (is_first) reached.emplace_back(operand);
        note_use(*operand, *record, is_first);
      }
  }
  root->used_in = root->path;
  ForgetUnlessDone guard{reached};
  std::vector<RecordBase*> ready{root};
  while (!ready.empty()) {
    RecordBase* const record = ready.back();
    ready.pop_back();
    if (!std::is_constant_evaluated()) cleave::detail::CommPlace::current().path = record->used_in;
    record->table->run(record);
    for (const bool runs_first : {false, true})  // `ready` is last in, first out
      for (int k = 0; k < record->operand_count; ++k)
        if (RecordBase* const operand = record->operands[k].get();
            operand != nullptr && operand->runs_first == runs_first && --operand->waiting == 0)
          ready.push_back(operand);
    if (!retain) record->table->release(record);
  }
  guard.done = true;
}

}  // namespace detail

/// Runs a sweep, then the functions registered for its end, with `false` if the sweep failed.
///
/// A failure is rethrown only after these functions have run: asynchronous work that is destroyed
/// during stack unwinding notifies peers that this rank is failing, although all ranks may have hit
/// the same error and continue.
inline void sweep(RecordBase* root, bool retain) {
  if (Sweep::current() != nullptr)
    throw Error("backward", "called while another backward is in progress on this rank");
  const cleave::detail::PlaceScope place(
      cleave::detail::CommPlace{cleave::detail::CommPlace::current().path, true});
  Sweep mine;
  Sweep::current() = &mine;
  std::exception_ptr error;
  try {
    detail::visit(root, retain);
  } catch (...) {
    error = std::current_exception();
  }
  for (std::size_t i = 0; i < mine.at_end.size(); ++i) {
    const auto finish = std::move(mine.at_end[i]);  // it may register further functions
    try {
      finish(error == nullptr);
    } catch (...) {
      if (error == nullptr) error = std::current_exception();
    }
  }
  Sweep::current() = nullptr;
  if (error != nullptr) std::rethrow_exception(error);
}

}  // namespace cleave::inline v0::tape
