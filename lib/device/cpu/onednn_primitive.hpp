// oneDNN's side of the adapter, for the adapter's own sources: one way to describe a primitive in either API, and
// operands that reach it through converting passes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "device/cpu/onednn_adapter.hpp"

namespace lockstep::cpu {

struct OneDnnRuntime {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};
const OneDnnRuntime& onednn_runtime();

dnnl::primitive_attr scratchpad_by_caller();

// oneDNN 2.x describes the operation before the primitive; 3.x has no such step. `hint` is empty, or the description of
// the forward convolution. The result is empty where nothing implements it.
template <typename Primitive, typename... Hint>
struct Describe {
  template <typename... Values>
  static typename Primitive::primitive_desc with(const Hint&... hint, const Values&... values) {
    constexpr bool allow_empty = true;
    const dnnl::engine& engine = onednn_runtime().engine;
    try {
      if constexpr (requires { typename Primitive::desc; }) {
        return {typename Primitive::desc(values...), scratchpad_by_caller(), engine, hint..., allow_empty};
      } else {
        return {engine, values..., hint..., scratchpad_by_caller(), allow_empty};
      }
    } catch (const dnnl::error&) {
      return {};
    }
  }
};

// How an operand gets from where it is stored to where the primitive wants it, or back.
enum class Conversion : std::uint8_t {
  none,
  element_type,  // f32 <-> bf16 in equal layouts, by our own loops: oneDNN 2.6 has no bf16 without AVX-512
  layout,
};

// A tensor of the caller in the layout it is stored in, with either element type.
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
  std::int64_t count = 0;          // elements, padding included
  std::int64_t staging_bytes = 0;  // place in the scratch, if converted
  dnnl::memory stored;
  dnnl::memory wanted;  // the same as `stored` if not converted
  dnnl::reorder reorder;
};

struct OneDnnKernel::Parts {
  dnnl::primitive primitive;
  std::array<Operand, 3> operands;
  dnnl::memory scratchpad;
  std::int64_t scratchpad_bytes = 0;
  std::unordered_map<int, dnnl::memory> arguments;  // made once: a step builds no containers
};

// `arguments` are oneDNN's names (DNNL_ARG_...) of the operands, the output last. Null if it cannot be built.
std::unique_ptr<OneDnnKernel> compile_kernel(const dnnl::primitive_desc& description,
                                             const std::array<int, 3>& arguments,
                                             const std::array<StoredFormat, 3>& formats);

}  // namespace lockstep::cpu
