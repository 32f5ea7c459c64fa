// ONNX operators that pool maps or change their shapes.
#include <fmt/format.h>

#include <algorithm>

#include "network/onnx/onnx_converter.hpp"

namespace lockstep {
namespace {

constexpr std::int64_t most_channels = 1 << 24;

}  // namespace

void OnnxConverter::concat() {
  std::vector<std::size_t> inputs;
  for (int i = 0; i < node_->input_count(); ++i) inputs.push_back(node_at(i));
  if (inputs.size() > op::Concat::most_inputs) {
    node_->refuse(fmt::format("it has more than {} inputs", op::Concat::most_inputs));
  }
  const std::int64_t axis = node_->integer("axis", 0);
  if (axis != 1 && axis != -3) node_->refuse(fmt::format("axis is {}. Only 1 is possible: channels", axis));
  give_node(op::Concat{}, inputs);
}

// Of MaxPool and AveragePool.
Pool2d OnnxConverter::pool_window() const {
  const OnnxNode::Window window = node_->window();
  const Size2d shape = node_->size("kernel_shape", 0);
  if (!shape.is_square() || !window.stride.is_square() || !window.padding.is_square()) {
    node_->refuse("pooling is possible only with the same kernel_shape, strides and pads for rows and columns");
  }
  const std::int64_t kernel = shape.height;
  const std::int64_t padding = window.padding.height;
  if (padding >= kernel || kernel > Pool2d::largest_kernel) {
    node_->refuse(
        fmt::format("a window of {} with pads of {} is not possible. Windows have up to {} x {} pixels, and "
                    "pads are smaller",
                    kernel, padding, Pool2d::largest_kernel, Pool2d::largest_kernel));
  }
  return {.kernel = kernel, .stride = window.stride.height, .padding = padding, .ceil = flag("ceil_mode")};
}

void OnnxConverter::max_pool() {
  node_->require_integer("storage_order", 0, 0);
  give_node(op::MaxPool{pool_window()}, {node_at(0)});
}

void OnnxConverter::global_average_pool() { pool_mean(true); }

// PyTorch's older exporter writes padding that counts as Pad.
void OnnxConverter::average_pool() {
  if (const auto* const padded = std::get_if<PaddedValue>(&input(0))) {
    Pool2d pool = pool_window();
    if (pool.padding != 0 || padded->padding >= pool.kernel) node_->refuse("its map is padded too much");
    const ValueShape& shape = shape_of(padded->node);
    const auto windows_after_pad = [&](std::int64_t size) {
      const std::int64_t padded_size = size + 2 * padded->padding;
      return padded_size < pool.least_size() ? 0 : pool.out_size(padded_size);
    };
    const std::int64_t rows = windows_after_pad(shape.height);
    const std::int64_t columns = windows_after_pad(shape.width);
    pool.padding = padded->padding;
    if (rows != pool.out_size(shape.height) || columns != pool.out_size(shape.width)) {
      node_->refuse("it has windows in the zeros of a Pad alone. Use the padding of nn.AvgPool2d instead");
    }
    give_node(op::AveragePool{pool, true}, {padded->node});
    return;
  }
  const std::size_t x = node_at(0);
  const Integers whole = {shape_of(x).height, shape_of(x).width};
  if (node_->integers("kernel_shape", {}) == whole && node_->window().padding == 0) return pool_mean(true);
  give_node(op::AveragePool{pool_window(), flag("count_include_pad")}, {x});
}

void OnnxConverter::reduce_mean() {
  const Integers axes = node_->has_input(1) ? file_.integers(constant_at(1)) : node_->integers("axes", {});
  const bool is_over_space =
      axes == Integers{2, 3} || axes == Integers{-2, -1} || axes == Integers{-1, -2} || axes == Integers{3, 2};
  if (!is_over_space) {
    node_->refuse(fmt::format("axes are {}. Only the mean over rows and columns is possible", short_text(axes)));
  }
  pool_mean(node_->integer("keepdims", 1) != 0);
}

void OnnxConverter::pool_mean(bool keeps_dims) {
  const std::size_t x = node_at(0);
  if (keeps_dims) return give(MeanValue{x});
  give_node(op::GlobalMeanPool{}, {x});
}

void OnnxConverter::flatten() {
  node_->require_integer("axis", 1, 1);
  give_flat();
}

void OnnxConverter::reshape() {
  const Integers shape = file_.integers(constant_at(1));
  // With images of another size than the file's, there are other features, which a Gemm then names.
  const bool keeps_zeros = node_->integer("allowzero", 0) != 0 && std::ranges::count(shape, 0) > 0;
  const bool is_possible = std::ranges::all_of(shape, [](std::int64_t dim) { return dim >= -1; }) &&
                           std::ranges::count(shape, -1) <= 1 && !keeps_zeros;
  if (is_possible && shape.size() == 4 && shape[2] == 1 && shape[3] == 1) {
    const std::size_t x = node_at(0);
    if (shape[1] == -1 || shape[1] == shape_of(x).channels) return give_node(op::Unflatten{}, {x});
  }
  if (!is_possible || shape.size() != 2 || shape[1] == 0) {
    node_->refuse(fmt::format("the shape {} is not possible. Use torch.flatten(x, 1)", short_text(shape)));
  }
  give_flat();
}

void OnnxConverter::give_flat() {
  if (const auto* const mean = std::get_if<MeanValue>(&input(0))) return give_node(op::GlobalMeanPool{}, {mean->node});
  const std::size_t x = node_at(0);
  if (shape_of(x).is_row()) return give(NodeValue{x});
  give_node(op::Flatten{}, {x});
}

void OnnxConverter::slice() {
  const std::size_t x = node_at(0);
  const Integers starts = file_.integers(constant_at(1));
  const Integers ends = file_.integers(constant_at(2));
  const Integers axes = node_->has_input(3) ? file_.integers(constant_at(3)) : Integers{};
  const Integers steps = node_->has_input(4) ? file_.integers(constant_at(4)) : Integers{};
  const ValueShape& shape = shape_of(x);
  const bool is_whole = ends.size() == 2 && ends[0] >= shape.height && ends[1] >= shape.width;
  const bool is_known = starts == Integers{0, 0} && is_whole && axes == Integers{2, 3} && steps.size() == 2 &&
                        steps[0] == steps[1] && steps[0] >= 1 && steps[0] <= OnnxNode::largest_number &&
                        !shape.is_row();
  if (!is_known) node_->refuse("only every n-th row and column of a whole map is possible");
  give(SlicedValue{x, steps[0]});
}

void OnnxConverter::pad() {
  const onnx::AttributeProto* const mode = node_->attribute("mode");
  const bool is_constant = mode == nullptr || mode->s() == "constant";
  if (!is_constant || bound_at(2, 0) != 0) node_->refuse("only padding by zeros is possible");
  if (node_->has_input(3)) node_->refuse("only pads of all axes are possible");
  const Integers pads = file_.integers(constant_at(1));
  if (pads == Integers(8, 0)) return give(input(0));
  if (pads.size() == 8 && pads == Integers{0, 0, pads[2], pads[2], 0, 0, pads[2], pads[2]} && pads[2] > 0) {
    give(PaddedValue{node_at(0), pads[2]});
    return;
  }
  const bool is_behind_channels = pads.size() == 8 && pads[5] >= 0 && pads[5] <= most_channels &&
                                  std::ranges::count(pads, 0) == (pads[5] == 0 ? 8 : 7);
  if (!is_behind_channels) {
    node_->refuse("only zeros around a map, or channels of zeros behind the last one, are possible");
  }
  const auto* const sliced = std::get_if<SlicedValue>(&input(0));
  const std::int64_t stride = sliced == nullptr ? 1 : sliced->stride;
  const std::size_t x = sliced == nullptr ? node_at(0) : sliced->node;
  give_node(op::Subsample{stride, shape_of(x).channels + pads[5]}, {x});
}

}  // namespace lockstep
