// Decoded PTX: a kernel whose operands are slots of a thread's frame.
//
// A frame begins with the bytes of the kernel's parameters and local variables. Then every
// register, constant, special register and address of a variable has a slot of 8 bytes, so that an
// instruction reads its operands by index. Values of fewer bytes occupy the lowest; writing a
// register clears the others.
//
// The language is that of NVIDIA's "PTX ISA", version 9.0; sections below are its.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace ptx {

struct Thread;
struct Instruction;
using Handler = void (*)(Thread&, const Instruction&);

/// State spaces (section 5.1); parameters and local memory are in the frame. Addresses of all but
/// `shared` are those of the host.
enum class Space : std::uint8_t { generic, global, shared, frame };

inline constexpr int address_slot = 4;

/// What memory and registers contain until they are written.
inline constexpr std::uint64_t never_written = 0xa5a5'a5a5'a5a5'a5a5;

struct Instruction {
  Handler run = nullptr;
  std::int32_t guard = -1;  ///< slot of the predicate, if there is one
  bool negated = false;     ///< whether it runs where the predicate is false
  Space space = Space::generic;
  std::uint8_t elements = 1;   ///< of a vector access
  std::uint8_t operands = 0;   ///< without an address
  std::uint8_t mode = 0;       ///< of a barrier or an exchange within a warp
  std::uint32_t slot[6] = {};  ///< destinations first; an address is in `address_slot`
  std::int64_t offset = 0;     ///< of an address; of a branch: from the next instruction
  std::size_t position = 0;    ///< in the PTX text
};

/// A slot that holds the address of a parameter or a local variable.
struct FrameAddress {
  std::uint32_t slot;
  std::uint32_t offset;  ///< of the variable in the frame, in bytes
};

/// Special registers (section 10).
inline constexpr std::array<std::string_view, 14> special_registers = {
    "%tid.x",   "%tid.y",   "%tid.z",    "%ntid.x",   "%ntid.y",   "%ntid.z", "%ctaid.x",
    "%ctaid.y", "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z", "%laneid", "%lanemask_le"};

struct SpecialSlot {
  std::uint32_t slot;
  std::size_t which;  ///< of `special_registers`
};

struct Parameter {
  std::uint32_t offset;  ///< in the frame
  std::uint32_t bytes;
};

struct Kernel {
  std::string name{};
  std::string_view text{};  ///< of the module
  std::vector<Instruction> code{};
  std::vector<std::uint64_t> image{};  ///< initial contents of a frame
  std::vector<Parameter> parameters{};
  std::vector<FrameAddress> addresses{};
  std::vector<SpecialSlot> specials{};
  std::uint32_t parameter_bytes = 0;
  std::uint32_t frame_bytes = 0;  ///< of parameters and local variables
  std::uint32_t shared_bytes = 0;
  bool stops = false;  ///< whether threads wait for one another
};

/// A mistake of device code. The runner adds where it happened.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Block;

enum class State : std::uint8_t { running, at_barrier, at_warp, ended };

struct Thread {
  std::uint64_t* slots = nullptr;  ///< its frame
  const Instruction* next = nullptr;
  Block* block = nullptr;
  State state = State::ended;
  std::uint32_t number = 0;  ///< within the block
  std::uint64_t budget = 0;  ///< instructions that it may yet execute

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

}  // namespace ptx
