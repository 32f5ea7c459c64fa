// A node that has no memory left, as far as this process can tell.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

namespace lockstep {

// While it exists, the address space of the process can grow by at most `bytes`.
class NoMemoryBeyond {
 public:
  explicit NoMemoryBeyond(rlim_t bytes) {
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    ::getrlimit(RLIMIT_AS, &before_);
    const rlimit limit{pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_AS, &limit);
  }
  NoMemoryBeyond(const NoMemoryBeyond&) = delete;
  NoMemoryBeyond& operator=(const NoMemoryBeyond&) = delete;
  ~NoMemoryBeyond() { ::setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

}  // namespace lockstep
