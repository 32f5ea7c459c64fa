// The memory of the simulated devices, and pinned host memory. Device memory is readable only while work of its device
// runs, ends at an unreadable page, and holds 0xFF until it is written. Freed memory stays unreadable.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace lockstep::simulated {

enum class Place : std::uint8_t { device, pinned, registered };

struct Block {
  std::byte* data;
  std::size_t bytes;
  Place place;
  int device;
  std::byte* mapped;  // null if registered: the caller's memory
  std::size_t mapped_bytes;
};

// Bytes of device memory that work has read or written, each counted once, in whole pages.
struct Traffic {
  std::size_t read = 0;
  std::size_t written = 0;
};

class Memory {
 public:
  // Null if there is no address space. The address is a multiple of 256, plus `offset`.
  std::byte* allocate(std::size_t bytes, Place place, int device, std::size_t offset);
  bool free(const void* data, Place place);  // false if `data` is no start of such a block
  void halve(const void* data);              // copies may use only the first half of the block from now on
  cudaError_t add_registered(std::byte* data, std::size_t bytes);

  // The block that holds the address; null if there is none.
  const Block* find(const void* address) const;
  // The largest block of device memory.
  const Block* largest() const;
  // False if the range begins in a block and goes past its end, or begins in freed memory.
  bool allows(const void* address, std::size_t bytes) const;
  // Whether the whole range is in one block of that device.
  bool is_on_device(const void* address, std::size_t bytes, int device) const;
  bool is_host(const void* address) const;  // neither a device's memory nor freed
  std::size_t used_bytes(int device) const;

  void open(int device);
  void close(int device);
  // If memory is closed while work runs, each first access to a page is a fault, whose handler calls this: work does
  // not allocate, so the handler may. Opens the page and counts it. Returns whether the access may be repeated: false
  // if it is not in a block of device memory.
  bool admit(const void* address, bool is_write);
  Traffic take_traffic();  // since the last call; closes the pages
  // Whether the address lies in pages of this class, freed ones and those behind blocks included.
  bool owns(const void* address) const;

 private:
  struct Range {
    const std::byte* begin;
    const std::byte* end;
  };

  void protect(int device, int access) const;

  std::map<const std::byte*, Block> blocks_;           // by `data`
  std::vector<Range> mapped_;                          // blocks and freed blocks
  std::map<std::byte*, std::array<bool, 2>> touched_;  // pages: whether they were read, and written
};

}  // namespace lockstep::simulated
