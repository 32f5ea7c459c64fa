#include "dataset/loading/sampler.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

#include "base/random.hpp"

namespace lockstep {
namespace {

// Four rounds are the proven minimum for large halves. Small data sets have halves of a few bits, which need more
// rounds.
constexpr int rounds = 6;

}  // namespace

Permutation::Permutation(std::int64_t count, std::uint64_t key, std::uint64_t stream)
    : count_(static_cast<std::uint64_t>(count)),
      key_(key),
      stream_(stream),
      half_bits_(std::max(1, (static_cast<int>(std::bit_width(count_ - 1)) + 1) / 2)) {
  assert(count > 0);
}

std::int64_t Permutation::at(std::int64_t place) const {
  assert(place >= 0 && static_cast<std::uint64_t>(place) < count_);
  std::uint64_t value = encrypt(static_cast<std::uint64_t>(place));
  while (value >= count_) value = encrypt(value);
  return static_cast<std::int64_t>(value);
}

std::uint64_t Permutation::encrypt(std::uint64_t value) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_;
  std::uint64_t right = value & mask;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::uint64_t mixed = philox(key_, stream_, round << 32 | right)[0] & mask;
    left ^= mixed;
    std::swap(left, right);
  }
  return left << half_bits_ | right;
}

SampleOrder::SampleOrder(std::int64_t samples, std::uint64_t seed, std::int64_t epoch)
    : permutation_(samples, seed, stream_counter(Stream::order, epoch)) {}

}  // namespace lockstep
