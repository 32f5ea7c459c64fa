// Memory that all ranks of a node share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "comm/communicator.hpp"

namespace lockstep {

// Why shared memory is not available.
struct SharedMemoryError {
  std::string message;   // "4096 bytes of shared memory on a node: No space left on device"
  int error_number = 0;  // for remedy_for()
};

// A mapping of zeros. All its pages are allocated in advance. A full /dev/shm is therefore an error at the start, and
// not a SIGBUS in the middle of a step. The name is unlinked once every rank has opened it. Nothing is left over,
// however the ranks end.
class SharedSegment {
 public:
  // Collective over `node`, whose ranks share memory. Null on every rank if it is not available; `reason` says why.
  static std::unique_ptr<SharedSegment> create(const Communicator& node, std::int64_t bytes, SharedMemoryError& reason);
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  static std::unique_ptr<SharedSegment> map(int file, std::int64_t bytes);
  SharedSegment(std::byte* data, std::int64_t bytes) : data_(data), bytes_(bytes) {}
  std::byte* data_;
  std::int64_t bytes_;
};

}  // namespace lockstep
