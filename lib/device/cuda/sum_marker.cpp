#include "device/cuda/sum_marker.hpp"

#include <new>

#include "device/cuda/passes/mark_sum.hpp"

namespace lockstep::cuda {
namespace {

constexpr auto mark_words = static_cast<std::int64_t>(sizeof(SumMarks) / sizeof(std::uint64_t));

}  // namespace

// Unified addressing (compute capability 2.0 and later) maps pinned memory at the same address on host and device.
SumMarker::SumMarker(Device& device, cudaStream_t stream)
    : stream_(stream),
      memory_(sizeof(SumMarks)),
      told_(new (memory_.data()) SumMarks{}),
      kept_(reinterpret_cast<SumMarks*>(device.make_persistent(mark_words, DType::i64).data())) {}

// The device may still be writing marks to this memory.
SumMarker::~SumMarker() { static_cast<void>(cudaStreamSynchronize(stream_)); }

void SumMarker::begin() { mark_sum(CudaLaunch(stream_), {kept_, told_, SumEdge::begins, bucket_++}); }

void SumMarker::end() { mark_sum(CudaLaunch(stream_), {kept_, told_, SumEdge::has_ended, 0}); }

}  // namespace lockstep::cuda
