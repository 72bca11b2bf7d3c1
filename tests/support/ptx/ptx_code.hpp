// Decoded PTX: functions whose operands are slots of a thread's frame.
//
// Every register, constant, special register and address of a symbol has a slot of 8 bytes, so that
// an instruction reads its operands by index. Values of fewer bytes occupy the lowest; stores to a
// register clear the others.
//
// The language is that of NVIDIA's "PTX ISA", version 9.0; sections below are its.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace ptx {

struct Thread;
struct Instruction;
struct Function;
using Handler = void (*)(Thread&, const Instruction&);

/// State spaces (section 5.1). Addresses of all but `shared` are those of the host.
enum class Space : std::uint8_t { generic, global, shared, local, param, constant };

inline constexpr int address_slot = 4;

struct Instruction {
  Handler run = nullptr;
  std::int32_t guard = -1;  ///< slot of the predicate, if there is one
  bool negated = false;     ///< whether it runs where the predicate is false
  Space space = Space::generic;
  std::uint8_t count = 1;      ///< elements of a vector access; operands of a packing move
  std::uint8_t mode = 0;       ///< of rounding, of a shuffle, ..
  std::uint32_t slot[6] = {};  ///< destinations first; an address is in `address_slot`
  std::int64_t offset = 0;     ///< of an address; of a branch: the target
  std::uint32_t line = 0;      ///< in the PTX text
};

/// A number of bytes in a frame: a parameter or a variable.
struct FrameBytes {
  std::uint32_t slot = 0;
  std::uint32_t bytes = 0;
};

/// A slot that holds an address which depends on the thread's frame.
struct FrameAddress {
  std::uint32_t slot;
  std::uint32_t of_slot;
};

/// A parameter of a kernel.
struct ParameterBytes {
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;
};

/// A slot that holds an address within the parameters of a kernel.
struct ParameterAddress {
  std::uint32_t slot;
  std::uint32_t offset;
};

enum class Special : std::uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  lanemask_eq,
  lanemask_lt,
  lanemask_le,
  lanemask_gt,
  lanemask_ge,
  warpid
};

struct SpecialSlot {
  std::uint32_t slot;
  Special which;
};

/// What a call passes: variables of the caller's frame (section 7.1).
struct Call {
  const Function* callee = nullptr;
  std::vector<FrameBytes> arguments{};
  FrameBytes result{};
};

struct Function {
  std::string name{};
  bool kernel = false;
  std::vector<Instruction> code{};
  std::vector<Call> calls{};           ///< by slot[0] of the instruction
  std::vector<std::string> unknown{};  ///< instructions, by slot[0]
  std::vector<std::uint64_t> image{};  ///< initial contents of a frame
  std::vector<FrameAddress> frame_addresses{};
  std::vector<ParameterAddress> parameter_addresses{};  ///< of a kernel
  std::vector<SpecialSlot> specials{};
  std::vector<FrameBytes> parameters{};  ///< of a device function: in its frame
  FrameBytes result{};
  std::vector<ParameterBytes> kernel_parameters{};
};

/// A mistake of device code. The runner adds where it happened.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Block;

struct Frame {
  const Function* function;
  const Instruction* next;
  std::uint64_t* slots;
  FrameBytes result;  ///< where the callee's result goes
};

enum class State : std::uint8_t { running, at_barrier, at_warp, ended };

struct Thread {
  std::uint64_t* slots = nullptr;  ///< of the current frame
  const Instruction* next = nullptr;
  const Function* function = nullptr;
  Block* block = nullptr;
  State state = State::ended;
  std::uint32_t number = 0;  ///< within the block
  std::uint64_t executed = 0;
  std::vector<Frame> callers{};
  std::unique_ptr<std::uint64_t[]> stack{};
  std::uint64_t* stack_end = nullptr;

  template <class T>
  T get(std::uint32_t slot) const {
    T value;
    std::memcpy(&value, slots + slot, sizeof(T));
    return value;
  }
  template <class T>
  void set(std::uint32_t slot, T value) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    slots[slot] = bits;
  }
  bool predicate(std::uint32_t slot) const { return (slots[slot] & 1) != 0; }
};

/// The handler of an instruction that the interpreter lacks: running it is a fault.
void outside_subset(Thread& thread, const Instruction& instruction);

}  // namespace ptx
