// One place where arithmetic happens: the CPU cores of a rank, or one GPU.
#pragma once

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

// What a parameter is, and so how a device likes to store it.
enum class ParameterKind {
  conv_weight,     // [out, in, kernel, kernel]
  linear_weight,   // [out, in]
  channel_vector,  // [channels]: bias, or scale and shift of a norm
};

struct DeviceOptions {
  std::string name = "auto";  // auto | cpu | cuda
  int threads = 0;            // CPU: threads of this rank; 0: its share of the cores it may use
  std::string instruction_set =
      "auto";                        // CPU: auto (the best here) | amx_bf16 | avx512_bf16 | avx512 | avx2 | baseline
  bool direct_convolutions = false;  // CPU: none by Winograd, whatever the rule says
  int local_rank = 0;                // position among the ranks of this node, and their number
  int local_size = 1;
  // By local rank, the GPUs that each rank of this node sees, as cuda::visible_gpus() gives them. Empty: this rank is
  // alone.
  std::vector<std::vector<std::string>> local_gpus = {};
  DType precision = DType::f32;  // of activations: f32, bf16 or (cuda) f16; weights and sums are fp32 in any case
  bool verbose = false;          // print the kernel chosen for each layer and direction
  bool tf32 = false;             // GPU: fp32 convolutions and products in TF32, of 10 bits
  bool deterministic = false;    // GPU: the same bits in every run: such engines only, and none is timed
  bool graphs = true;            // GPU: record the step once and repeat it
  // Kernel choices are kept there between runs, by whoever lets them be measured. Empty: they are not.
  std::filesystem::path plan_folder = {};
};

class FlatPasses;

class Device {
 public:
  virtual ~Device() = default;

  virtual Ops& ops() = 0;
  virtual FlatPasses& flat() = 0;                   // over a model's flat arrays: see flat/flat_passes.hpp
  virtual std::string description() const = 0;      // "cpu: AMD EPYC, AVX-512, 2 threads"
  virtual std::string plan_conditions() const = 0;  // where kernels, and so bits, are the same
  virtual DType precision() const = 0;              // of activations
  virtual bool uses_tf32() const { return false; }  // for products of fp32 operands
  virtual bool has_direct_convolutions() const { return false; }  // and no others, as chosen
  virtual bool is_deterministic() const { return true; }          // the same bits in every run
  virtual bool has_norm_groups() const { return false; }          // norms can take statistics with other ranks'
  virtual DType image_dtype() const { return DType::f32; }        // of Layout::images

  // Contents undefined, except that padding channels of `features` are zero once an op has written the tensor.
  virtual Tensor make(const Shape& shape, DType dtype, Layout layout) = 0;
  // A parameter or other array that lives as long as the device: plain, one-dimensional, zero.
  virtual Tensor make_lasting(std::int64_t count, DType dtype) = 0;

  // Between a tensor of any layout and row-major fp32 values in the order of the logical shape. Blocking.
  virtual void read(const Tensor& tensor, std::span<float> values) = 0;
  virtual void write(std::span<const float> values, const Tensor& tensor) = 0;

  // Parameters: `dims` and `values` as PyTorch has them, `stored` in the form the ops take. Padding is zero and stays
  // zero.
  virtual std::int64_t stored_count(ParameterKind kind, std::span<const std::int64_t> dims) const = 0;
  virtual void store(ParameterKind kind, std::span<const std::int64_t> dims, std::span<const float> values,
                     const Tensor& stored) = 0;
  virtual void load(ParameterKind kind, std::span<const std::int64_t> dims, const Tensor& stored,
                    std::span<float> values) = 0;

  // Whether the host queues work ahead of the device, and how far a step's results may then lag behind it.
  virtual int steps_ahead() const { return 0; }
  virtual std::unique_ptr<CapturedGraph> make_captured_graph() { return make_uncaptured_graph(); }
  // For `count` fp32 values.
  virtual std::unique_ptr<Readback> make_readback(std::int64_t count) { return make_host_readback(count); }

  virtual void synchronize() = 0;               // waits for everything queued
  virtual std::int64_t peak_bytes() const = 0;  // most memory that tensors have taken so far
};

}  // namespace lockstep
