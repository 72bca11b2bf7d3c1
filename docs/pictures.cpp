// Draws the pictures of the web site (docs/build_site.py) as SVG files.
//
//     pictures DIRECTORY
//
// What is drawn has been run on four threads: each element is the number of the rank that had it
// first, so that colours show who sent it.
#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <cleave/cleave.hpp>
#include <cleave/spmd.hpp>

using namespace cleave;
using axes::dp;
using axes::tp;

namespace {

constexpr int cell = 22, title_height = 34, gap = 30;
constexpr std::array colours{"#9ecae1", "#fdae6b", "#a1d99b", "#bcbddc"};  // of the ranks

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  if (!file.flush()) throw Error("pictures", "cannot write " + path.string());
}

class Picture {
 public:
  Picture(int width, int height) {
    text_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + std::to_string(width) +
            "\" height=\"" + std::to_string(height) +
            "\" font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  }

  void label(int x, int y, const std::string& what, const char* more = "") {
    std::string escaped;
    for (const char c : what) escaped += c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
    text_ += "<text x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\" " + more + ">" +
             escaped + "</text>\n";
  }
  void rectangle(int x, int y, int width, int height, const std::string& more) {
    text_ += "<rect x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\" width=\"" +
             std::to_string(width) + "\" height=\"" + std::to_string(height) + "\" " + more +
             "/>\n";
  }
  void element(int x, int y, int rank, const std::string& what) {
    rectangle(x, y, cell, cell,
              "stroke=\"white\" fill=\"" + std::string(colours.at(std::size_t(rank))) + "\"");
    label(x + cell / 2, y + 15, what, "text-anchor=\"middle\" font-size=\"11\"");
  }
  void frame(int x, int y, const Box& box) {
    rectangle(x + cell * int(box.begin[1]), y + cell * int(box.begin[0]),
              cell * int(box.end[1] - box.begin[1]), cell * int(box.end[0] - box.begin[0]),
              "fill=\"none\" stroke=\"black\" stroke-width=\"2\"");
  }
  std::string take() const { return text_ + "</svg>\n"; }

 private:
  std::string text_;
};

/// The boxes that every rank of x's mesh owns: f(rank, box).
template <class X, class F>
void each_part(const X& x, const F& f) {
  const Shape mesh = x.mesh().extents();
  for (int r = 0; r < int(mesh.product()); ++r)
    each_owned_box(x.actual_layout(), Shape(x.shape()), mesh, coordinate_of(mesh, r),
                   [&](const Box& box, const Box&) { f(r, box); });
}

/// An array with the ranks that own each element, as text in its cell.
template <class X>
void draw_owners(Picture& picture, int x, int y, const std::string& title, const X& array) {
  picture.label(x, y - 10, title, "font-weight=\"bold\"");
  std::vector<std::string> owners(std::size_t(array.size()));
  std::vector<int> first(owners.size(), 0);
  const auto at = [&](index_t i, index_t j) { return std::size_t(i * array.extent(1) + j); };
  each_part(array, [&](int rank, const Box& box) {
    for (index_t i = box.begin[0]; i < box.end[0]; ++i)
      for (index_t j = box.begin[1]; j < box.end[1]; ++j) {
        std::string& names = owners[at(i, j)];
        if (names.empty()) first[at(i, j)] = rank;
        names += (names.empty() ? "" : ",") + std::to_string(rank);
      }
  });
  for (index_t i = 0; i < array.extent(0); ++i)
    for (index_t j = 0; j < array.extent(1); ++j)
      picture.element(x + cell * int(j), y + cell * int(i), first[at(i, j)], owners[at(i, j)]);
  each_part(array, [&](int, const Box& box) { picture.frame(x, y, box); });
}

/// An array whose elements are numbers of ranks, with the parts of its layout.
template <class X>
void draw_values(Picture& picture, int x, int y, const std::string& title, const X& array) {
  picture.label(x, y - 10, title, "font-weight=\"bold\"");
  const auto values = array.full_tensor();
  for (index_t i = 0; i < array.extent(0); ++i)
    for (index_t j = 0; j < array.extent(1); ++j)
      picture.element(x + cell * int(j), y + cell * int(i), int(values(i, j)),
                      std::to_string(values(i, j)));
  each_part(array, [&](int, const Box& box) { picture.frame(x, y, box); });
}

using Mesh = DeviceMesh<Host, dp, tp>;

Picture placements(const Mesh& mesh) {
  constexpr int width = 8 * cell + gap;
  Picture picture(4 * width + gap, title_height + 6 * cell + gap);
  int x = gap;
  const auto add = [&](const std::string& title, auto... p) {
    draw_owners(picture, x, title_height, title, empty<float>({6, 8}, mesh, p...));
    x += width;
  };
  add("Shard<0>, Shard<1>", Shard<0>{}, Shard<1>{});
  add("Shard<0>, Replicate", Shard<0>{}, Replicate{});
  add("Shard<0>, Shard<0>", Shard<0>{}, Shard<0>{});
  add("BlockCyclic<0, 1>, ..<1, 2>", BlockCyclic<0, 1>{}, BlockCyclic<1, 2>{});
  return picture;
}

Picture exchange(World& world, const Mesh& mesh) {
  Picture picture(2 * (9 * cell + 2 * gap) + 2 * gap, title_height + 7 * cell + gap);
  const auto x = empty<int>({7, 9}, mesh, Shard<0>{}, Shard<0>{});
  x.to_local().fill_(world.rank());
  const CommTrace trace(world);
  const auto y = x.redistribute(Shard<1>{}, Shard<1>{});
  const std::string bytes = std::to_string(trace.received_bytes());
  draw_values(picture, gap, title_height, "x: Shard<0>, Shard<0>", x);
  draw_values(picture, 9 * cell + 3 * gap, title_height, "y: Shard<1>, Shard<1>", y);
  picture.label(gap, title_height + 7 * cell + 20,
                "Rank 0 receives " + bytes + " bytes; numbers and colours: who sent an element");
  return picture;
}

/// What each rank holds for a stencil: its part, and ghosts in the colours of those that sent them.
Picture halo(World& world, const Mesh& mesh) {
  constexpr int part = 4, all = part + 2, width = 2 * (all * cell + gap / 2) + gap;
  Picture picture(2 * width + gap, title_height + 2 * all * cell + 2 * gap);
  const auto u = empty<int>({2 * part, 2 * part}, mesh, Shard<0>{}, Shard<1>{}, margin(1));
  u.to_local().fill_(world.rank());
  const auto draw = [&](int left, const std::string& title, const Reach& reach, bool has_corners) {
    const CommTrace trace(world);
    const auto h = exchange_halo(u, reach, edges(periodic));
    const auto received = trace.received_bytes();
    const auto held = *functional::all_gather(h.elements().clone(), 0, world);
    picture.label(left, title_height - 10,
                  title + ": a rank receives " + std::to_string(received) + " bytes",
                  "font-weight=\"bold\"");
    for (int r = 0; r < 4; ++r) {
      const int x = left + r % 2 * (all * cell + gap / 2);
      const int y = title_height + r / 2 * (all * cell + gap / 2);
      for (int i = 0; i < all; ++i)
        for (int j = 0; j < all; ++j) {
          const bool is_corner = (i == 0 || i > part) && (j == 0 || j > part);
          const int rank = held(r * all + i, j);
          if (!is_corner || has_corners)
            picture.element(x + cell * j, y + cell * i, rank, std::to_string(rank));
        }
      picture.rectangle(x + cell, y + cell, part * cell, part * cell,
                        "fill=\"none\" stroke=\"black\" stroke-width=\"2\"");
    }
  };
  draw(gap, "star(1, 1)", star(1, 1), false);
  draw(gap + width, "box(1, 1)", box(1, 1), true);
  return picture;
}

struct Layers {
  constexpr auto operator()(const auto& x, const auto& w1, const auto& w2) const {
    return matmul(relu(matmul(x, w1)), w2);
  }
};

std::string program(const Mesh& mesh) {
  const auto graph =
      spmd::trace(Layers{}, spmd::arg<float>("x", {64, 32}), spmd::arg<float>("w1", {32, 128}),
                  spmd::arg<float>("w2", {128, 16}));
  const std::array schemas{spmd::schema(Shard<0>{}, Replicate{}),
                           spmd::schema(Replicate{}, Shard<1>{}),
                           spmd::schema(Replicate{}, Shard<0>{})};
  return spmd::to_svg(spmd::expand(graph, schemas), mesh);
}

}  // namespace

int main(int argc, char** argv) {
  const std::filesystem::path folder = argc > 1 ? argv[1] : ".";
  const char* words[] = {argv[0], "--ranks", "4", nullptr};
  return run(3, const_cast<char**>(words), [&](World& world) {
    const auto mesh = init_device_mesh<dp, tp>(world, {2, 2});
    const Picture drawn[] = {placements(mesh), exchange(world, mesh), halo(world, mesh)};
    if (world.rank() != 0) return;
    write(folder / "placements.svg", drawn[0].take());
    write(folder / "exchange.svg", drawn[1].take());
    write(folder / "halo.svg", drawn[2].take());
    write(folder / "program.svg", program(mesh));
  });
}
