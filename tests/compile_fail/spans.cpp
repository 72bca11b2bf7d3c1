// Invalid conversions between tensors and the memory of vectors and spans.
#include <span>
#include <utility>
#include <vector>

#include <cleave/tensor/spans.hpp>

using namespace cleave;

void control(std::vector<float>& values, std::span<const float> few) {
  (void)as_tensor(values, {2, 3});
  (void)to_tensor(few);
  (void)adopt(std::move(values), {2, 3});
}

#ifdef tensor_of_const_memory  // says: cleave: the values are const, but a Tensor's elements can be written; copy them: to_tensor(values, extents)
void constant(std::span<const float> values) { (void)as_tensor(values, {2, 3}); }
#endif

#ifdef tensor_of_a_temporary  // says: cleave: a tensor of a temporary's memory would dangle; adopt(std::move(values), extents) keeps a vector
void temporary() { (void)as_tensor(std::vector<float>(6), {2, 3}); }
#endif

#ifdef adopted_without_move  // says: cleave: adopt takes over a std::vector that may be changed: adopt(std::move(values), extents); to_tensor copies values, as_tensor refers to them
void lvalue(std::vector<float>& values) { (void)adopt(values, {2, 3}); }
#endif

#ifdef adopted_span  // says: cleave: adopt takes over a std::vector that may be changed
void span(std::span<float> values) { (void)adopt(values, {2, 3}); }
#endif

#ifdef adopted_bits  // says: cleave: a std::vector<bool> holds bits, which a tensor cannot adopt
void bits() { (void)adopt(std::vector<bool>(6), {2, 3}); }
#endif
