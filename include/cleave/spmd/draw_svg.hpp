// Graphs and programs as SVG pictures, without other programs: a row for each instruction, on its
// left the values as lines from where they are made to where they are used, on its right the
// memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <vector>

#include <cleave/mesh/device_mesh.hpp>
#include <cleave/spmd/drawing.hpp>

namespace cleave::inline v0::spmd {

namespace detail {

inline std::string xml_text(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&') escaped += "&amp;";
    else if (c == '<') escaped += "&lt;";
    else if (c == '>') escaped += "&gt;";
    else if (c == '"') escaped += "&quot;";
    else escaped += c;
  }
  return escaped;
}

/// Draws rows.
class SvgPicture {
 public:
  explicit SvgPicture(const Drawing& drawing) : drawing_(drawing) {
    find_lanes();
    std::size_t longest = drawing.summary.size();
    for (const DrawnRow& row : drawing.rows) longest = std::max(longest, row.text.size());
    text_x_ = lane_width * (int(lanes_) + 2);
    curve_x_ = text_x_ + int(longest) * letter_width + lane_width;
    for (std::size_t v = 0; v < drawing.bytes.size(); ++v) draw_value(v);
    for (std::size_t r = 0; r < drawing.rows.size(); ++r) draw_row(r);
    if (!drawing.in_use.empty()) draw_peak();
    text(text_x_, y_of(int(drawing.rows.size())), drawing.summary, "");
  }

  std::string take() const {
    const std::string width = std::to_string(curve_x_ + curve_width + 13 * letter_width);
    const std::string height = std::to_string(y_of(int(drawing_.rows.size()) + 1));
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" + height +
           "\" font-family=\"monospace\" font-size=\"12\">\n<rect width=\"100%\" "
           "height=\"100%\" fill=\"white\"/>\n" +
           body_ + "</svg>\n";
  }

 private:
  static constexpr int row_height = 20, lane_width = 12, letter_width = 8, curve_width = 240;

  static int y_of(int row) { return row_height * (row + 1); }
  int x_of(std::size_t value) const { return lane_width * (lane_[value] + 1); }

  /// The rows from which and up to which a value is drawn; equal if nothing uses it.
  void find_lanes() {
    const std::vector<int> origin = drawing_.origins();
    const std::size_t values = drawing_.bytes.size();
    from_ = origin;
    until_ = origin;
    lane_.assign(values, -1);
    for (std::size_t r = 0; r < drawing_.rows.size(); ++r)
      for (const int v : drawing_.rows[r].operands) until_[std::size_t(v)] = int(r);
    for (const Output& output : drawing_.outputs)
      until_[std::size_t(output.value)] = int(drawing_.rows.size());
    std::vector<int> busy;  // per lane: until which row
    for (std::size_t v = 0; v < values; ++v) {
      if (until_[v] == from_[v]) continue;
      std::size_t lane = 0;
      while (lane < busy.size() && busy[lane] > from_[v]) ++lane;
      if (lane == busy.size()) busy.push_back(0);
      busy[lane] = until_[v];
      lane_[v] = int(lane);
    }
    lanes_ = busy.size();
  }

  void line(int x, int y, int to_x, int to_y, const std::string& more) {
    body_ += "<path d=\"M" + std::to_string(x) + " " + std::to_string(y) + "L" +
             std::to_string(to_x) + " " + std::to_string(to_y) + "\" " + more + "/>\n";
  }
  void bar(int x, int y, int width, const char* colour, const std::string& title) {
    body_ += "<rect x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\" width=\"" +
             std::to_string(width) + "\" height=\"" + std::to_string(row_height - 4) +
             "\" fill=\"" + colour + "\"><title>" + xml_text(title) + "</title></rect>\n";
  }
  void text(int x, int y, const std::string& what, const std::string& more) {
    body_ += "<text x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\" " + more + ">" +
             xml_text(what) + "</text>\n";
  }

  void draw_value(std::size_t v) {
    if (lane_[v] < 0) return;
    const std::string bytes = "%" + std::to_string(v) + ": " + bytes_text(drawing_.bytes[v]);
    const int x = x_of(v), top = y_of(from_[v]) - 4;
    body_ += "<g stroke=\"" + std::string(colour_of(v)) + "\" stroke-width=\"2\"><title>" +
             xml_text(bytes) + "</title>\n";
    line(x, top, x, y_of(until_[v]) - 8, "");
    line(x, top, text_x_ - lane_width / 2, top, "");
    for (std::size_t r = 0; r < drawing_.rows.size(); ++r)
      for (const int used : drawing_.rows[r].operands)
        if (used == int(v))
          line(x, y_of(int(r)) - 8, text_x_ - lane_width / 2, y_of(int(r)) - 8, "");
    body_ += "</g>\n";
  }

  void draw_row(std::size_t r) {
    const DrawnRow& row = drawing_.rows[r];
    const int y = y_of(int(r));
    const std::string fill = row.communicates ? "fill=\"#c04000\" font-weight=\"bold\""
                             : row.is_given   ? "fill=\"#606060\""
                                              : "";
    text(text_x_, y, row.text, fill);
    if (drawing_.in_use.empty()) return;
    const index_t in_use = drawing_.in_use[r], sum = drawing_.inputs + in_use;
    const int given = scaled(drawing_.inputs), all = scaled(sum);
    bar(curve_x_, y - row_height + 6, given, "#c0c0c0", "inputs: " + bytes_text(drawing_.inputs));
    bar(curve_x_ + given, y - row_height + 6, all - given, is_most(r) ? "#c04000" : "#4080c0",
        "values: " + bytes_text(in_use));
    text(curve_x_ + all + 4, y, bytes_text(sum), "fill=\"#606060\"");
  }

  void draw_peak() {
    const int x = curve_x_ + scaled(drawing_.inputs + drawing_.peak);
    line(x, 2, x, y_of(int(drawing_.rows.size())) - 8, "stroke=\"black\" stroke-dasharray=\"4\"");
    text(curve_x_, y_of(int(drawing_.rows.size())),
         "planned: " + bytes_text(drawing_.inputs + drawing_.peak), "");
  }

  bool is_most(std::size_t r) const {
    return drawing_.in_use[r] == *std::max_element(drawing_.in_use.begin(), drawing_.in_use.end());
  }
  int scaled(index_t bytes) const {
    return int(double(bytes) / double(std::max<index_t>(1, drawing_.inputs + drawing_.peak)) *
               curve_width);
  }
  static const char* colour_of(std::size_t v) {
    static constexpr const char* colours[] = {"#4080c0", "#40a060", "#a060c0", "#c08020",
                                              "#40a0a0"};
    return colours[v % std::size(colours)];
  }

  const Drawing& drawing_;
  std::vector<int> from_{}, until_{}, lane_{};  ///< per value; lane -1: it is not drawn
  std::size_t lanes_ = 0;
  int text_x_ = 0, curve_x_ = 0;
  std::string body_{};
};

}  // namespace detail

/// A graph as an SVG picture; the bytes of a value are the title of its line.
template <AnyGraph G>
std::string to_svg(const G& graph) {
  const detail::Drawing drawing = detail::drawing_of(graph);
  return detail::SvgPicture(drawing).take();
}

/// A program as an SVG picture, with the memory that inputs and values of the first rank need
/// during each instruction; what communicates, and the most memory, is red.
/// @param mesh  a dry mesh suffices
/// @collective  none
template <AnyProgram P>
std::string to_svg(const P& program, const MeshState& mesh) {
  const detail::Drawing drawing = detail::drawing_of(program, mesh);
  return detail::SvgPicture(drawing).take();
}
template <AnyProgram P, class Device, class... Axes>
std::string to_svg(const P& program, const DeviceMesh<Device, Axes...>& mesh) {
  return to_svg(program, mesh.state());
}

}  // namespace cleave::inline v0::spmd
