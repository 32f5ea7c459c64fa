// Writes JPEG files of several sizes into a folder for each of three classes, which a network can learn to tell apart:
// write_pictures FOLDER COUNT
#include <fmt/core.h>

#include <cstdlib>
#include <filesystem>
#include <span>

#include "base/io/file.hpp"
#include "picture/jpeg.hpp"
#include "support/samples/smooth_picture.hpp"

using namespace lockstep;

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::filesystem::path folder = argv[1];
  for (std::int64_t i = 0; i < std::atoll(argv[2]); ++i) {
    const std::int64_t label = i % 3;
    const std::filesystem::path of_class = folder / fmt::format("class {}", label);
    std::filesystem::create_directories(of_class);
    OwnedPicture picture = smooth_picture({40 + i % 7, 48 + i % 5 * 4}, i);
    // One color is missing: which, is the class.
    for (auto at = static_cast<std::size_t>(label); at < picture.pixels.size(); at += 3) picture.pixels[at] = 0;
    const std::vector<std::uint8_t> file = encode_jpeg(picture, 90);
    write_file_atomically(of_class / fmt::format("{}.jpg", i), std::as_bytes(std::span(file)));
  }
}
