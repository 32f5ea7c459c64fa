// An address range that uses physical memory only where it is touched.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::cpu {

class ReservedMemory {
 public:
  // As many bytes as the system grants, at most `bytes`. Throws Error(out_of_memory) if it grants too little.
  explicit ReservedMemory(std::int64_t bytes);
  ReservedMemory(const ReservedMemory&) = delete;
  ReservedMemory& operator=(const ReservedMemory&) = delete;
  ~ReservedMemory();

  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::int64_t bytes_;
};

// Physical memory of this machine.
std::int64_t physical_bytes();

}  // namespace lockstep::cpu
