#include "device/cuda/sum_marker.hpp"

#include <new>

#include "device/cuda/passes/mark_sum.hpp"

namespace lockstep::cuda {
namespace {

constexpr auto mark_words = static_cast<std::int64_t>(sizeof(SumMarks) / sizeof(std::uint64_t));

}  // namespace

// With unified addressing, which every GPU since compute capability 2.0 has, pinned memory is mapped, and its address
// is the same on both sides.
SumMarker::SumMarker(Device& device, cudaStream_t stream)
    : stream_(stream),
      memory_(sizeof(SumMarks)),
      told_(new (memory_.data()) SumMarks{}),
      kept_(reinterpret_cast<SumMarks*>(device.make_lasting(mark_words, DType::i64).data())) {}

// Marks may be under way into memory that goes now.
SumMarker::~SumMarker() { static_cast<void>(cudaStreamSynchronize(stream_)); }

void SumMarker::begin() { mark_sum(CudaLaunch(stream_), {kept_, told_, SumEdge::begins, bucket_++}); }

void SumMarker::end() { mark_sum(CudaLaunch(stream_), {kept_, told_, SumEdge::has_ended, 0}); }

}  // namespace lockstep::cuda
