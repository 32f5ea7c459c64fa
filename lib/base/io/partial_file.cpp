#include "base/io/partial_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <string>
#include <system_error>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t random_digits = 16;

}  // namespace

fs::path partial_path(const fs::path& path) {
  constexpr std::size_t longest_name = 255;  // on most file systems
  constexpr std::size_t own_characters = 2 + random_digits + partial_suffix.size();
  std::random_device random;
  return path.parent_path() / fmt::format(".{}.{:08x}{:08x}{}",
                                          path.filename().string().substr(0, longest_name - own_characters), random(),
                                          random(), partial_suffix);
}

bool is_partial_name(std::string_view name) {
  if (!name.starts_with('.') || !name.ends_with(partial_suffix)) return false;
  name.remove_suffix(partial_suffix.size());
  const std::size_t point = name.rfind('.');
  const std::string_view digits = name.substr(point + 1);
  return point > 0 && digits.size() == random_digits &&
         digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

int create_new_file(const char* path, mode_t mode) noexcept {
  // careful-open: creates a new file and follows no link
  return ::open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
}

PartialFile create_partial_file(const fs::path& path, mode_t mode) {
  constexpr int attempts = 8;  // two equal names of 64 random bits practically never occur
  for (int attempt = 1;; ++attempt) {
    fs::path name = partial_path(path);
    const int file = create_new_file(name.c_str(), mode);
    if (file >= 0 || errno != EEXIST || attempt == attempts) return {std::move(name), Descriptor(file)};
  }
}

std::vector<fs::path> remove_partial_files(const fs::path& folder) {
  std::vector<fs::path> removed;
  std::error_code unlisted;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, unlisted)) {
    std::error_code gone;
    const bool is_left = is_partial_name(entry.path().filename().string()) &&
                         entry.symlink_status(gone).type() == fs::file_type::regular;
    if (is_left && ::unlink(entry.path().c_str()) == 0) removed.push_back(entry.path());
  }
  return removed;
}

}  // namespace lockstep
