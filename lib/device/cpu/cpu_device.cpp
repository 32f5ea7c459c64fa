#include "device/cpu/cpu_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "base/error.hpp"
#include "base/log.hpp"
#include "device/cpu/instruction_sets/loops.hpp"
#include "device/cpu/layout/cpu_layout.hpp"
#include "device/cpu/threads/parallel.hpp"
#include "device/cpu/threads/threads.hpp"
#include "device/elements.hpp"

namespace lockstep::cpu {
namespace {

// As the kernel reports it: "AMD EPYC 9B14 96-Core Processor".
std::string processor_name() {
  // careful-open: below /proc
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

// The default rule is not mentioned.
const char* words_for(Convolutions convolutions) {
  return convolutions == Convolutions::direct ? ", direct convolutions" : "";
}

// Processors convert fp16, but few compute in it.
const DeviceOptions& checked(const DeviceOptions& options) {
  require(options.precision != DType::f16, Failure::usage,
          "the CPU does not support fp16 (--precision fp16). Use --precision bf16, or a GPU.");
  return options;
}

// fp32 does not use bf16 products: neither its bits nor its device name depend on them.
InstructionSet set_for(const DeviceOptions& options) {
  const InstructionSet set = choose_instruction_set(options.instruction_set);
  if (options.local_rank == 0) {
    const std::string warning = choice_warning(options.instruction_set, options.precision);
    if (!warning.empty()) log::warning(std::string_view(warning));
    if (options.tf32) log::warning("--tf32 applies to GPUs only. The CPU multiplies fp32 in fp32.");
  }
  return options.precision == DType::f32 ? facts_of(set).in_fp32 : set;
}

}  // namespace

CpuDevice::CpuDevice(const DeviceOptions& options)
    : set_(set_for(options)),
      memory_(physical_bytes() / checked(options).local_size),
      arena_(memory_.data(), memory_.bytes()),
      context_{.threads = choose_threads(options.threads, options.local_rank, options.local_size),
               .lanes = lanes_of(set_),
               .arena = arena_,
               .precision = options.precision,
               .verbosity = options.verbose ? Verbosity::verbose : Verbosity::quiet,
               .convolutions = options.direct_convolutions ? Convolutions::direct : Convolutions::by_rule},
      ops_(context_, set_),
      flat_(context_, loops_of(set_).vectors.f32) {
  set_loop_threads(context_.threads);  // for loops without a context
}

std::string CpuDevice::description() const {
  return fmt::format("cpu: {}, {}{}, {} {}", processor_name(), name_of(set_), words_for(context_.convolutions),
                     context_.threads, context_.threads == 1 ? "thread" : "threads");
}

std::string CpuDevice::plan_conditions() const {
  return fmt::format("cpu: {}, {}{}", name_of(set_), lockstep::name_of(context_.precision),
                     words_for(context_.convolutions));
}

Tensor CpuDevice::make(const Shape& shape, DType dtype, Layout layout) {
  const std::int64_t bytes = storage_count(shape, layout, context_.lanes) * size_of(dtype);
  return {arena_.allocate(bytes), shape, dtype, layout};
}

Tensor CpuDevice::make_persistent(std::int64_t count, DType dtype) {
  Tensor tensor = make(Shape{count}, dtype, Layout::plain);
  // On all threads: most of the time is spent on pages that the system clears when they are first touched.
  parallel_parts(context_.threads, tensor.bytes(), [&](std::int64_t first, std::int64_t last) {
    std::memset(tensor.data() + first, 0, static_cast<std::size_t>(last - first));
  });
  lasting_.push_back(tensor);
  return tensor;
}

void CpuDevice::read(const Tensor& tensor, std::span<float> values) { unpack_tensor(tensor, values, context_.lanes); }

void CpuDevice::write(std::span<const float> values, const Tensor& tensor) {
  pack_tensor(values, tensor, context_.lanes);
}

std::int64_t CpuDevice::stored_count(ParameterKind kind, std::span<const std::int64_t> dims) const {
  return storage_count(kind, dims, context_.lanes);
}

void CpuDevice::store(ParameterKind kind, std::span<const std::int64_t> dims, std::span<const float> values,
                      const Tensor& stored) {
  pack_parameter(kind, dims, values, elements(stored), context_.lanes);
}

void CpuDevice::load(ParameterKind kind, std::span<const std::int64_t> dims, const Tensor& stored,
                     std::span<float> values) {
  unpack_parameter(kind, dims, elements(stored), values, context_.lanes);
}

std::unique_ptr<Device> open_cpu_device(const DeviceOptions& options) { return std::make_unique<CpuDevice>(options); }

}  // namespace lockstep::cpu
