#include "device/arena.hpp"

#include <algorithm>
#include <cassert>

#include "base/error.hpp"

namespace lockstep {
namespace {

constexpr double bytes_per_mib = 1024.0 * 1024.0;

double mib(std::int64_t bytes) { return static_cast<double>(bytes) / bytes_per_mib; }

}  // namespace

Arena::Arena(std::byte* base, std::int64_t capacity, std::int64_t block_alignment)
    : base_(base), block_alignment_(block_alignment), capacity_(capacity / block_alignment * block_alignment) {
  assert(reinterpret_cast<std::uintptr_t>(base) % static_cast<std::uintptr_t>(block_alignment) == 0);
  blocks_.push_back(new ArenaBlock{base_, capacity_, 0, 0, this});
}

Arena::~Arena() {
  for (ArenaBlock* block : blocks_) delete block;
  for (ArenaBlock* block : spare_) delete block;
}

ArenaBlock* Arena::allocate(std::int64_t bytes) {
  assert(bytes >= 0);
  const auto fits = [&](const ArenaBlock* block) { return block->owners == 0 && block->bytes >= bytes; };
  auto place = std::find_if(blocks_.begin(), blocks_.end(), fits);
  // The size is compared before it is rounded up, so the rounding cannot overflow.
  const std::int64_t rounded =
      place == blocks_.end()
          ? 0
          : std::max<std::int64_t>((bytes + block_alignment_ - 1) / block_alignment_, 1) * block_alignment_;
  require(rounded > 0 && (*place)->bytes >= rounded, Failure::out_of_memory,
          "cannot allocate a tensor of {:.1f} MiB: {:.1f} of {:.1f} MiB are in use on this device. A step keeps its "
          "activations for the backward pass. Use a smaller batch or a larger --accumulate.",
          mib(bytes), mib(used_bytes_), mib(capacity_));
  ArenaBlock* block = *place;
  if (block->bytes > rounded) {
    if (spare_.empty()) spare_.push_back(new ArenaBlock{});
    ArenaBlock* rest = spare_.back();
    blocks_.insert(place + 1, rest);
    spare_.pop_back();
    *rest = {block->data + rounded, block->bytes - rounded, 0, 0, this};
    block->bytes = rounded;
  }
  block->requested = bytes;
  block->owners = 1;
  used_bytes_ += rounded;
  peak_bytes_ = std::max<std::int64_t>(peak_bytes_, block->data + rounded - base_);
  return block;
}

std::int64_t Arena::largest_free_bytes() const {
  std::int64_t largest = 0;
  for (const ArenaBlock* block : blocks_) {
    if (block->owners == 0) largest = std::max(largest, block->bytes);
  }
  return largest;
}

void Arena::release(ArenaBlock* block) noexcept {
  assert(block->arena == this);
  used_bytes_ -= block->bytes;
  block->owners = 0;
  const auto by_address = [](const ArenaBlock* a, const ArenaBlock* b) { return a->data < b->data; };
  auto place = std::lower_bound(blocks_.begin(), blocks_.end(), block, by_address);
  assert(place != blocks_.end() && *place == block);
  const auto take_in_next = [this](std::vector<ArenaBlock*>::iterator at) {
    if (at + 1 == blocks_.end() || (*at)->owners != 0 || (*(at + 1))->owners != 0) return;
    (*at)->bytes += (*(at + 1))->bytes;
    spare_.push_back(*(at + 1));
    blocks_.erase(at + 1);
  };
  take_in_next(place);
  if (place != blocks_.begin()) take_in_next(place - 1);
}

}  // namespace lockstep
