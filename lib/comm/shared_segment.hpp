// Memory that all ranks of a node see.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "comm/communicator.hpp"

namespace lockstep {

// Why shared memory could not be had.
struct NoSharedMemory {
  std::string message;   // "4096 bytes of shared memory on a node: No space left on device"
  int error_number = 0;  // for remedy_for()
};

// A mapping of zeros, backed in full before anybody touches it: a full /dev/shm is an error at start and not a SIGBUS
// in the middle of a step. Its name is gone once every rank has it open, so nothing is left over however the ranks
// end.
class SharedSegment {
 public:
  // Collective over `node`, whose ranks share memory. Null on every rank alike if it cannot be had; `reason` says why.
  static std::unique_ptr<SharedSegment> create(const Communicator& node, std::int64_t bytes, NoSharedMemory& reason);
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
