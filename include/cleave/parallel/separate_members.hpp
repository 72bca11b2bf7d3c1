// Rejects modules with two members in the same memory: each member would be placed, reduced and
// updated as if it were the only one.
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <cleave/core/error.hpp>
#include <cleave/nn/trained.hpp>
#include <cleave/nn/visit.hpp>

namespace cleave::inline v0::parallel {

/// @throws Error if two parameters of a module begin at the same element
template <class M>
void require_separate_members(const char* operation, const M& m) {
  std::vector<std::pair<const void*, std::string>> seen;
  nn::named_parameters(m, [&](const std::string& path, const auto& x) {
    if constexpr (!nn::is_lazy<std::remove_cvref_t<decltype(x)>>) {
      const auto& local = nn::detail::local_of(tape::value_of(x));
      if (local.empty()) return;
      for (const auto& [data, other] : seen)
        if (data == local.data())
          throw Error(operation, "'" + other + "' and '" + path +
                                     "' share memory; make them one member, which the "
                                     "module may use several times");
      seen.emplace_back(local.data(), path);
    }
  });
}

}  // namespace cleave::inline v0::parallel
