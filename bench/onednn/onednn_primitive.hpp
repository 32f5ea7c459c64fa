// The oneDNN part of the adapter, internal to its sources. Describes primitives in either API, and connects operands
// through conversion passes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "onednn/onednn_adapter.hpp"

namespace lockstep::cpu {

struct OneDnnRuntime {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::primitive_attr attributes;  // the caller provides the scratchpad
};
const OneDnnRuntime& onednn_runtime();

// oneDNN's implementations of one operation: the first, then the next ones. Empty if there is none.
template <typename Primitive>
struct Described {
  std::shared_ptr<const void> operation;  // oneDNN 2.x reads it when asked for the next implementation
  typename Primitive::primitive_desc kernel;
};

// oneDNN 2.x describes the operation before the primitive; 3.x has no such step. `hint` is empty, or the description of
// the forward convolution, which must outlive the result.
template <typename Primitive, typename... Hint>
struct Describe {
  template <typename... Values>
  static Described<Primitive> with(const Hint&... hint, const Values&... values) {
    constexpr bool allow_empty = true;
    const auto& [engine, stream, attributes] = onednn_runtime();
    try {
      if constexpr (requires { typename Primitive::desc; }) {
        const auto operation = std::make_shared<typename Primitive::desc>(values...);
        return {operation, {*operation, attributes, engine, hint..., allow_empty}};
      } else {
        return {nullptr, {engine, values..., hint..., attributes, allow_empty}};
      }
    } catch (const dnnl::error&) {
      return {};
    }
  }
};

// The conversion of an operand between its stored form and the form that the primitive needs.
enum class Conversion : std::uint8_t {
  none,
  element_type,  // f32 <-> bf16 in equal layouts, by Lockstep's own loops: oneDNN 2.6 has no bf16 without AVX-512
  layout,
};

// A tensor of the caller in its stored layout, with either element type.
struct StoredFormat {
  dnnl::memory::desc f32;
  dnnl::memory::desc bf16;
  DType dtype;

  const dnnl::memory::desc& stored() const { return dtype == DType::bf16 ? bf16 : f32; }
  const dnnl::memory::desc& converted() const { return dtype == DType::bf16 ? f32 : bf16; }
};

struct Operand {
  Conversion conversion = Conversion::none;
  DType stored_dtype = DType::f32;
  std::int64_t count = 0;          // elements, including padding
  std::int64_t staging_bytes = 0;  // size of its part of the scratch, if converted
  dnnl::memory stored;
  dnnl::memory wanted;  // equal to `stored` if not converted
  dnnl::reorder reorder;
};

struct OneDnnKernel::Parts {
  dnnl::primitive primitive;
  std::array<Operand, 3> operands;
  dnnl::memory scratchpad;
  std::int64_t scratchpad_bytes = 0;
  std::unordered_map<int, dnnl::memory> arguments;  // built once, so that a run allocates nothing
};

// `arguments` are oneDNN's names (DNNL_ARG_...) of the operands, the output last. Returns null if it cannot be built.
std::unique_ptr<OneDnnKernel> compile_kernel(const dnnl::primitive_desc& description,
                                             const std::array<int, 3>& arguments,
                                             const std::array<StoredFormat, 3>& formats);

}  // namespace lockstep::cpu
