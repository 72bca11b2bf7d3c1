#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "../list/products.hpp"
#include "operation.hpp"

namespace cleave::testing {

inline Naive naive_of(ops::Matmul) {
  return {[](const Arrays& x) {
    Numbers y({x[0].shape[0], x[1].shape[1]});
    for (index_t i = 0; i < y.shape[0]; ++i)
      for (index_t j = 0; j < y.shape[1]; ++j)
        for (index_t k = 0; k < x[0].shape[1]; ++k)
          y.at({i, j}) += x[0].at({i, k}) * x[1].at({k, j});
    return y;
  }};
}

/// An Einstein sum given as text: "ij,jk->ik".
inline Numbers naive_einsum(const std::string& text, const Arrays& x) {
  const std::size_t arrow = text.find("->");
  std::vector<std::string> of(1);
  for (const char c : text.substr(0, arrow))
    if (c == ',') of.emplace_back();
    else of.back() += c;
  const std::string result = text.substr(arrow + 2);
  std::string letters;
  naive::Indices extents;
  for (std::size_t i = 0; i < of.size(); ++i)
    for (std::size_t d = 0; d < of[i].size(); ++d) {
      const std::size_t known = letters.find(of[i][d]);
      if (known == std::string::npos) letters += of[i][d], extents.push_back(x[i].shape[d]);
      else if (extents[known] == 1) extents[known] = x[i].shape[d];
    }
  const auto at = [&](const std::string& word, const naive::Indices& index, const Numbers* array) {
    naive::Indices own;
    for (std::size_t d = 0; d < word.size(); ++d)
      own.push_back(array != nullptr && array->shape[d] == 1 ? 0 : index[letters.find(word[d])]);
    return own;
  };
  Numbers y(at(result, extents, nullptr));
  for (const naive::Indices& index : naive::all_indices(extents)) {
    auto product = x[0].at(at(of[0], index, &x[0]));
    for (std::size_t i = 1; i < of.size(); ++i) product *= x[i].at(at(of[i], index, &x[i]));
    y.at(at(result, index, nullptr)) += product;
  }
  return y;
}
template <class Text, bool Repeats>
Naive naive_of(ops::Contract<Text, Repeats>) {
  return {[](const Arrays& x) { return naive_einsum(std::string(Text::text), x); }};
}
/// A composite operation has no letters; these are the letters of the text.
template <class Text>
Naive naive_of(ops::ContractAll<Text>) {
  Naive naive{[](const Arrays& x) { return naive_einsum(std::string(Text::text), x); }};
  for (int i = 0; i < Text::parts.operands; ++i)
    naive.letters.emplace_back(std::string_view(Text::parts.operand[std::size_t(i)]));
  return naive;
}
template <class Text>
Naive naive_of(ops::ExactContract<Text>) {
  Naive naive = naive_of(ops::Contract<Text>{});
  for (int i = 0; i < 2; ++i)
    naive.letters.emplace_back(std::string_view(Text::parts.operand[std::size_t(i)]));
  return naive;
}
inline Naive naive_of(ops::Linear) {
  return {[](const Arrays& x) {
    const bool is_matrix = x[0].shape.size() == 2;
    Numbers y = naive_einsum(is_matrix ? "ak,nk->an" : "abk,nk->abn", {x[0], x[1]});
    for (const naive::Indices& index : naive::all_indices(y.shape))
      y.at(index) += x[2].at({index.back()});
    return y;
  }};
}

/// x is a batch of sequences.
inline Naive naive_of(ops::ExactLinear) {
  Naive naive = naive_of(ops::Linear{});
  naive.letters = {"abk", "nk", "n"};
  return naive;
}

/// x is a batch of square matrices [a, n, n].
inline Naive naive_of(ops::Diagonal) {
  Naive naive{[](const Arrays& x) {
    Numbers y({x[0].shape[0], x[0].shape[1]});
    for (const naive::Indices& at : naive::all_indices(y.shape))
      y.at(at) = x[0].at({at[0], at[1], at[1]});
    return y;
  }};
  naive.letters = {"abb"};
  naive.extents = {{2, 5}, {3, 1}, {4, 7}, {2, 0}};
  return naive;
}
inline Naive naive_of(ops::Diag) {
  return {[](const Arrays& x) {
    Numbers y({x[0].shape[0], x[0].shape[1], x[0].shape[1]});
    for (const naive::Indices& at : naive::all_indices(x[0].shape))
      y.at({at[0], at[1], at[1]}) = x[0].at(at);
    return y;
  }};
}

}  // namespace cleave::testing
