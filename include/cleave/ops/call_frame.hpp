// The run-time part of a call of an operation, without its types: extents and meshes are compared,
// operands brought where they are needed, errors are worded. Compiled once for all operations.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include <cleave/core/error.hpp>
#include <cleave/core/shape.hpp>
#include <cleave/dtensor/route.hpp>
#include <cleave/mesh/mesh_state.hpp>
#include <cleave/placement/ownership.hpp>
#include <cleave/placement/placement.hpp>
#include <cleave/rules/explain.hpp>
#include <cleave/rules/sharding_rule.hpp>
#include <cleave/tensor/tensor.hpp>

namespace cleave::detail {

/// An operand at run time; a scalar has no dimensions and no mesh.
struct OperandInfo {
  const index_t* shape = nullptr;
  int dims = 0;
  const Layout* layout = nullptr;
  const MeshState* mesh = nullptr;
};

/// What a call knows before it looks at elements.
class CallFrame {
 public:
  /// Compares meshes and extents.
  ///
  /// @param name         what the user called
  /// @param broadcasts   whether extents of 1 repeat
  /// @param operands     as many as the rule has; outlive the frame
  /// @param new_extents  of the factors that only the result has, in the order of their letters
  /// @throws Error if the meshes differ; on ranks of the mesh, which know them, if the extents of
  ///         a factor do
  CallFrame(const char* name, const Rule& rule, bool broadcasts, const OperandInfo* operands,
            const std::array<index_t, max_dims>& new_extents)
      : name_(name), rule_(rule), broadcasts_(broadcasts), operands_(operands) {
    for (int f = 0; f < rule.factors; ++f) extents_[std::size_t(f)] = -1;
    for (int i = 0; i < rule.operands; ++i) {
      const OperandInfo& operand = operands[i];
      if (operand.mesh == nullptr) continue;
      if (mesh_ == nullptr) mesh_ = operand.mesh;
      else if (!(*mesh_ == *operand.mesh))
        throw Error(name, "the operands are on different meshes of one type", context());
      for (int d = 0; d < operand.dims; ++d) {
        index_t& known = extents_[factor(i, d)];
        const index_t extent = operand.shape[d];
        if (known == extent || (broadcasts && extent == 1 && known >= 0)) continue;
        if (known >= 0 && !(broadcasts && known == 1) && mesh_->is_member())
          throw_extents(i, d, known);
        known = extent;
      }
    }
    int next = 0;
    for (int f = 0; f < rule.factors; ++f)
      if (extents_[std::size_t(f)] < 0) extents_[std::size_t(f)] = new_extents[std::size_t(next++)];
  }

  const char* name() const { return name_; }
  const MeshState& mesh() const { return *mesh_; }
  /// Global extents of the result.
  Shape result_shape() const {
    Shape shape = Shape::filled(rule_.result.dims, 0);
    for (int d = 0; d < shape.dims; ++d)
      shape[d] = extents_[std::size_t(rule_.result.factor[std::size_t(d)])];
    return shape;
  }
  /// The global indices that this rank holds under a layout; none on a rank outside of the mesh.
  Box local_box(const Layout& layout, const Shape& shape) const {
    if (!mesh_->is_member()) return Box::of(Shape::filled(shape.dims, 0));
    return owned_box(layout, shape, mesh_->extents(), mesh_->coordinate());
  }
  /// Whether a dimension of an operand has extent 1 where others have another.
  bool repeats(int operand, int d) const {
    return operands_[operand].shape[d] == 1 && extents_[factor(operand, d)] != 1;
  }

  /// The placements that an operand really needs: repeated dimensions are there on every rank.
  /// @throws Error if one is sharded and would have to stay so
  Layout repeatable(int i, Layout required) const {
    if (!broadcasts_) return required;
    for (int a = 0; a < required.axes; ++a) {
      if (!required[a].is_shard() || mesh_->extents()[a] == 1 || !repeats(i, required[a].dim))
        continue;
      if ((*operands_[i].layout)[a] == required[a])
        throw Error(name_,
                    "dimension " + std::to_string(int(required[a].dim)) + " of operand " +
                        std::to_string(i) +
                        " has extent 1 and is repeated, but it is sharded over "
                        "axis '" +
                        mesh_->name(a) + "'; redistribute it to Replicate first",
                    context());
      required[a] = Placement::replicate();
    }
    return required;
  }

  /// The local elements of operand i, which lie at the source of the route, at its target, or
  /// wherever they can be repeated.
  /// @collective every rank of the mesh
  template <class T, int Rank, class Device>
  Tensor<T, Rank, Device> moved(int i, const Tensor<T, Rank, Device>& x, const Route& route) const {
    const Layout target = repeatable(i, route.target);
    if (target == route.source) return x;
    const bool is_fixed = target == route.target;
    std::array<index_t, std::size_t(Rank)> shape;
    for (int d = 0; d < Rank; ++d) shape[std::size_t(d)] = operands_[i].shape[d];
    return redistribute_local(x, is_fixed ? route : Route{route.source, target}, mesh(), shape,
                              name_);
  }

  /// Shapes, placements, mesh and rank, for errors.
  ErrorContext context() const {
    ErrorContext text;
    for (int i = 0; i < rule_.operands; ++i) {
      const OperandInfo& operand = operands_[i];
      if (operand.mesh == nullptr) continue;
      Shape shape = Shape::filled(operand.dims, 0);
      for (int d = 0; d < operand.dims; ++d) shape[d] = operand.shape[d];
      const char* joint = text.shapes.empty() ? "" : " and ";
      text.shapes += joint + to_string(shape);
      text.placements += joint + to_string(*operand.layout);
      const std::string mesh = operand.mesh->describe();
      if (text.mesh.find(mesh) == text.mesh.npos) text.mesh += joint + mesh;
      text.rank = operand.mesh->world_rank();
    }
    return text;
  }

 private:
  std::size_t factor(int operand, int d) const {
    return std::size_t(rule_.operand[std::size_t(operand)].factor[std::size_t(d)]);
  }

  [[noreturn]] void throw_extents(int operand, int d, index_t known) const {
    throw Error(name_,
                std::string("the operands disagree about '") + rule_.letter[factor(operand, d)] +
                    "' of " + to_string(rule_) + ": operand " + std::to_string(operand) + " has " +
                    std::to_string(operands_[operand].shape[d]) + ", the ones before it " +
                    std::to_string(known),
                context());
  }

  const char* name_;
  const Rule& rule_;
  bool broadcasts_;
  const OperandInfo* operands_;
  const MeshState* mesh_ = nullptr;
  std::array<index_t, Rule::max_factors> extents_;
};

}  // namespace cleave::detail
