// Windows, convolutions and pooling.
#pragma once

#include <cleave/ops/convolutions/conv.hpp>
#include <cleave/ops/convolutions/conv_transpose.hpp>
#include <cleave/ops/convolutions/pool.hpp>

#include "listed.hpp"

namespace cleave::ops {

using ConvolutionParts = PartsOf<Conv<1, false>, Convolve<1, false>>;
using TransposedParts = PartsOf<ConvTranspose<1, false>, ConvolveTransposed<1, false>>;
using PoolingParts =
    PartsOf<MaxPool<1>, LargestOfWindows<1u>, FirstOfWindows<1u>, WithoutPadding<1>>;

namespace listing {

inline constexpr Convolution<1> of_rows{.stride = {2}, .padding = {2}, .dilation = {1}};
inline constexpr Convolution<2> of_images{.stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}};

inline constexpr TransposedConvolution<1> to_rows{
    .stride = {3}, .padding = {1}, .output_padding = {2}};
inline constexpr TransposedConvolution<2> to_images{
    .stride = {1, 2}, .padding = {1, 0}, .dilation = {2, 1}};
inline constexpr TransposedConvolution<3> to_volumes{.stride = {1, 2, 1}, .padding = {0, 1, 0}};
inline constexpr Convolution<3> of_volumes{.stride = {1, 2, 1}, .padding = {1, 0, 1}};

template <class Visit>
constexpr void each_of_windows(const Visit& visit) {
  visit(listed<Windows<1>, SameTypes<1, double, float, Complex, Int>, DimsOf<2>>(
      CLEAVE_CALL_1(x, windows(x, dim<1>{}, {.size = 2, .stride = 2}))));
  visit(listed<OverlapAdd<1>, SameTypes<1, double, float, Complex, Int>, DimsOf<3>>(
      CLEAVE_CALL_1(x, overlap_add(x, dim<1>{}, 20, {.stride = 2, .dilation = 3}))));
}

inline constexpr Pooling<2> of_pool{.size = {3, 2}, .stride = {1, 0}, .padding = {1, 1}};
inline constexpr Pooling<1> of_pairs{.size = {2}};
inline constexpr Pooling<1> of_rows_apart{
    .size = {3}, .stride = {1}, .padding = {1}, .dilation = {2}, .count_include_pad = false};
inline constexpr Pooling<3> of_cells{.size = {1, 2, 2}, .stride = {1, 1, 1}, .padding = {0, 1, 0}};

template <class Visit>
constexpr void each_of_pooling(const Visit& visit) {
  visit(listed<MaxPool<2>, SameTypes<1, double, float, Int>, DimsOf<3>>(
      "max_pool2d(x, how)", [](const auto& x) { return max_pool2d(x, of_pool); }, "",
      MaxPool<2>{{}, of_pool}));
  visit(listed<MaxPool<1>, SameTypes<1, double>, DimsOf<2>>(
      CLEAVE_CALL_1(x, max_pool1d(x, {.size = {2}})), "", MaxPool<1>{{}, of_pairs}));
  visit(listed<MaxPool<3>, SameTypes<1, double>, DimsOf<4>>(
      "max_pool3d(x, how)", [](const auto& x) { return max_pool3d(x, of_cells); }, "",
      MaxPool<3>{{}, of_cells}));
  visit(listed<AvgPool<2>, SameTypes<1, double, float, Complex>, DimsOf<3>>(
      "avg_pool2d(x, how)", [](const auto& x) { return avg_pool2d(x, of_pool); }, "",
      AvgPool<2>{{}, of_pool}));
  visit(listed<AvgPool<1>, SameTypes<1, double>, DimsOf<2>>(
      "avg_pool1d(x, {.size = {3}, .dilation = {2}, .count_include_pad = false, ..})",
      [](const auto& x) { return avg_pool1d(x, of_rows_apart); }, "",
      AvgPool<1>{{}, of_rows_apart}));
  visit(listed<AvgPool<3>, SameTypes<1, double>, DimsOf<4>>(
      "avg_pool3d(x, how)", [](const auto& x) { return avg_pool3d(x, of_cells); }, "",
      AvgPool<3>{{}, of_cells}));
}

template <class Visit>
constexpr void each_convolution(const Visit& visit) {
  each_of_windows(visit);
  each_of_pooling(visit);
  visit(listed<Conv<1, false>, SameTypes<3, float, Complex>, DimsOf<3, 3, 1>>(
      "conv1d(x, weight, bias, {.stride = {2}, .padding = {2}})",
      [](const auto& x, const auto& weight, const auto& bias) {
        return conv1d(x, weight, bias, of_rows);
      },
      "", Conv<1, false>{{}, of_rows}));
  visit(listed<Conv<2, false>, SameTypes<3, double, float>, DimsOf<4, 4, 1>>(
      "conv2d(x, weight, bias, how)",
      [](const auto& x, const auto& weight, const auto& bias) {
        return conv2d(x, weight, bias, of_images);
      },
      "", Conv<2, false>{{}, of_images}));
  visit(listed<Conv<3, false>, SameTypes<2, double>, DimsOf<5, 5>>(
      "conv3d(x, weight, {.stride = {1, 2, 1}, .padding = {1, 0, 1}})",
      [](const auto& x, const auto& weight) { return conv3d(x, weight, of_volumes); }, "",
      Conv<3, false>{{}, of_volumes}));
  visit(listed<Conv<2, true>, SameTypes<2, double>, DimsOf<4, 4>>(
      "conv2d(x, weight, ChannelGroups{12}, how)",
      [](const auto& x, const auto& weight) {
        return conv2d(x, weight, ChannelGroups{12}, of_images);
      },
      "", Conv<2, true>{{}, of_images, 12}));
  visit(listed<ConvTranspose<1, false>, SameTypes<3, double, Complex>, DimsOf<3, 3, 1>>(
      "conv_transpose1d(x, weight, bias, how)",
      [](const auto& x, const auto& weight, const auto& bias) {
        return conv_transpose1d(x, weight, bias, to_rows);
      },
      "", ConvTranspose<1, false>{{}, to_rows}));
  visit(listed<ConvTranspose<2, true>, SameTypes<2, double>, DimsOf<4, 4>>(
      "conv_transpose2d(x, weight, ChannelGroups{2}, how)",
      [](const auto& x, const auto& weight) {
        return conv_transpose2d(x, weight, ChannelGroups{2}, to_images);
      },
      "", ConvTranspose<2, true>{{}, to_images, 2}));
  visit(listed<ConvTranspose<3, false>, SameTypes<2, double>, DimsOf<5, 5>>(
      "conv_transpose3d(x, weight, how)",
      [](const auto& x, const auto& weight) { return conv_transpose3d(x, weight, to_volumes); }, "",
      ConvTranspose<3, false>{{}, to_volumes}));
}

}  // namespace listing

}  // namespace cleave::ops
