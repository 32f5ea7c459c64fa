// A device: the CPU cores of one rank.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/arena.hpp"
#include "device/cpu/cpu_context.hpp"
#include "device/cpu/cpu_ops.hpp"
#include "device/cpu/passes/cpu_flat_passes.hpp"
#include "device/cpu/reserved_memory.hpp"
#include "device/device.hpp"

namespace lockstep::cpu {

class CpuDevice final : public Device {
 public:
  // Throws Error(usage) for options that this processor does not support.
  explicit CpuDevice(const DeviceOptions& options);

  Ops& ops() override { return ops_; }
  FlatPasses& flat() override { return flat_; }
  std::string description() const override;
  std::string plan_conditions() const override;
  bool has_norm_groups() const override { return true; }
  DType precision() const override { return context_.precision; }
  bool has_direct_convolutions() const override { return context_.convolutions == Convolutions::direct; }

  Tensor make(const Shape& shape, DType dtype, Layout layout) override;
  Tensor make_persistent(std::int64_t count, DType dtype) override;
  void read(const Tensor& tensor, std::span<float> values) override;
  void write(std::span<const float> values, const Tensor& tensor) override;

  std::int64_t stored_count(ParameterKind kind, std::span<const std::int64_t> dims) const override;
  void store(ParameterKind kind, std::span<const std::int64_t> dims, std::span<const float> values,
             const Tensor& stored) override;
  void load(ParameterKind kind, std::span<const std::int64_t> dims, const Tensor& stored,
            std::span<float> values) override;

  void synchronize() override {}
  std::int64_t peak_bytes() const override { return arena_.peak_bytes(); }

 private:
  InstructionSet set_;
  ReservedMemory memory_;
  Arena arena_;
  CpuContext context_;
  CpuOps ops_;
  CpuFlatPasses flat_;
  std::vector<Tensor> lasting_;
};

// Throws Error(usage) for options that this processor does not support. Ignores DeviceOptions::name.
std::unique_ptr<Device> open_cpu_device(const DeviceOptions& options);

}  // namespace lockstep::cpu
