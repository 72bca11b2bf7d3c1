// The state of modules and optimizers: named, type-erased tensors, and notes as text.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/grad/backward.hpp>
#include <cleave/nn/visit.hpp>
#include <cleave/placement/placement.hpp>
#include <cleave/tensor/view.hpp>

namespace cleave::inline v0::nn {

/// Elements on the host, with the storage that keeps them alive.
struct HostElements {
  View view;
  std::shared_ptr<void> storage;
};

/// A tensor of a StateDict. A handle.
struct StateEntry {
  std::string name;
  DType dtype;
  Shape shape;                           ///< global extents
  std::shared_ptr<const Layout> layout;  ///< null for a Tensor, which is the same on all ranks
  const MeshState* mesh;                 ///< null for a Tensor
  std::shared_ptr<void> tensor;
  tape::RecordBase* leaf;                     ///< of a tracked parameter, else null
  HostElements (*fetch)(const void* tensor);  ///< this rank's elements
  void (*store)(const void* tensor, const HostElements& from);  ///< writes changed elements back
  /// The elements that this rank has under `layout->with_boxes()`, if that is another layout, else
  /// null. @collective every rank of the mesh
  HostElements (*fetch_box)(const StateEntry& entry) = nullptr;
};

/// Text stored with the tensors of a checkpoint, for example the number of steps.
using Notes = std::vector<std::pair<std::string, std::string>>;

/// The note with the given name; empty if there is none.
inline std::string note_of(const Notes& notes, const std::string& name) {
  for (const auto& [key, text] : notes)
    if (key == name) return text;
  return "";
}

/// The state to save: `state_dict(model, "model.") + state_dict(optimizer, "optimizer.")`.
struct StateDict {
  std::vector<StateEntry> tensors{};
  Notes notes{};

  friend StateDict operator+(StateDict a, const StateDict& b) {
    a.tensors.insert(a.tensors.end(), b.tensors.begin(), b.tensors.end());
    a.notes.insert(a.notes.end(), b.notes.begin(), b.notes.end());
    return a;
  }
};

namespace detail {

template <class X>
HostElements fetch_elements(const void* tensor) {
  const auto host = static_cast<const X*>(tensor)->to(Host{});
  return {host.view(), host.storage()};
}

template <class X>
HostElements fetch_box_of(const StateEntry& entry) {
  const X& x = *static_cast<const X*>(entry.tensor.get());
  const X box = cleave::detail::tensor_of<X>(redistribution::run<typename X::device_type>(
      nullptr, *entry.layout, entry.layout->with_boxes(), {x.storage(), x.view()},
      {*entry.mesh, entry.shape, "save_checkpoint"}));
  return fetch_elements<X>(&box);
}

template <class X>
void store_elements(const void* tensor, const HostElements& from) {
  using Device = typename X::device_type;
  if constexpr (!std::is_same_v<Device, Host>) {
    using T = typename X::value_type;
    const auto host = Tensor<T, X::dims>::adopt(static_cast<T*>(from.view.data),
                                                to_array<X::dims>(from.view.extents), from.storage);
    static_cast<const X*>(tensor)->copy_(host.to(Device{}));
  } else {
    note_change(Device{}, from.storage);
  }
}

template <class X>
StateEntry entry_of(const std::string& name, const X& x) {
  static_assert(!is_lazy<X>,
                "cleave: state_dict: the module has uninitialised parameters; initialise them with "
                "place(module, mesh), or with make(module, state) on one device");
  if constexpr (tape::is_tracked<X>) {
    StateEntry entry = entry_of(name, x.value());
    entry.leaf = x.slot();
    return entry;
  } else if constexpr (is_dtensor<X>) {
    static_assert(!X::layout.has_partial(),
                  "cleave: a Partial tensor cannot be saved as state; redistribute it");
    StateEntry entry = entry_of(name, x.to_local());
    entry.shape = Shape(x.shape());
    if constexpr (X::is_open) entry.layout = std::make_shared<Layout>(x.actual_layout());
    else entry.layout = {std::shared_ptr<const void>(), &X::layout};  // a constant
    entry.mesh = &x.mesh().state();
    if constexpr (!X::layout.is_box()) entry.fetch_box = &fetch_box_of<typename X::local_type>;
    return entry;
  } else {
    return {name,
            dtype_of<typename X::value_type>(),
            Shape(x.shape()),
            nullptr,
            nullptr,
            std::make_shared<X>(x),
            nullptr,
            &fetch_elements<X>,
            &store_elements<X>};
  }
}

}  // namespace detail

/// All parameters and buffers of a module; for an optimizer, its state.
///
/// @param prefix  prepended to their names: "model."
template <class M>
StateDict state_dict(const M& m, const std::string& prefix = "") {
  StateDict state;
  named_tensors(m, [&](const std::string& path, const auto& x) {
    state.tensors.push_back(detail::entry_of(prefix + path, x));
  });
  return state;
}

}  // namespace cleave::inline v0::nn
