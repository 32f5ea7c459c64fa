// The memory of one device, reserved once and handed out first-fit.
//
// A training step allocates and frees the same sizes in the same order every time, and starts and ends with no memory
// of its own in use. First-fit is a pure function of that sequence. So from the second step on, every tensor has the
// address it had in the first one: the system is not asked for memory, and captured graphs stay valid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace lockstep {

// A contiguous range of the arena, shared by the tensors that view it. Owned by the arena, see Tensor.
struct ArenaBlock {
  std::byte* data;
  std::int64_t bytes;      // a multiple of the arena's alignment
  std::int64_t requested;  // by allocate()
  int owners;              // 0: free
  class Arena* arena;
};

enum class ArenaMemory : std::uint8_t {
  host,
  device  // queued work may still use a block that is free already
};

// Not thread-safe: one host thread uses a device.
class Arena {
 public:
  static constexpr std::int64_t alignment = 64;  // bytes: a cache line, and the widest vector

  // Uses [base, base + capacity), which the caller owns and which outlives the arena. Blocks begin and end at multiples
  // of `block_alignment` bytes, as `base` is. Builds with AddressSanitizer find accesses to free blocks of the host.
  Arena(std::byte* base, std::int64_t capacity, std::int64_t block_alignment = alignment,
        ArenaMemory memory = ArenaMemory::host);
  // Each block has memory of its own, of exactly the size that allocate() is called with, so that tools which find
  // memory errors see where it ends. `source` returns it, at a multiple of `block_alignment`; it outlives the arena.
  // Blocks have at most `capacity` bytes together. A free block is used again for the same size only.
  Arena(std::function<std::byte*(std::int64_t bytes)> source, std::int64_t capacity, std::int64_t block_alignment)
      : source_(std::move(source)),
        memory_(ArenaMemory::device),
        block_alignment_(block_alignment),
        capacity_(capacity) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Returns a block with one owner and undefined contents. Throws Error(out_of_memory) if no free range is large
  // enough.
  ArenaBlock* allocate(std::int64_t bytes);
  void release(ArenaBlock* block) noexcept;  // call when the last owner is gone

  std::int64_t used_bytes() const { return used_bytes_; }
  std::int64_t largest_free_bytes() const;                 // the maximum for one allocate()
  std::int64_t peak_bytes() const { return peak_bytes_; }  // highest end of any block so far; of all separate blocks

 private:
  ArenaBlock* find_part(std::int64_t bytes);
  ArenaBlock* find_separate(std::int64_t bytes);
  std::int64_t rounded(std::int64_t bytes) const;
  std::int64_t guard_bytes() const;
  void allow(const std::byte* memory, std::int64_t bytes) const;
  void forbid(const std::byte* memory, std::int64_t bytes) const;

  std::function<std::byte*(std::int64_t)> source_;  // of separate blocks
  std::byte* base_ = nullptr;
  ArenaMemory memory_;
  std::int64_t block_alignment_;
  std::int64_t capacity_;
  std::vector<ArenaBlock*> blocks_;  // all ranges, used and free, ordered by address; separate ones by age
  std::vector<ArenaBlock*> spare_;   // records to reuse
  std::int64_t used_bytes_ = 0;
  std::int64_t peak_bytes_ = 0;

 public:
  ~Arena();
};

}  // namespace lockstep
