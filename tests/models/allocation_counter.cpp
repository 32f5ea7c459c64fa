#include "models/allocation_counter.hpp"

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace {

std::atomic<std::int64_t> calls = 0;

void count(std::size_t bytes) {
  if (bytes >= static_cast<std::size_t>(lockstep::test::counted_bytes)) ++calls;
}

}  // namespace

// glibc exports its allocator under these names for programs that replace malloc.
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* old, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) {
  count(bytes);
  return __libc_malloc(bytes);
}
void* calloc(std::size_t items, std::size_t bytes) {
  count(items * bytes);
  return __libc_calloc(items, bytes);
}
void* realloc(void* old, std::size_t bytes) {
  count(bytes);
  return __libc_realloc(old, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  count(bytes);
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** result, std::size_t alignment, std::size_t bytes) {
  *result = memalign(alignment, bytes);
  return *result == nullptr ? ENOMEM : 0;
}
}

namespace lockstep::test {

std::int64_t allocations() { return calls; }

}  // namespace lockstep::test
