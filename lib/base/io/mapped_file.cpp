#include "base/io/mapped_file.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <system_error>

namespace lockstep {

MappedFile::MappedFile(const RegularFile& file) {
  // The system refuses to map nothing.
  if (file.bytes() == 0) return;
  void* const start = ::mmap(nullptr, file.bytes(), PROT_READ, MAP_SHARED, file.descriptor(), 0);
  if (start == MAP_FAILED) throw std::system_error(errno, std::generic_category());
  bytes_ = {static_cast<const std::byte*>(start), file.bytes()};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace lockstep
