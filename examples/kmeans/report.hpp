// The output of kmeans: communication, the composition of clusters, centroids as pictures.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <cleave/cleave.hpp>

namespace kmeans {

using cleave::index_t;

/// "all_reduce tp 71880 B, all_reduce dp 2672 B": what one rank received in each call.
inline std::string describe(const cleave::CommTrace& trace) {
  std::string text;
  for (const cleave::CommEvent& event : trace.events())
    text += (text.empty() ? "" : ", ") + std::string(name_of(event.kind)) + " " + event.group +
            " " + std::to_string(event.bytes) + " B";
  return text.empty() ? "nothing" : text;
}

/// The time of each iteration.
class Stopwatch {
 public:
  void start() { since_ = Clock::now(); }
  void stop() { seconds_.push_back(std::chrono::duration<double>(Clock::now() - since_).count()); }
  /// @pre at least one iteration has been timed
  double median() const {
    std::vector<double> sorted = seconds_;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point since_{};
  std::vector<double> seconds_{};
};

/// The number of points of each label in every cluster.
class Census {
 public:
  Census(const cleave::Tensor<index_t, 1>& clusters, const cleave::Tensor<std::uint8_t, 1>& labels,
         index_t k)
      : counts_(std::size_t(k), std::vector<index_t>(256)) {
    for (index_t i = 0; i < labels.size(); ++i) ++counts_[std::size_t(clusters(i))][labels(i)];
  }

  /// The most frequent label of a cluster.
  int label_of(index_t cluster) const {
    const auto& counts = counts_[std::size_t(cluster)];
    return int(std::max_element(counts.begin(), counts.end()) - counts.begin());
  }

  /// The share of all points whose label is that of their cluster.
  double purity() const {
    index_t right = 0, all = 0;
    for (const auto& counts : counts_) {
      right += *std::max_element(counts.begin(), counts.end());
      for (const index_t n : counts) all += n;
    }
    return double(right) / double(all);
  }

 private:
  std::vector<std::vector<index_t>> counts_;  // [cluster][label]
};

/// Two equal characters for a grey value: "@@" for the darkest, "  " for the brightest.
inline std::string shade(double grey, double darkest) {
  const std::string ramp = " .:-=+*#%@";
  const double level = darkest > 0 ? grey / darkest * double(ramp.size()) : 0;
  const char c = ramp[level <= 0 ? 0 : level >= 9 ? 9 : std::size_t(level)];
  return {c, c};
}

/// Square pictures side by side.
///
/// @param pictures  [pictures, side * side]
/// @param captions  one line for each
inline void draw(const cleave::Tensor<double, 2>& pictures, index_t side,
                 const std::vector<std::string>& captions) {
  double darkest = 0;
  for (index_t i = 0; i < pictures.size(); ++i) darkest = std::max(darkest, pictures.data()[i]);
  const int width = int(2 * side);
  const index_t across = std::max(index_t{1}, 90 / index_t(width + 2));
  for (index_t first = 0; first < pictures.extent(0); first += across) {
    const index_t last = std::min(first + across, pictures.extent(0));
    std::printf("\n");
    for (index_t p = first; p < last; ++p)
      std::printf("  %-*.*s", width, width, captions[std::size_t(p)].c_str());
    for (index_t y = 0; y < side; ++y) {
      std::printf("\n");
      for (index_t p = first; p < last; ++p) {
        std::printf("  ");
        for (index_t x = 0; x < side; ++x)
          std::printf("%s", shade(pictures(p, y * side + x), darkest).c_str());
      }
    }
    std::printf("\n");
  }
}

}  // namespace kmeans
