#include "device/cpu/reserved_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.hpp"
#include "base/io/file.hpp"

namespace lockstep::cpu {

// If a limit on address space (ulimit -v, strict overcommit) rejects the full size, tries half, and so on.
ReservedMemory::ReservedMemory(std::int64_t bytes) : bytes_(bytes) {
  constexpr std::int64_t least_bytes = 64 << 20;
  void* range = MAP_FAILED;
  int reason = 0;
  for (; range == MAP_FAILED && bytes_ >= least_bytes; bytes_ /= 2) {
    range = mmap(nullptr, static_cast<std::size_t>(bytes_), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    reason = errno;
    if (range != MAP_FAILED) break;
  }
  require(range != MAP_FAILED, Failure::out_of_memory,
          "cannot reserve {} MiB for tensors: {}. The address space may be limited. Raise ulimit -v.",
          least_bytes >> 20, system_error_message(reason));
  data_ = static_cast<std::byte*>(range);
  // Large pages are optional: without them the run is only slightly slower.
  madvise(range, static_cast<std::size_t>(bytes_), MADV_HUGEPAGE);
}

ReservedMemory::~ReservedMemory() { munmap(data_, static_cast<std::size_t>(bytes_)); }

std::int64_t physical_bytes() { return std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE); }

}  // namespace lockstep::cpu
