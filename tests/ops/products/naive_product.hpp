// Products of arrays in Einstein notation by loops over all indices.
#pragma once

#include <string>
#include <vector>

#include "../placed.hpp"

namespace cleave::testing {

/// The sum over all letters of the product of the elements.
template <class T>
Array<T> naive_product(const std::string& text, const std::vector<Array<T>>& x) {
  std::vector<std::string> words(1);
  for (const char c : text.substr(0, text.find("->")))
    if (c == ',') words.emplace_back();
    else words.back() += c;
  words.push_back(text.substr(text.find("->") + 2));
  std::string letters;
  naive::Indices extents;
  for (std::size_t i = 0; i < x.size(); ++i)
    for (std::size_t d = 0; d < words[i].size(); ++d)
      if (letters.find(words[i][d]) == letters.npos)
        letters += words[i][d], extents.push_back(x[i].shape[d]);
  const auto at = [&](const std::string& word, const naive::Indices& index) {
    naive::Indices own;
    for (const char c : word) own.push_back(index[letters.find(c)]);
    return own;
  };
  Array<T> y(at(words.back(), extents));
  for (const naive::Indices& index : naive::all_indices(extents)) {
    T product(1);
    for (std::size_t i = 0; i < x.size(); ++i) product *= x[i].at(at(words[i], index));
    y.at(at(words.back(), index)) += product;
  }
  return y;
}

}  // namespace cleave::testing
