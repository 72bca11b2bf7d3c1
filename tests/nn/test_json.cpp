// Headers of checkpoints: JSON is read as RFC 8259 defines it; everything else is an error.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cleave/core/json_string.hpp>
#include <cleave/nn.hpp>
#include <cleave/nn/json.hpp>
#include <cleave/nn/safetensors.hpp>

#include "errors.hpp"
#include "ranks.hpp"
#include "shared_directory.hpp"

using namespace cleave;
using namespace cleave::testing;
using nn::detail::Json;

namespace {

Json read_json(const std::string& text) { return nn::detail::JsonReader(text, "f").read(); }
std::string error_of_json(const std::string& text) {
  return error_of([&] { read_json(text); });
}
std::string nested(std::size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

constexpr const char* good_entry = R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})";

struct OneTensor {
  Tensor<float, 1> a;
  static constexpr nn::names members{"a"};
};

/// What `load_checkpoint` says of a file with the given header and two floats.
std::string error_of_header(const std::string& directory, const std::string& header) {
  const std::string path = directory + "/file.safetensors";
  const std::uint64_t length = header.size();
  const float elements[] = {3, 4};
  std::ofstream(path, std::ios::binary)
      << std::string(reinterpret_cast<const char*>(&length), 8) << header
      << std::string(reinterpret_cast<const char*>(elements), 8);
  const OneTensor model{Tensor<float, 1>({2}, {0, 0})};
  const std::string error = error_of([&] { nn::load_checkpoint(path, nn::state_dict(model)); });
  const float expected = error.empty() ? 3 : 0;
  CHECK(model.a(0) == expected);
  return error;
}

}  // namespace

TEST_SUITE_BEGIN("threads only");

TEST_CASE("strings of JSON are read with all escape sequences") {
  for (const auto& [text, expected] : std::vector<std::pair<std::string, std::string>>{
           {R"("")", ""},
           {R"("a\"\\\/\b\f\n\r\tz")", "a\"\\/\b\f\n\r\tz"},
           {R"("\u0041\u00e9\u20AC")", "A\xC3\xA9\xE2\x82\xAC"},
           {R"("\uD83D\uDE00")", "\xF0\x9F\x98\x80"},  // U+1F600
           {R"("\ud800\udc00")", "\xF0\x90\x80\x80"},  // U+10000, the first
           {R"("\uDBFF\uDFFF")", "\xF4\x8F\xBF\xBF"},  // U+10FFFF, the last
           {R"("x\uD7FF\uE000")", "x\xED\x9F\xBF\xEE\x80\x80"},
           {"\"\xF0\x9F\x98\x80\"", "\xF0\x9F\x98\x80"}}) {
    const Json value = read_json(text);
    CHECK(value.kind == Json::Kind::string);
    CHECK(value.text == expected);
  }
  CHECK(read_json(R"("\u0000")").text == std::string(1, '\0'));
}

TEST_CASE("what is not a string of JSON is an error") {
  for (const auto& [text, reason] : std::vector<std::pair<std::string, std::string>>{
           {R"("\uD83D")", "half of a surrogate pair is missing"},
           {R"("\uD83Dx")", "half of a surrogate pair is missing"},
           {R"("\uD83D\n")", "half of a surrogate pair is missing"},
           {R"("\uD83D\u0041")", "half of a surrogate pair is missing"},
           {R"("\uD83D\uD83D")", "half of a surrogate pair is missing"},
           {R"("\uDE00")", "half of a surrogate pair is missing"},
           {R"("\uDE00\uD83D")", "half of a surrogate pair is missing"},
           {R"("\uDE00\uDE00")", "half of a surrogate pair is missing"},
           {R"("\u12")", "four hexadecimal digits"},
           {R"("\u+123")", "four hexadecimal digits"},
           {R"("\u 123")", "four hexadecimal digits"},
           {R"("\u00g0")", "four hexadecimal digits"},
           {R"("\u12)", "four hexadecimal digits"},
           {R"("\x41")", "an escape sequence is unknown"},
           {R"("\)", "an escape sequence is unknown"},
           {R"("abc)", "a string does not end"},
           {"\"a\nb\"", "a control character"},
           {std::string("\"a\0b\"", 5), "a control character"}})
    CHECK(contains(error_of_json(text), reason));
}

TEST_CASE("numbers and literals of JSON are read; others are errors") {
  for (const char* const text : {"0", "-0", "7", "-12", "1.5", "-0.25", "1e3", "1E+30", "2.5e-7"}) {
    CHECK(read_json(text).text == text);
    CHECK(read_json(text).kind == Json::Kind::number);
  }
  for (const char* const text : {"true", "false", "null"}) {
    CHECK(read_json(text).text == text);
    CHECK(read_json(text).kind == Json::Kind::literal);
  }
  for (const char* const text :
       {"",          " ",       "01",       "-",          "+1",    ".5",    "1.",       "1.e3",
        "1e",        "1e+",     "--1",      "-a",         "0x10",  "1_000", "nul",      "nulll",
        "True",      "NaN",     "Infinity", "inf",        "1 2",   "[1 2]", "[1,]",     "[,1]",
        "[1",        "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "{1:1}", "{\"a\":1", "[1}",
        "{\"a\":1]", "[]]",     "{}x",      "// a\n1"})
    CHECK_MESSAGE(!error_of_json(text).empty(), "'", text, "' was read");
}

TEST_CASE("only whole numbers that fit are extents and offsets") {
  using Numbers = std::vector<index_t>;
  CHECK(read_json("[0, 3,9223372036854775807 ]").numbers() == Numbers{0, 3, 9223372036854775807});
  CHECK(read_json("[]").numbers() == Numbers{});
  for (const char* const text :
       {"[9223372036854775808]", "[1e99]", "[99999999999999999999999]", "[-1]", "[-0]", "[1.0]",
        "[1e3]", "[\"1\"]", "[true]", "[[1]]", "[1, null]"})
    CHECK_MESSAGE(!read_json(text).numbers().has_value(), text);
}

TEST_CASE("values nested deeply and keys that are twice in an object are errors") {
  CHECK(error_of_json(nested(8)).empty());
  CHECK(contains(error_of_json(nested(9)), "nested in more than 8 levels"));
  CHECK(contains(error_of_json(nested(1000000)), "nested in more than 8 levels"));
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  CHECK(contains(error_of_json(objects), "nested in more than 8 levels"));

  CHECK(contains(error_of_json(R"({"a":1,"b":2,"a":1})"), "'a' is twice in an object"));
  CHECK(contains(error_of_json(R"([{"x":{"b":2,"\u0062":3}}])"), "'b' is twice in an object"));
  const Json same = read_json(R"({"a":{"a":1},"b":{"a":2},"":3})");
  CHECK(same.find("b")->find("a")->text == "2");
  CHECK(same.find("")->text == "3");
}

TEST_CASE("text that is written as a string of JSON is read back") {
  std::string text = "\xF0\x9F\x98\x80\x7F";
  for (int c = 0; c < 128; ++c) text += char(c);
  const std::string written = cleave::detail::json_string(text);
  CHECK(read_json(written).text == text);
  CHECK(cleave::detail::json_string("a\"\\\n") == R"("a\"\\\u000a")");
}

TEST_CASE("the checksum of bytes is that of the checkpoints that exist") {
  const std::string text = "checkpoints";
  CHECK(nn::detail::checksum_of_bytes(text.data(), text.size()) == 415269803554272468u);
  CHECK(nn::detail::checksum_of_bytes(text.data(), 0) == 14695981039346656037u);
}

TEST_CASE("a header with wrong values is an error that names the file") {
  on_ranks({1}, [](World& world) {
    const SharedDirectory directory(world);
    const auto error = [&](const std::string& header) {
      const std::string text = error_of_header(directory.path(), header);
      CHECK((text.empty() || contains(text, directory.path() + "/file.safetensors")));
      return text;
    };
    const std::string good = std::string("{\"a\":") + good_entry;
    CHECK(error(good + "}").empty());
    CHECK(error(good + R"(,"__metadata__":{"b":"\ud83d\ude00"}})").empty());
    const auto with_part = [&](const std::string& part) {
      return error(good + ",\"__metadata__\":{\"part.a\":" + cleave::detail::json_string(part) +
                   "}}");
    };
    const std::string sum = R"("checksum":"55e3bdb9e7220a66"})";
    CHECK(with_part(R"({"dtype":"float32","shape":[2],"begin":[0],)" + sum).empty());
    for (const std::string& part :
         {R"({"dtype":"float32","shape":[2],"begin":[1],)" + sum,
          R"({"dtype":"float32","shape":[2],"begin":[-1],)" + sum,
          R"({"dtype":"float32","shape":[2],"begin":[9223372036854775807],)" + sum,
          R"({"dtype":"float32","shape":[1],"begin":[0],)" + sum,
          R"({"dtype":"float32","shape":[2,1],"begin":[0,0],)" + sum,
          R"({"dtype":"float64","shape":[2],"begin":[0],)" + sum,
          R"({"dtype":"complex128","shape":[],"begin":[],)" + sum,
          R"({"dtype":"float32","shape":"[2]","begin":[0],)" + sum,
          R"({"dtype":"float32","shape":{"":2},"begin":[0],)" + sum,
          R"({"dtype":"float32","shape":[2],"shape":[2],"begin":[0],)" + sum,
          std::string(R"({"dtype":"float32","shape":[2],"begin":[0],"checksum":"-1"})"),
          std::string(R"({"dtype":"float32","shape":[2],"begin":[0],"checksum":""})"),
          std::string(R"({"dtype":"float32","shape":[2],"begin":[0],"checksum":5})"),
          std::string(R"({"dtype":"float32","shape":[2],"begin":[0]})"), std::string("5"),
          std::string("")})
      CHECK(contains(with_part(part), "safetensors file"));
    for (const std::string& header :
         {std::string("[]"),
          std::string("5"),
          std::string(""),
          good,
          good + "}}",
          good + ",\"a\":" + good_entry + "}",
          good + ",\"\\u0061\":" + good_entry + "}",
          good + R"(,"__metadata__":5})",
          good + R"(,"__metadata__":{"note.a":5}})",
          good + R"(,"__metadata__":{"cleave.files":"two"}})",
          good + R"(,"__metadata__":{"cleave.files":"-2"}})",
          good + R"(,"__metadata__":{"cleave.files":"99999999999"}})",
          good + R"(,"__metadata__":{"part.a":5}})",
          good + R"(,"__metadata__":{},"__metadata__":{}})",
          std::string(R"({"a":5})"),
          std::string(R"({"a":{"dtype":5,"shape":[2],"data_offsets":[0,8]}})"),
          std::string(R"({"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})"),
          std::string(R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})"),
          std::string(R"({"a":{"dtype":"F32","shape":[2e0],"data_offsets":[0,8]}})"),
          std::string(R"({"a":{"dtype":"F32","shape":["2"],"data_offsets":[0,8]}})"),
          std::string(R"({"a":{"dtype":"F32","shape":{"b":2},"data_offsets":[0,8]}})"),
          std::string(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8.0]}})"),
          std::string(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}})"),
          std::string(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})"),
          std::string(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}})"),
          std::string(R"({"a":{"dtype":"F32","shape":[-2,-1],"data_offsets":[0,8]}})"),
          std::string(R"({"a":{"dtype":"F32","shape":[18446744073709551618],)"
                      R"("data_offsets":[0,8]}})"),
          std::string(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],)"
                      R"("data_offsets":[0,0]}})")})
      CHECK(contains(error(header), "safetensors file"));
  });
}

TEST_SUITE_END();
