// The files of tests/golden/pictures.h5, and what Pillow makes of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/golden_file.hpp"
#include "picture/picture.hpp"

namespace lockstep::test {

class GoldenPictures {
 public:
  std::vector<std::byte> file(const std::string& name) const {
    std::vector<std::byte> bytes;
    for (const double value : golden_.values("/files/" + name + "/bytes")) bytes.push_back(std::byte(value));
    return bytes;
  }
  // Made by Pillow from the file.
  OwnedPicture decoded(const std::string& name) const { return picture("/files/" + name + "/pixels"); }
  OwnedPicture original() const { return picture("/resized/picture"); }
  OwnedPicture resized(const std::string& name) const { return picture("/resized/" + name); }
  OwnedPicture changed(const std::string& name) const { return picture("/colours/" + name); }

 private:
  OwnedPicture picture(const std::string& path) const {
    const std::vector<std::int64_t> dims = golden_.dims(path);
    OwnedPicture picture{{}, {dims.at(0), dims.at(1)}};
    for (const double value : golden_.values(path)) picture.pixels.push_back(static_cast<std::uint8_t>(value));
    return picture;
  }

  GoldenFile golden_{LOCKSTEP_GOLDEN_DIR "/pictures.h5"};
};

}  // namespace lockstep::test
