// Memory between pages that nobody may touch, so that a stray read or write ends the test.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

namespace lockstep {

// `bytes` bytes that end where the forbidden page begins; what lies before them, up to a page, is watched.
class GuardedMemory {
 public:
  explicit GuardedMemory(std::int64_t bytes) {
    const std::int64_t page = sysconf(_SC_PAGESIZE);
    const std::int64_t inner = (bytes + page - 1) / page * page;
    mapped_ = static_cast<std::size_t>(inner + 2 * page);
    void* const memory = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    memory_ = static_cast<std::byte*>(memory);
    front_ = memory_ + page;
    data_ = front_ + (inner - bytes);
    std::memset(front_, watched, static_cast<std::size_t>(inner));
    mprotect(memory_, static_cast<std::size_t>(page), PROT_NONE);
    mprotect(front_ + inner, static_cast<std::size_t>(page), PROT_NONE);
  }
  ~GuardedMemory() { munmap(memory_, mapped_); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::byte* data() const { return data_; }
  // Whether the bytes in front are as they were.
  bool is_intact() const {
    for (const std::byte* at = front_; at != data_; ++at) {
      if (*at != std::byte{watched}) return false;
    }
    return true;
  }

 private:
  static constexpr unsigned char watched = 0xff;  // as floats: NaN, which spreads to every result

  std::size_t mapped_ = 0;
  std::byte* memory_ = nullptr;
  std::byte* front_ = nullptr;
  std::byte* data_ = nullptr;
};

}  // namespace lockstep
