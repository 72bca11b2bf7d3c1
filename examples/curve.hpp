// A curve, of losses or of something else, as an SVG file.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "command_line.hpp"

namespace training {

class Curve {
 public:
  /// @param name    what the curve shows
  /// @param option  names the file
  explicit Curve(std::string name = "loss", std::string option = "--curve")
      : name_(std::move(name)), option_(std::move(option)) {}

  /// A value that is not finite is left out.
  void add(double x, double value) { points_.push_back({x, value}); }

  /// @param unit  the unit of x, such as "steps"
  /// @throws UsageError if the file cannot be written
  void write(const std::string& path, const std::string& unit) const {
    std::ofstream file(path);
    file << svg(unit);
    file.close();
    if (!file) throw command_line::UsageError(option_ + " " + path + " cannot be written");
  }

  std::string svg(const std::string& unit) const {
    Range x, y{0, 0};
    for (const Point& p : points_) {
      x = x.with(p.x);
      if (std::isfinite(p.value)) y = y.with(p.value);
    }
    const auto across = [&](double value) { return left + width * x.share(value); };
    const auto down = [&](double value) { return top + height * (1 - y.share(value)); };
    std::string text =
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 480 300\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"480\" height=\"300\" "
        "fill=\"white\"/>\n";
    for (const double value : y.ticks())
      text += "<path d=\"M" + number(left) + " " + number(down(value)) + "h" + number(width) +
              "\" stroke=\"#ddd\"/>\n" + label(left - 6, down(value) + 4, "end", number(value));
    for (const double value : x.ticks())
      text += label(across(value), top + height + 18, "middle", number(value));
    text +=
        label(left + width, top + height + 36, "end", unit) + label(left, top - 8, "start", name_);
    text += "<polyline fill=\"none\" stroke=\"#1f5fa8\" stroke-width=\"2\" points=\"";
    for (const Point& p : points_)
      if (std::isfinite(p.value)) text += number(across(p.x)) + "," + number(down(p.value)) + " ";
    return text + "\"/>\n</svg>\n";
  }

 private:
  static constexpr double left = 50, top = 30, width = 410, height = 220;

  struct Point {
    double x, value;
  };

  struct Range {
    double low = HUGE_VAL, high = -HUGE_VAL;

    Range with(double value) const { return {std::min(low, value), std::max(high, value)}; }
    double share(double value) const { return high > low ? (value - low) / (high - low) : 0.5; }
    /// About five round numbers in the range.
    std::vector<double> ticks() const {
      std::vector<double> values;
      if (!(high > low)) return values;
      double step = std::pow(10, std::floor(std::log10((high - low) / 4)));
      for (const double factor : {2.0, 2.5, 2.0})
        if ((high - low) / step > 6) step *= factor;
      for (double value = std::ceil(low / step) * step; value <= high; value += step)
        values.push_back(value);
      return values;
    }
  };

  static std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4g", value);
    return text;
  }
  static std::string label(double x, double y, const char* anchor, const std::string& words) {
    return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor + "\">" +
           words + "</text>\n";
  }

  std::string name_, option_;
  std::vector<Point> points_{};
};

}  // namespace training
