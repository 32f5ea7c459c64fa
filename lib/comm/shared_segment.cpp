#include "comm/shared_segment.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <random>

#include "base/descriptor.hpp"
#include "base/file.hpp"

namespace lockstep {
namespace {

// Nobody can guess it, and nobody else's memory is opened by mistake: creation is exclusive.
std::string random_name() {
  std::random_device source;
  return fmt::format("/lockstep-{}-{:08x}{:08x}", ::getpid(), source(), source());
}

struct Opened {
  std::byte* data = nullptr;
  int error = 0;  // errno's value
};

Opened map(int file, std::int64_t bytes) {
  void* const address = ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (address == MAP_FAILED) return {nullptr, errno};
  return {static_cast<std::byte*>(address), 0};
}

Opened make(const std::string& name, std::int64_t bytes) {
  const Descriptor file(::shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file < 0) return {nullptr, errno};
  if (const int error = ::posix_fallocate(file, 0, bytes); error != 0) return {nullptr, error};
  return map(file, bytes);
}

Opened open_made(const std::string& name, std::int64_t bytes) {
  const Descriptor file(::shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0));
  if (file < 0) return {nullptr, errno};
  return map(file, bytes);
}

}  // namespace

std::unique_ptr<SharedSegment> SharedSegment::create(const Communicator& node, std::int64_t bytes,
                                                     std::string& reason) {
  const bool makes = node.rank() == 0;
  const std::string name = node.broadcast(makes ? random_name() : "", 0);
  Opened opened;
  if (makes) opened = make(name, bytes);
  node.barrier();
  if (!makes) opened = open_made(name, bytes);
  const auto error = static_cast<int>(node.max(opened.error));
  if (makes) ::shm_unlink(name.c_str());

  std::unique_ptr<SharedSegment> segment;
  if (opened.data != nullptr) segment.reset(new SharedSegment(opened.data, bytes));
  if (error == 0) return segment;
  reason = fmt::format("{} bytes of shared memory on a node: {}", bytes,
                       error == ENOENT ? "they could not be made" : system_words(error));
  return nullptr;
}

SharedSegment::~SharedSegment() { ::munmap(data_, static_cast<std::size_t>(bytes_)); }

}  // namespace lockstep
