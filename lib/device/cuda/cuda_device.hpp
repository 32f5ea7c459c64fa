// One GPU as a device: one stream for all work, and its memory, reserved once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/arena.hpp"
#include "device/cuda/cuda_context.hpp"
#include "device/cuda/cuda_ops.hpp"
#include "device/cuda/library_context.hpp"
#include "device/cuda/side_stream.hpp"
#include "device/device.hpp"

namespace lockstep::cuda {

// How a step is repeated.
enum class StepReplay : std::uint8_t { from_graph, from_host };

class CudaDevice final : public Device, public NarrowCopies {
 public:
  // Opens the GPU that choose_gpu() returns for this rank. Throws Error(usage) with the reason if no GPU can be used.
  explicit CudaDevice(const DeviceOptions& options);
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  Ops& ops() override { return *ops_; }
  FlatPasses& flat() override { return *flat_; }
  std::string description() const override { return description_; }
  std::string plan_conditions() const override { return plan_conditions_; }
  DType precision() const override { return context_->precision; }
  bool is_deterministic() const override { return libraries_->determinism == Determinism::deterministic; }
  bool uses_tf32() const override { return libraries_->products == Products::tf32; }
  DType image_dtype() const override { return context_->precision; }

  Tensor make(const Shape& shape, DType dtype, Layout layout) override;
  Tensor make_persistent(std::int64_t count, DType dtype) override;
  void read(const Tensor& tensor, std::span<float> values) override;
  void write(std::span<const float> values, const Tensor& tensor) override;

  std::int64_t stored_count(ParameterKind kind, std::span<const std::int64_t> dims) const override;
  void store(ParameterKind kind, std::span<const std::int64_t> dims, std::span<const float> values,
             const Tensor& stored) override;
  void load(ParameterKind kind, std::span<const std::int64_t> dims, const Tensor& stored,
            std::span<float> values) override;

  // Enough to overlap the host's work on a step with the device's.
  int steps_ahead() const override { return 2; }
  std::unique_ptr<CapturedGraph> make_captured_graph() override;
  std::unique_ptr<Readback> make_readback(std::int64_t count) override;

  void synchronize() override;
  std::int64_t peak_bytes() const override { return arena_->peak_bytes(); }

  std::int64_t free_bytes() const { return arena_->largest_free_bytes(); }
  cudaStream_t stream() const { return stream_.get(); }
  // The same elements of a parameter array in the device's precision. Code that changes the values must update the
  // copy. Null in fp32, and for arrays without a stored parameter.
  std::byte* narrow_copy(const Tensor& values) const override;

 private:
  struct FreeMemory {
    void operator()(std::byte* memory) const noexcept { static_cast<void>(cudaFree(memory)); }
  };
  struct PersistentArray {
    Tensor values;
    Tensor narrow;  // empty until a parameter is stored
  };

  using DeviceMemory = std::unique_ptr<std::byte, FreeMemory>;

  void reserve_memory(int sharers, const DeviceOptions& options);
  std::byte* take_memory(std::size_t bytes);
  void copy_to_device(const void* host, std::int64_t bytes, std::byte* device);
  void copy_to_host(const Tensor& tensor, void* host);
  PersistentArray* array_of(const std::byte* address);

  std::string description_;
  StepReplay replay_;
  std::string plan_conditions_;
  Stream stream_;
  std::vector<DeviceMemory> memory_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<CudaContext> context_;
  std::unique_ptr<LibraryContext> libraries_;
  std::unique_ptr<CudaOps> ops_;
  std::unique_ptr<FlatPasses> flat_;
  std::vector<PersistentArray> lasting_;
};

}  // namespace lockstep::cuda
