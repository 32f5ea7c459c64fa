#include "dataset/pictures/picture_bytes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "picture/picture_fault.hpp"

namespace lockstep {

PictureBytes::PictureBytes(const PictureList& list) : list_(list) {
  for (const std::string& archive : list.archives) archives_.emplace_back(list.folder / archive);
}

std::string PictureBytes::all_of(const PictureFile& file) const {
  if (file.bytes > max_picture_bytes)
    throw PictureFault(fmt::format("has {} bytes, more than any picture", file.bytes));
  if (file.archive >= 0) {
    std::string bytes(static_cast<std::size_t>(file.bytes), '\0');
    archives_[static_cast<std::size_t>(file.archive)].read(file.offset, bytes);
    return bytes;
  }
  const std::filesystem::path path = list_.folder / file.name;
  std::string bytes = read_file(path, static_cast<std::size_t>(max_picture_bytes));
  require(static_cast<std::int64_t>(bytes.size()) == file.bytes, Failure::bad_data,
          "'{}' had {} bytes and now has {}. Its data set changes while it is read. Try again when no other program "
          "writes there.",
          path.string(), file.bytes, bytes.size());
  return bytes;
}

std::string PictureBytes::start_of(const PictureFile& file, std::size_t count) const {
  const std::size_t bytes = std::min(count, static_cast<std::size_t>(std::max<std::int64_t>(file.bytes, 0)));
  if (file.archive < 0) return read_start(list_.folder / file.name, bytes);
  std::string start(bytes, '\0');
  archives_[static_cast<std::size_t>(file.archive)].read(file.offset, start);
  return start;
}

std::string PictureBytes::middle_of(const PictureFile& file, std::size_t count) const {
  const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(file.bytes, 0));
  std::string middle(std::min(bytes, count), '\0');
  const auto begin = static_cast<std::int64_t>((bytes - middle.size()) / 2);
  if (file.archive >= 0) {
    archives_[static_cast<std::size_t>(file.archive)].read(file.offset + begin, middle);
  } else {
    // TarFile can read parts of any file.
    TarFile(list_.folder / file.name).read(begin, middle);
  }
  return middle;
}

}  // namespace lockstep
