// Reads the bytes of listed pictures, from separate files and from archives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "dataset/pictures/picture_list.hpp"
#include "dataset/pictures/tar_file.hpp"

namespace lockstep {

inline constexpr std::int64_t max_picture_bytes = std::int64_t{1} << 28;

// Thread-safe. `list` outlives this.
class PictureBytes {
 public:
  explicit PictureBytes(const PictureList& list);

  // The whole file. Throws PictureFault if the list states more than max_picture_bytes, Error(usage) if the file cannot
  // be read, Error(bad_data) if its length differs from the list's.
  std::string all_of(const PictureFile& file) const;
  // At most `count` bytes from its start; empty if the file cannot be read.
  std::string start_of(const PictureFile& file, std::size_t count) const;
  // At most `count` bytes from its middle, without checking the length. Throws like all_of().
  std::string middle_of(const PictureFile& file, std::size_t count) const;

 private:
  const PictureList& list_;
  std::deque<TarFile> archives_;
};

}  // namespace lockstep
