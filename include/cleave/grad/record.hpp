// The tape: records of what was called, each with references to the records of its operands. A
// sweep visits them from the result backwards and frees what they hold as it passes.
//
// Records are typed by their values; what is here knows none of the types. It is plain code without
// virtual functions, so that a compiler can run it too, where programs are traced with their
// gradients: in constant expressions g++ 12 and nvcc 13 do not call virtual functions right. A tape
// belongs to one rank's thread.
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

namespace cleave::tape {

struct RecordBase;

/// A counted reference to a record.
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

  /// Refers to nothing.
  constexpr void reset() {
    if (R* const record = release(); record != nullptr && --record->references == 0)
      destroy(record);
  }

  constexpr R* get() const { return record_; }
  constexpr R* operator->() const { return record_; }
  constexpr explicit operator bool() const { return record_ != nullptr; }
  /// Gives the reference up without counting it down.
  constexpr R* release() { return std::exchange(record_, nullptr); }

 private:
  R* record_ = nullptr;
};

/// What a type of record can do.
struct Table {
  void (*destroy)(RecordBase*);
  void (*run)(RecordBase*);      ///< takes its gradient, adds to those of its operands
  void (*release)(RecordBase*);  ///< frees what it has saved
  void (*forget)(RecordBase*);   ///< drops gradients that have arrived: a sweep has failed
};

struct RecordBase {
  const Table* table;
  Ref<RecordBase>* operands = nullptr;  ///< of the record that derives from this
  int operand_count = 0;
  int references = 0;
  int waiting = 0;  ///< in a sweep: how many users have not passed their gradient yet
  int version = 0;  ///< counts changes of the value in place
  /// Its turn comes before that of others that are ready: parameters, whose gradients then can be
  /// sent while the sweep goes on, and given back.
  bool runs_first = false;
  const std::string* path = nullptr;     ///< of the module that is called, see `CommPlace`
  const std::string* used_in = nullptr;  ///< in a sweep: the innermost module that all users are in

  constexpr explicit RecordBase(const Table* t) : table(t) {
    if (!std::is_constant_evaluated()) path = cleave::detail::CommPlace::current().path;
  }
  RecordBase(const RecordBase&) = delete;  // referred to by its address
  RecordBase& operator=(const RecordBase&) = delete;
};

/// Destroys a record that nobody refers to, and those that only it referred to: in a loop, since a
/// tape may be longer than the stack is deep.
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

/// What happens at the end of the sweep of this rank's thread; null outside of one.
struct Sweep {
  std::vector<std::function<void(bool complete)>> at_end{};

  static Sweep*& current() {
    static thread_local Sweep* sweep = nullptr;
    return sweep;
  }
};

namespace detail {

/// After a failure nothing is left that a later sweep would add to.
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

/// What a gradient has to communicate when its sum is complete is listed under the module in which
/// the value was used.
constexpr void note_use(RecordBase& operand, const RecordBase& user, bool is_first) {
  if (is_first) operand.used_in = user.path;
  else if (operand.used_in != user.path)
    operand.used_in = cleave::detail::common_path(operand.used_in, user.path);
}

/// Passes gradients from `root`, whose own has arrived, to everything that it was made of.
/// @param retain  the records keep what they have saved, for another sweep
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
    for (const bool runs_first : {false, true})  // the last is taken first
      for (int k = 0; k < record->operand_count; ++k)
        if (RecordBase* const operand = record->operands[k].get();
            operand != nullptr && operand->runs_first == runs_first && --operand->waiting == 0)
          ready.push_back(operand);
    if (!retain) record->table->release(record);
  }
  guard.done = true;
}

}  // namespace detail

/// A sweep with its end: functions that were left for it run when all gradients have been passed,
/// with `false` if the sweep has failed.
///
/// Failures are passed on after that. Asynchronous work that a destructor drops while an exception
/// passes tells peers that this rank is ending; but all ranks may have met the same error, and go
/// on.
inline void sweep(RecordBase* root, bool retain) {
  if (Sweep::current() != nullptr)
    throw Error("backward", "it was called while another backward is under way on this rank");
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
    const auto finish = std::move(mine.at_end[i]);  // it may add more
    try {
      finish(error == nullptr);
    } catch (...) {
      if (error == nullptr) error = std::current_exception();
    }
  }
  Sweep::current() = nullptr;
  if (error != nullptr) std::rethrow_exception(error);
}

}  // namespace cleave::tape
