// A device: the CPU cores of a rank, or one GPU.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/captured_graph.hpp"
#include "device/ops.hpp"
#include "device/readback.hpp"
#include "device/tensor.hpp"

namespace lockstep {

// The kind of a parameter, which determines how a device stores it.
enum class ParameterKind {
  conv_weight,     // [out, in, kernel rows, kernel columns]
  linear_weight,   // [out, in]
  channel_vector,  // [channels]: bias, or scale and shift of a norm
};

struct DeviceOptions {
  std::string name = "auto";  // auto | cpu | cuda
  int threads = 0;            // CPU: threads of this rank; 0: its share of the available cores
  std::string instruction_set =
      "auto";                        // CPU: auto (the best here) | amx_bf16 | avx512_bf16 | avx512 | avx2 | baseline
  bool direct_convolutions = false;  // CPU: disables Winograd
  int local_rank = 0;                // index among the ranks of this node; their number
  int local_size = 1;
  // GPUs that each rank of this node sees, by local rank, as returned by cuda::visible_gpus(). Empty: a single rank.
  std::vector<std::vector<std::string>> local_gpus = {};
  std::int64_t gpu_memory_mib = 0;  // GPU: memory for this rank's tensors; 0: all that is free, or a share
  bool separate_blocks = false;     // GPU: an allocation for each tensor, whose end tools for memory errors see
  DType precision = DType::f32;     // of activations: f32, bf16 or (cuda) f16; weights and sums are always fp32
  bool verbose = false;             // print the kernel chosen for each layer and direction
  bool tf32 = false;                // GPU: fp32 convolutions and products in TF32 (10-bit mantissa)
  bool deterministic = false;       // GPU: same bits in every run; only deterministic engines, none is timed
  bool fixed_order = false;         // GPU: NCCL adds in one order; not needed for sums of whole numbers
  bool graphs = true;               // GPU: capture the step in a graph and replay it
  // Directory of kernel choices between runs, used by the code that runs the measurements. Empty: none.
  std::filesystem::path plan_folder = {};
};

class FlatPasses;

class Device {
 public:
  virtual ~Device() = default;

  virtual Ops& ops() = 0;
  virtual FlatPasses& flat() = 0;                   // passes over a model's flat arrays, see flat/flat_passes.hpp
  virtual std::string description() const = 0;      // "cpu: AMD EPYC, AVX-512, 2 threads"
  virtual std::string plan_conditions() const = 0;  // equal conditions give equal kernels, and so equal bits
  virtual DType precision() const = 0;              // of activations
  virtual bool uses_tf32() const { return false; }  // for products of fp32 operands
  virtual bool has_direct_convolutions() const { return false; }  // uses no others, as selected by the user
  virtual bool is_deterministic() const { return true; }          // same bits in every run
  virtual bool has_norm_groups() const { return false; }          // norms can share statistics with other ranks
  virtual DType image_dtype() const { return DType::f32; }        // of Layout::images

  // Contents are undefined, but padding channels of `features` are zero once an op has written the tensor.
  virtual Tensor make(const Shape& shape, DType dtype, Layout layout) = 0;
  // A plain, one-dimensional, zeroed array that lives as long as the device, such as a parameter.
  virtual Tensor make_persistent(std::int64_t count, DType dtype) = 0;

  // Copies between a tensor of any layout and row-major fp32 values in the order of the logical shape. Blocking.
  virtual void read(const Tensor& tensor, std::span<float> values) = 0;
  virtual void write(std::span<const float> values, const Tensor& tensor) = 0;

  // Parameters. `dims` and `values` are in PyTorch's order, `stored` is in the form that ops take. Padding is zero and
  // stays zero.
  virtual std::int64_t stored_count(ParameterKind kind, std::span<const std::int64_t> dims) const = 0;
  virtual void store(ParameterKind kind, std::span<const std::int64_t> dims, std::span<const float> values,
                     const Tensor& stored) = 0;
  virtual void load(ParameterKind kind, std::span<const std::int64_t> dims, const Tensor& stored,
                    std::span<float> values) = 0;

  // The number of steps that the host may queue ahead of the device; 0: it waits for each step.
  virtual int steps_ahead() const { return 0; }
  virtual std::unique_ptr<CapturedGraph> make_captured_graph() { return make_uncaptured_graph(); }
  // For `count` fp32 values.
  virtual std::unique_ptr<Readback> make_readback(std::int64_t count) { return make_host_readback(count); }

  virtual void synchronize() = 0;               // waits for all queued work
  virtual std::int64_t peak_bytes() const = 0;  // maximum memory taken by tensors so far
};

}  // namespace lockstep
