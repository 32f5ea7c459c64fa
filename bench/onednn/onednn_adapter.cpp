#include "onednn/onednn_adapter.hpp"

#include "base/error.hpp"
#include "device/cpu/layout/cpu_layout.hpp"
#include "onednn/onednn_primitive.hpp"

namespace lockstep::cpu {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

struct Sizes {
  memory::dims x;
  memory::dims weight;
  memory::dims y;
  memory::dims strides;
  memory::dims padding;
};

Sizes sizes_of(const ConvProblem& problem, int lanes) {
  const Conv2d& conv = problem.conv;
  // Whole blocks, not the true channels: the padding is zero, and stays zero under a convolution.
  const std::int64_t in =
      conv.in_channels <= max_image_channels ? conv.in_channels : whole_blocks(conv.in_channels, lanes);
  const std::int64_t out = whole_blocks(conv.out_channels, lanes);
  return {{problem.n, in, problem.h, problem.w},
          {out, in, conv.kernel.height, conv.kernel.width},
          {problem.n, out, conv.rows().out_size(problem.h), conv.columns().out_size(problem.w)},
          {conv.stride.height, conv.stride.width},
          {conv.padding.height, conv.padding.width}};
}

StoredFormat stored_format(const memory::dims& dims, Tag tag, DType dtype) {
  return {memory::desc(dims, memory::data_type::f32, tag), memory::desc(dims, memory::data_type::bf16, tag), dtype};
}

struct ConvFormats {
  StoredFormat x;
  StoredFormat weight;
  StoredFormat y;
};

ConvFormats stored_formats(const ConvProblem& problem, const Sizes& sizes, int lanes) {
  const bool is_wide = lanes == 16;
  const Tag features = is_wide ? Tag::nChw16c : Tag::nChw8c;
  const Tag first_weight = is_wide ? Tag::Ohwi16o : Tag::Ohwi8o;
  const Tag weight = is_wide ? Tag::OIhw16i16o : Tag::OIhw8i8o;
  const bool reads_images = problem.input == Layout::images;
  return {stored_format(sizes.x, reads_images ? Tag::nchw : features, reads_images ? DType::f32 : problem.precision),
          stored_format(sizes.weight, sizes.weight[1] <= max_image_channels ? first_weight : weight, DType::f32),
          stored_format(sizes.y, features, problem.precision)};
}

enum class Layouts : std::uint8_t { stored, free };  // of activations; weights always have free layouts

// A request to oneDNN, which returns one or several implementations.
struct Variant {
  dnnl::algorithm algorithm;
  DType products;
  Layouts layouts;

  std::string name() const {
    return fmt::format("{} {}{}", algorithm == dnnl::algorithm::convolution_winograd ? "winograd" : "direct",
                       products == DType::bf16 ? "bf16" : "f32", layouts == Layouts::free ? " free" : "");
  }
};

struct Description {
  // oneDNN describes a backward pass with a hint of the forward convolution. Forward may use another implementation.
  // oneDNN 2.6 reads the hint whenever it is asked for the next implementation.
  Described<dnnl::convolution_forward> hint;
  std::shared_ptr<const void> operation;
  dnnl::primitive_desc kernel;
};

Description describe(const ConvProblem& problem, const Sizes& sizes, const ConvFormats& formats,
                     const Variant& variant) {
  using dnnl::convolution_forward;
  const auto type = variant.products == DType::bf16 ? memory::data_type::bf16 : memory::data_type::f32;
  const auto activation = [&](const StoredFormat& format, const memory::dims& dims) {
    if (variant.layouts == Layouts::free) return memory::desc(dims, type, Tag::any);
    return variant.products == DType::bf16 ? format.bf16 : format.f32;
  };
  const memory::desc x = activation(formats.x, sizes.x);
  const memory::desc y = activation(formats.y, sizes.y);
  const memory::desc weight(sizes.weight, type, Tag::any);
  const auto forward = [&](dnnl::algorithm algorithm) {
    return Describe<convolution_forward>::with(dnnl::prop_kind::forward_training, algorithm, x, weight, y,
                                               sizes.strides, sizes.padding, sizes.padding);
  };
  const auto described = [](const auto& made, const Described<convolution_forward>& hint) {
    return Description{hint, made.operation, made.kernel};
  };
  if (problem.direction == Direction::forward) return described(forward(variant.algorithm), {});
  const Described<convolution_forward> hint = forward(dnnl::algorithm::convolution_direct);
  if (!hint.kernel) return {};
  if (problem.direction == Direction::backward_data) {
    using Backward = Describe<dnnl::convolution_backward_data, convolution_forward::primitive_desc>;
    return described(
        Backward::with(hint.kernel, variant.algorithm, x, weight, y, sizes.strides, sizes.padding, sizes.padding),
        hint);
  }
  using Backward = Describe<dnnl::convolution_backward_weights, convolution_forward::primitive_desc>;
  const memory::desc gradient(sizes.weight, memory::data_type::f32, Tag::any);
  return described(
      Backward::with(hint.kernel, variant.algorithm, x, gradient, y, sizes.strides, sizes.padding, sizes.padding),
      hint);
}

std::unique_ptr<OneDnnKernel> compile(Direction direction, const dnnl::primitive_desc& description,
                                      const ConvFormats& formats) {
  const auto& [x, weight, y] = formats;
  switch (direction) {
    case Direction::forward:
      return compile_kernel(description, {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST}, {x, weight, y});
    case Direction::backward_data:
      return compile_kernel(description, {DNNL_ARG_DIFF_DST, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_SRC}, {y, weight, x});
    case Direction::backward_weight:
      return compile_kernel(description, {DNNL_ARG_SRC, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_WEIGHTS}, {x, y, weight});
  }
  return nullptr;
}

// With free layouts, oneDNN often chooses the stored layouts of activations. Then the kernel has already been visited.
bool changes_activations(Direction direction, const dnnl::primitive_desc& kernel, const ConvFormats& formats) {
  const auto is_stored = [&](int argument, const StoredFormat& format) {
    const memory::desc wanted = kernel.query_md(dnnl::query::exec_arg_md, argument);
    return wanted == format.f32 || wanted == format.bf16;
  };
  const bool is_forward = direction == Direction::forward;
  const bool writes_x = direction == Direction::backward_data;
  return !is_stored(writes_x ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, formats.x) ||
         !is_stored(is_forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, formats.y);
}

}  // namespace

void visit_convolutions(const ConvProblem& problem, int lanes,
                        const std::function<void(const std::string&, const CompileKernel&)>& visit) {
  const Sizes sizes = sizes_of(problem, lanes);
  const ConvFormats formats = stored_formats(problem, sizes, lanes);
  for (const Layouts layouts : {Layouts::stored, Layouts::free}) {
    for (const auto algorithm : {dnnl::algorithm::convolution_direct, dnnl::algorithm::convolution_winograd}) {
      for (const DType products : {DType::f32, DType::bf16}) {
        if (products == DType::bf16 && problem.precision != DType::bf16) continue;
        const Variant variant{algorithm, products, layouts};
        Description description = describe(problem, sizes, formats, variant);
        for (bool more = static_cast<bool>(description.kernel); more; more = description.kernel.next_impl()) {
          if (layouts == Layouts::free && !changes_activations(problem.direction, description.kernel, formats))
            continue;
          visit(fmt::format("{} {}", variant.name(), description.kernel.impl_info_str()),
                [&] { return compile(problem.direction, description.kernel, formats); });
        }
      }
    }
  }
}

}  // namespace lockstep::cpu
