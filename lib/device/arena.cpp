#include "device/arena.hpp"

#include <algorithm>
#include <cassert>

#include "base/error.hpp"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace lockstep {
namespace {

constexpr double bytes_per_mib = 1024.0 * 1024.0;

double mib(std::int64_t bytes) { return static_cast<double>(bytes) / bytes_per_mib; }

}  // namespace

// In builds with AddressSanitizer, it finds accesses to free blocks, to the rest of a block, and to a guard behind it.
#ifdef __SANITIZE_ADDRESS__
std::int64_t Arena::guard_bytes() const { return memory_ == ArenaMemory::host ? block_alignment_ : 0; }
void Arena::allow(const std::byte* memory, std::int64_t bytes) const {
  if (memory_ == ArenaMemory::host) __asan_unpoison_memory_region(memory, static_cast<std::size_t>(bytes));
}
void Arena::forbid(const std::byte* memory, std::int64_t bytes) const {
  if (memory_ == ArenaMemory::host) __asan_poison_memory_region(memory, static_cast<std::size_t>(bytes));
}
#else
std::int64_t Arena::guard_bytes() const { return 0; }
void Arena::allow(const std::byte* /*memory*/, std::int64_t /*bytes*/) const {}
void Arena::forbid(const std::byte* /*memory*/, std::int64_t /*bytes*/) const {}
#endif

Arena::Arena(std::byte* base, std::int64_t capacity, std::int64_t block_alignment, ArenaMemory memory)
    : base_(base),
      memory_(memory),
      block_alignment_(block_alignment),
      capacity_(capacity / block_alignment * block_alignment) {
  assert(reinterpret_cast<std::uintptr_t>(base) % static_cast<std::uintptr_t>(block_alignment) == 0);
  blocks_.push_back(new ArenaBlock{base_, capacity_, 0, 0, this});
}

Arena::~Arena() {
  allow(base_, peak_bytes_);
  for (ArenaBlock* block : blocks_) delete block;
  for (ArenaBlock* block : spare_) delete block;
}

ArenaBlock* Arena::allocate(std::int64_t bytes) {
  assert(bytes >= 0);
  ArenaBlock* const block = source_ ? find_separate(bytes) : find_part(bytes);
  require(block != nullptr, Failure::out_of_memory,
          "cannot allocate a tensor of {:.1f} MiB: {:.1f} of {:.1f} MiB are in use on this device. A step keeps its "
          "activations for the backward pass. Use a smaller batch or a larger --accumulate.",
          mib(bytes), mib(used_bytes_), mib(capacity_));
  forbid(block->data, block->bytes);
  allow(block->data, bytes);
  block->requested = bytes;
  block->owners = 1;
  used_bytes_ += block->bytes;
  return block;
}

std::int64_t Arena::rounded(std::int64_t bytes) const {
  return std::max<std::int64_t>((bytes + block_alignment_ - 1) / block_alignment_, 1) * block_alignment_;
}

// A free block of `bytes`, rounded up, and guards. Null: there is none.
ArenaBlock* Arena::find_part(std::int64_t bytes) {
  const auto fits = [&](const ArenaBlock* block) { return block->owners == 0 && block->bytes >= bytes; };
  const auto place = std::find_if(blocks_.begin(), blocks_.end(), fits);
  // The size is compared before it is rounded up, so the rounding cannot overflow.
  if (place == blocks_.end() || (*place)->bytes < rounded(bytes)) return nullptr;
  ArenaBlock* block = *place;
  const std::int64_t part = std::min(rounded(bytes) + guard_bytes(), block->bytes);
  if (block->bytes > part) {
    if (spare_.empty()) spare_.push_back(new ArenaBlock{});
    ArenaBlock* rest = spare_.back();
    blocks_.insert(place + 1, rest);
    spare_.pop_back();
    *rest = {block->data + part, block->bytes - part, 0, 0, this};
    block->bytes = part;
  }
  peak_bytes_ = std::max<std::int64_t>(peak_bytes_, block->data + part - base_);
  return block;
}

ArenaBlock* Arena::find_separate(std::int64_t bytes) {
  const auto fits = [&](const ArenaBlock* block) { return block->owners == 0 && block->requested == bytes; };
  const auto place = std::find_if(blocks_.begin(), blocks_.end(), fits);
  if (place != blocks_.end()) return *place;
  const std::int64_t free = capacity_ - peak_bytes_;
  if (bytes > free || rounded(bytes) > free) return nullptr;
  std::byte* const data = source_(std::max<std::int64_t>(bytes, 1));
  blocks_.push_back(new ArenaBlock{data, rounded(bytes), bytes, 0, this});
  peak_bytes_ += rounded(bytes);
  return blocks_.back();
}

std::int64_t Arena::largest_free_bytes() const {
  std::int64_t largest = source_ ? capacity_ - peak_bytes_ : 0;
  for (const ArenaBlock* block : blocks_) {
    if (block->owners == 0) largest = std::max(largest, block->bytes);
  }
  return largest;
}

void Arena::release(ArenaBlock* block) noexcept {
  assert(block->arena == this);
  used_bytes_ -= block->bytes;
  block->owners = 0;
  if (source_) return;
  forbid(block->data, block->bytes);
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
