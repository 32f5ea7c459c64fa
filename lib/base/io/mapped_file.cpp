#include "base/io/mapped_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace lockstep {

MappedFile::MappedFile(const RegularFile& file) {
  // mmap() rejects a length of 0.
  if (file.bytes() == 0) return;
  void* const start = ::mmap(nullptr, file.bytes(), PROT_READ, MAP_SHARED, file.descriptor(), 0);
  if (start == MAP_FAILED) throw std::system_error(errno, std::generic_category());
  bytes_ = {static_cast<const std::byte*>(start), file.bytes()};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void read_ahead(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::size_t before = reinterpret_cast<std::uintptr_t>(bytes.data()) % page;
  static_cast<void>(madvise(const_cast<std::byte*>(bytes.data()) - before, before + bytes.size(), MADV_WILLNEED));
}

}  // namespace lockstep
