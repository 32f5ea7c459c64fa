// Algorithm and terms: direct_geometry.hpp.
#include "device/cpu/conv/direct/direct_geometry.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "device/cpu/layout/cpu_layout.hpp"

namespace lockstep::cpu {

std::vector<Band> make_bands(std::int64_t images, std::int64_t rows, std::int64_t columns, std::int64_t pixels,
                             std::int64_t row_multiple) {
  std::vector<Band> bands;
  const std::int64_t together = pixels / (rows * columns);
  if (together > 0) {
    const std::int64_t count = ceil_div(images, together);
    const std::int64_t each = ceil_div(images, count);
    for (std::int64_t first = 0; first < images; first += each) {
      bands.push_back({first, std::min(each, images - first), 0, rows});
    }
    return bands;
  }
  const std::int64_t count = ceil_div(rows * columns, pixels);
  const std::int64_t each = ceil_div(ceil_div(rows, count), row_multiple) * row_multiple;
  for (std::int64_t image = 0; image < images; ++image) {
    for (std::int64_t first = 0; first < rows; first += each) {
      bands.push_back({image, 1, first, std::min(each, rows - first)});
    }
  }
  return bands;
}

Band images_of(const Band& sets, std::int64_t set_images, std::int64_t images) {
  const std::int64_t first = sets.first_image * set_images;
  return {first, std::min(sets.images * set_images, images - first), sets.first_row, sets.rows};
}

Axis forward_axis(const Conv1d& conv) {
  AxisPhase phase{0, -conv.padding, {}};
  for (std::int64_t k = 0; k < conv.kernel; ++k) phase.taps.push_back({k, k});
  return {1, conv.stride, 1, {phase}};
}

Axis packed_axis(Axis axis) {
  const auto has_one_tap = [](const AxisPhase& phase) { return phase.taps.size() <= 1; };
  if (std::ranges::all_of(axis.phases, has_one_tap)) axis.step = std::exchange(axis.advance, 1);
  return axis;
}

Axis backward_data_axis(const Conv1d& conv) {
  Axis axis{conv.stride, 1, 1, {}};
  for (std::int64_t remainder = 0; remainder < conv.stride; ++remainder) {
    const std::int64_t first = (remainder + conv.stride - conv.padding % conv.stride) % conv.stride;
    AxisPhase phase{first, (first + conv.padding - remainder) / conv.stride, {}};
    for (std::int64_t k = remainder, back = 0; k < conv.kernel; k += conv.stride, ++back) {
      phase.taps.push_back({k, -back});
    }
    axis.phases.push_back(phase);
  }
  return axis;
}

Axes forward_axes(const Conv2d& conv) { return {forward_axis(conv.rows()), forward_axis(conv.columns())}; }

Axes packed_axes(const Axes& axes) { return {packed_axis(axes.rows), packed_axis(axes.columns)}; }

Axes backward_data_axes(const Conv2d& conv) {
  return {backward_data_axis(conv.rows()), backward_data_axis(conv.columns())};
}

Span source_span(const Axis& axis, std::int64_t rows) {
  constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
  std::int64_t first = none;
  std::int64_t last = -none;
  for (const AxisPhase& phase : axis.phases) {
    const std::int64_t count = axis.count(phase, rows);
    for (const Tap& tap : phase.taps) {
      if (count == 0) continue;
      first = std::min(first, phase.source + tap.offset);
      last = std::max(last, phase.source + tap.offset + (count - 1) * axis.advance);
    }
  }
  return first == none ? Span{0, 0} : Span{first, last - first + 1};
}

PlaneWindow window_of(std::int64_t height, std::int64_t width, const Span& rows, const Span& columns,
                      const Steps& step) {
  const auto steps_to = [&](std::int64_t column) {
    return std::clamp<std::int64_t>(ceil_div(std::max<std::int64_t>(column - columns.first, 0), step.column), 0,
                                    columns.count);
  };
  return {height, width, rows.first, columns.first, rows.count, columns.count, step, steps_to(0), steps_to(width)};
}

WeightPlaces::WeightPlaces(const Conv2d& conv, int block_lanes)
    : lanes(block_lanes),
      rows(conv.in_channels <= max_image_channels ? conv.in_channels : block_lanes),
      out_blocks(ceil_div(conv.out_channels, block_lanes)),
      in_blocks(ceil_div(conv.in_channels, rows)),
      window(conv.kernel.area()) {}

}  // namespace lockstep::cpu
