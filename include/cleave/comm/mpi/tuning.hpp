// Which algorithm a collective uses between nodes, by its size and the ranks of its group: a small
// table, which a file may override (CLEAVE_TUNE).
//
// A line of the file is a row: the collective, its minimum ranks and bytes, and the algorithm. The
// last matching row applies. Other lines are about the machine (machine.hpp).
//
//   # collective   ranks  bytes  algorithm
//   all_reduce         2      0  messages
//   all_reduce        16   1024  library
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <cleave/comm/collective.hpp>
#include <cleave/comm/machine.hpp>
#include <cleave/core/checksum.hpp>
#include <cleave/core/error.hpp>

namespace cleave::detail {

enum class MpiAlgorithm : std::uint8_t {
  messages,   ///< cleave's own, between all ranks of the group
  library,    ///< the MPI library's own
  two_level,  ///< shared memory on nodes; the columns' calls consult the table again
};

class MpiTuning {
 public:
  struct Row {
    CollectiveKind kind{};
    int ranks = 0;      ///< of the group, at least
    index_t bytes = 0;  ///< of the whole array, at least
    MpiAlgorithm algorithm{};
    friend bool operator==(const Row&, const Row&) = default;
  };

  /// The default table, which the rows of a file override: two levels if the group allows them.
  MpiTuning() {
    for (const CollectiveKind kind : kinds) {
      rows_.push_back({kind, 0, 0, MpiAlgorithm::messages});
      rows_.push_back({kind, 0, 0, MpiAlgorithm::two_level});
    }
  }

  /// The default table, overridden by the file that CLEAVE_TUNE names, if any.
  /// @throws Error that names the invalid line, or the file that cannot be read
  static MpiTuning from_environment() {
    MpiTuning table;
    each_tune_line(&table, [](void* to, const std::string& text, const std::string& where) {
      if (!is_about_machine(text)) static_cast<MpiTuning*>(to)->add(row_of(text, where));
    });
    table.machine_ = MachineCosts::from_environment();
    table.measures_ = measures_machine();
    return table;
  }

  /// @param possible  whether an algorithm supports this call: the same on all ranks
  /// @return          that of the last matching row; `messages` if there is none
  template <class Possible>
  MpiAlgorithm choose(CollectiveKind kind, int ranks, index_t bytes,
                      const Possible& possible) const {
    MpiAlgorithm chosen = MpiAlgorithm::messages;
    for (const Row& row : rows_)
      if (row.kind == kind && ranks >= row.ranks && bytes >= row.bytes && possible(row.algorithm))
        chosen = row.algorithm;
    return chosen;
  }

  const std::vector<Row>& rows() const noexcept { return rows_; }
  void add(const Row& row) { rows_.push_back(row); }

  /// For comparing the tables of ranks.
  std::uint64_t checksum() const {
    std::vector<index_t> numbers;
    for (const Row& row : rows_)
      numbers.insert(numbers.end(),
                     {index_t(row.kind), row.ranks, row.bytes, index_t(row.algorithm)});
    for (const LinkCosts& costs : {machine_.inside, machine_.between})
      for (const double number : {costs.latency_us, costs.bytes_per_us})
        numbers.push_back(std::bit_cast<index_t>(number));
    numbers.insert(numbers.end(), {machine_.ranks_per_node, measures_});
    return detail::checksum(std::span<const index_t>(numbers));
  }

 private:
  static constexpr CollectiveKind kinds[] = {
      CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_reduce,
      CollectiveKind::all_to_all, CollectiveKind::exchange};
  static constexpr const char* algorithms[] = {"messages", "library", "two_level"};

  static Row row_of(const std::string& text, const std::string& where) {
    std::istringstream words(text);
    std::string kind, algorithm, more;
    Row row;
    bool known = bool(words >> kind >> row.ranks >> row.bytes >> algorithm) && !(words >> more) &&
                 row.ranks >= 0 && row.bytes >= 0;
    bool found = false;
    for (const CollectiveKind k : kinds)
      if (kind == name_of(k)) row.kind = k, found = true;
    known = known && found, found = false;
    for (int a = 0; a < 3; ++a)
      if (algorithm == algorithms[a]) row.algorithm = MpiAlgorithm(a), found = true;
    if (!known || !found)
      throw Error("run", "CLEAVE_TUNE: " + where + ": '" + text +
                             "' is not a valid row; use: COLLECTIVE RANKS BYTES "
                             "messages|library|two_level");
    return row;
  }

  std::vector<Row> rows_;
  MachineCosts machine_;   ///< used by plans
  bool measures_ = false;  ///< whether those costs are measured
};

}  // namespace cleave::detail
