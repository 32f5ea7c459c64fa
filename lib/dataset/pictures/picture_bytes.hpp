// The bytes of a list's pictures, from files of their own and from archives.
#pragma once

#include <cstddef>
#include <deque>
#include <string>

#include "dataset/pictures/picture_list.hpp"
#include "dataset/pictures/tar_file.hpp"

namespace lockstep {

// Thread-safe. `list` outlives it.
class PictureBytes {
 public:
  explicit PictureBytes(const PictureList& list);

  // The whole file. Throws Error(usage) where it cannot be read, Error(bad_data) where its length is not the listed
  // one.
  std::string all_of(const PictureFile& file) const;
  // Its first bytes, at most `count`; empty where the file cannot be read.
  std::string start_of(const PictureFile& file, std::size_t count) const;
  // At most `count` bytes of its middle, without a check of its length. Throws as above.
  std::string middle_of(const PictureFile& file, std::size_t count) const;

 private:
  const PictureList& list_;
  std::deque<TarFile> archives_;
};

}  // namespace lockstep
