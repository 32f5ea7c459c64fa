#include "base/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "base/descriptor.hpp"

namespace lockstep {

MappedFile::MappedFile(const std::filesystem::path& path) {
  const auto check = [](bool condition) {
    if (!condition) throw std::system_error(errno, std::generic_category());
  };
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  check(file >= 0);
  struct stat status {};
  check(::fstat(file, &status) == 0);
  if (S_ISDIR(status.st_mode)) throw std::system_error(EISDIR, std::generic_category());

  // The system refuses to map nothing.
  if (status.st_size == 0) return;
  const auto size = static_cast<std::size_t>(status.st_size);
  void* const start = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
  check(start != MAP_FAILED);
  bytes_ = {static_cast<const std::byte*>(start), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace lockstep
