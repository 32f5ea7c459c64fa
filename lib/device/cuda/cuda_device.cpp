#include "device/cuda/cuda_device.hpp"

#include <algorithm>
#include <cassert>

#include "device/cuda/check_cuda.hpp"
#include "device/cuda/cuda_graph.hpp"
#include "device/cuda/gpu_choice.hpp"
#include "device/cuda/launch/find_kernel.hpp"
#include "device/cuda/layout/cuda_layout.hpp"
#include "device/cuda/memory_share.hpp"
#include "device/cuda/passes/cuda_flat_passes.hpp"
#include "device/cuda/pinned_readback.hpp"
#include "device/cuda/plan_conditions.hpp"
#include "device/cuda/visible_gpus.hpp"

namespace lockstep::cuda {
namespace {

void require_usable(cudaError_t code) {
  if (code == cudaSuccess) return;
  const Failure failure = failure_of(code) == Failure::bad_node ? Failure::bad_node : Failure::usage;
  throw Error(failure, unusable_here(code).sentence());
}

// Opens the GPU for this thread.
void take_gpu(int index) {
  require_usable(cudaSetDevice(index));
  require_usable(cudaFree(nullptr));  // creates the context now, not in the first measured call
  require_usable(find_kernel());
}

std::string describe_gpu(int index) {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, index), "describe a GPU");
  int driver = 0;
  check_cuda(cudaDriverGetVersion(&driver), "tell the driver's version");
  return fmt::format("cuda: {}, {:.0f} GiB, compute capability {}.{}, {} multiprocessors, driver for CUDA {}.{}, at {}",
                     properties.name, static_cast<double>(properties.totalGlobalMem) / (1 << 30), properties.major,
                     properties.minor, properties.multiProcessorCount, driver / 1000, driver % 1000 / 10,
                     address_of_gpu(index));
}

// Describes the kind of the GPU; its index and host do not matter.
std::string describe_plan(int index, const DeviceOptions& options) {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, index), "describe a GPU");
  return plan_conditions_of({properties.name, properties.major, properties.minor, cudnnGetVersion()}, options);
}

}  // namespace

CudaDevice::CudaDevice(const DeviceOptions& options)
    : replay_(options.graphs ? StepReplay::from_graph : StepReplay::from_host) {
  int count = 0;
  require_usable(cudaGetDeviceCount(&count));
  const auto local_rank = static_cast<std::size_t>(options.local_rank);
  const bool is_alone = options.local_gpus.empty();
  const GpuChoice choice =
      choose_gpu(is_alone ? std::vector<std::vector<std::string>>{visible_gpus()} : options.local_gpus,
                 is_alone ? std::size_t{0} : local_rank);
  const int index = static_cast<int>(choice.index);
  take_gpu(index);
  description_ = describe_gpu(index);
  plan_conditions_ = describe_plan(index, options);
  stream_ = make_stream();
  reserve_memory(choice.sharers, options);
  context_ = std::make_unique<CudaContext>(CudaContext{*arena_, options.precision});
  libraries_ = std::make_unique<LibraryContext>(
      LibraryContext{*arena_, stream(), options.tf32 ? Products::tf32 : Products::fp32,
                     options.deterministic ? Determinism::deterministic : Determinism::any,
                     options.verbose ? Verbosity::verbose : Verbosity::quiet});
  ops_ = std::make_unique<CudaOps>(*context_, *libraries_, *this);
  flat_ = make_flat_passes(*context_, *this, stream());
}

// Queued work may still use this memory.
CudaDevice::~CudaDevice() { static_cast<void>(cudaStreamSynchronize(stream())); }

std::byte* CudaDevice::take_memory(std::size_t bytes) {
  void* memory = nullptr;
  check_cuda(cudaMalloc(&memory, bytes), "reserve memory");
  memory_.emplace_back(static_cast<std::byte*>(memory));
  return memory_.back().get();
}

void CudaDevice::reserve_memory(int sharers, const DeviceOptions& options) {
  GpuMemory found{};
  check_cuda(cudaMemGetInfo(&found.free, &found.total), "ask for free memory");
  const std::size_t bytes = memory_share(found, sharers, static_cast<std::size_t>(options.gpu_memory_mib) << 20);
  const auto capacity = static_cast<std::int64_t>(bytes);
  if (options.separate_blocks) {
    const auto take = [this](std::int64_t size) { return take_memory(static_cast<std::size_t>(size)); };
    arena_ = std::make_unique<Arena>(take, capacity, workspace_alignment);
  } else {
    arena_ = std::make_unique<Arena>(take_memory(bytes), capacity, workspace_alignment, ArenaMemory::device);
  }
}

Tensor CudaDevice::make(const Shape& shape, DType dtype, Layout layout) {
  return {arena_->allocate(storage_count(shape, layout) * size_of(dtype)), shape, dtype, layout};
}

Tensor CudaDevice::make_persistent(std::int64_t count, DType dtype) {
  Tensor tensor = make(Shape{count}, dtype, Layout::plain);
  check_cuda(cudaMemsetAsync(tensor.data(), 0, static_cast<std::size_t>(tensor.bytes()), stream()), "clear memory");
  lasting_.push_back({tensor, {}});
  return tensor;
}

void CudaDevice::copy_to_device(const void* host, std::int64_t bytes, std::byte* device) {
  check_cuda(cudaMemcpyAsync(device, host, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, stream()),
             "copy to the GPU");
  synchronize();
}

void CudaDevice::copy_to_host(const Tensor& tensor, void* host) {
  check_cuda(
      cudaMemcpyAsync(host, tensor.data(), static_cast<std::size_t>(tensor.bytes()), cudaMemcpyDeviceToHost, stream()),
      "copy from the GPU");
  synchronize();
}

void CudaDevice::read(const Tensor& tensor, std::span<float> values) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.bytes()));
  copy_to_host(tensor, bytes.data());
  unpack_tensor({bytes.data(), tensor.bytes(), tensor.shape(), tensor.dtype(), tensor.layout()}, values);
}

void CudaDevice::write(std::span<const float> values, const Tensor& tensor) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.bytes()));
  pack_tensor(values, {bytes.data(), tensor.bytes(), tensor.shape(), tensor.dtype(), tensor.layout()});
  copy_to_device(bytes.data(), tensor.bytes(), tensor.data());
}

std::int64_t CudaDevice::stored_count(ParameterKind kind, std::span<const std::int64_t> dims) const {
  return storage_count(kind, dims);
}

void CudaDevice::store(ParameterKind kind, std::span<const std::int64_t> dims, std::span<const float> values,
                       const Tensor& stored) {
  std::vector<float> packed(static_cast<std::size_t>(stored.shape().count()));
  pack_parameter(kind, dims, values, packed);
  copy_to_device(packed.data(), stored.bytes(), stored.data());
  if (precision() == DType::f32) return;
  PersistentArray* const array = array_of(stored.data());
  if (array == nullptr) return;  // a test's tensor, not in a parameter array
  if (!array->narrow) {
    const Tensor narrow = make(array->values.shape(), precision(), Layout::plain);
    check_cuda(cudaMemsetAsync(narrow.data(), 0, static_cast<std::size_t>(narrow.bytes()), stream()), "clear memory");
    array->narrow = narrow;
  }
  std::vector<std::uint16_t> narrowed(packed.size());
  narrow(packed, precision(), narrowed);
  copy_to_device(narrowed.data(), static_cast<std::int64_t>(narrowed.size() * sizeof(std::uint16_t)),
                 narrow_copy(stored));
}

void CudaDevice::load(ParameterKind kind, std::span<const std::int64_t> dims, const Tensor& stored,
                      std::span<float> values) {
  std::vector<float> packed(static_cast<std::size_t>(stored.shape().count()));
  copy_to_host(stored, packed.data());
  unpack_parameter(kind, dims, packed, values);
}

std::unique_ptr<CapturedGraph> CudaDevice::make_captured_graph() {
  if (replay_ == StepReplay::from_host) return make_uncaptured_graph();
  return std::make_unique<CudaGraph>(stream(), *arena_);
}

std::unique_ptr<Readback> CudaDevice::make_readback(std::int64_t count) {
  return std::make_unique<PinnedReadback>(stream(), count);
}

void CudaDevice::synchronize() { check_cuda(cudaStreamSynchronize(stream()), "finish the work on the GPU"); }

CudaDevice::PersistentArray* CudaDevice::array_of(const std::byte* address) {
  const auto found = std::ranges::find_if(lasting_, [&](const PersistentArray& array) {
    return address >= array.values.data() && address < array.values.data() + array.values.bytes();
  });
  return found == lasting_.end() ? nullptr : &*found;
}

std::byte* CudaDevice::narrow_copy(const Tensor& values) const {
  for (const PersistentArray& array : lasting_) {
    const std::int64_t offset = values.data() - array.values.data();
    if (offset < 0 || offset >= array.values.bytes() || !array.narrow) continue;
    return array.narrow.data() + offset / size_of(DType::f32) * size_of(array.narrow.dtype());
  }
  return nullptr;
}

}  // namespace lockstep::cuda
