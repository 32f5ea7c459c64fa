#include "comm/shared_segment.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <random>

#include "base/io/descriptor.hpp"
#include "base/io/file.hpp"

namespace lockstep {
namespace {

// Unpredictable. Creation is exclusive, so that no foreign segment is opened by mistake.
std::string random_name() {
  std::random_device source;
  return fmt::format("/lockstep-{}-{:08x}{:08x}", ::getpid(), source(), source());
}

// Rank 0 creates the segment, then the others open it. Returns a descriptor, or the negative errno value.
int open_in_turn(const std::string& name, const Communicator& node) {
  const auto open = [&](int flags) {
    const int file = ::shm_open(name.c_str(), O_RDWR | O_CLOEXEC | flags, 0600);
    return file < 0 ? -errno : file;
  };
  if (node.rank() != 0) {
    node.barrier();
    // careful-open: shm_open of a segment of this job
    return open(0);
  }
  // careful-open: shm_open of a segment of this job
  const int made = open(O_CREAT | O_EXCL);
  node.barrier();
  return made;
}

// Each rank allocates an equal part of the segment, so that the pages are on the rank's NUMA node.
int back_part(int file, std::int64_t bytes, const Communicator& node) {
  const std::int64_t begin = bytes / node.size() * node.rank();
  const std::int64_t end = node.rank() + 1 == node.size() ? bytes : begin + bytes / node.size();
  int error = 0;
  do {
    error = ::posix_fallocate(file, begin, end - begin);
  } while (error == EINTR);
  return error;
}

}  // namespace

std::unique_ptr<SharedSegment> SharedSegment::create(const Communicator& node, std::int64_t bytes,
                                                     SharedMemoryError& reason) {
  assert(bytes >= node.size());  // every rank allocates a part
  const std::string name = node.broadcast(node.rank() == 0 ? random_name() : "", 0);
  const Descriptor file(open_in_turn(name, node));
  const int error = file < 0 ? -int{file} : back_part(file, bytes, node);
  // No rank maps the segment before all parts are allocated. No rank returns before the name is unlinked.
  auto largest_error = static_cast<int>(node.max(error));
  if (node.rank() == 0) ::shm_unlink(name.c_str());

  std::unique_ptr<SharedSegment> segment;
  if (largest_error == 0) {
    segment = map(file, bytes);
    largest_error = static_cast<int>(node.max(segment == nullptr ? ENOMEM : 0));
  }
  if (largest_error == 0) return segment;
  reason = {fmt::format("{} bytes of shared memory on a node: {}", bytes, system_error_message(largest_error)),
            largest_error};
  return nullptr;
}

std::unique_ptr<SharedSegment> SharedSegment::map(int file, std::int64_t bytes) {
  void* const data = ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (data == MAP_FAILED) return nullptr;
  return std::unique_ptr<SharedSegment>(new SharedSegment(static_cast<std::byte*>(data), bytes));
}

SharedSegment::~SharedSegment() { ::munmap(data_, static_cast<std::size_t>(bytes_)); }

}  // namespace lockstep
