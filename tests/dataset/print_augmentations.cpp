// Writes what training and tests show of pictures, for others to make the same: print_augmentations SPLIT SIDE COUNT
// FOLDER
//
// FOLDER gets scaled.bin and exact.bin, uint8 [2, COUNT, SIDE, SIDE, 3], by either way of decoding: of the first COUNT
// samples the views of a training (resized crops), then those of a test (8/7 of SIDE to the shorter side). views.txt
// has a line for each image: box (top, left, height, width), the size that it is resized to (height, width), and where
// the window lies in that (top, left).
#include <fmt/core.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/io/file.hpp"
#include "dataset/loading/augmented_reader.hpp"

using namespace lockstep;

namespace {

struct Shown {
  std::vector<std::uint8_t> images;
  std::string views;
};

void show(const Dataset& dataset, const ImageRules& rules, std::int64_t count, Shown& shown) {
  AugmentedReader reader(dataset, rules);
  for (std::int64_t sample = 0; sample < count; ++sample) {
    const AugmentationParams view = draw_augmentation(rules, 1, {0, sample}, dataset.picture_size(sample));
    const auto image = reader.read(sample, view);
    shown.images.insert(shown.images.end(), image.begin(), image.end());
    const auto& [box, size] = *view.resampling;
    shown.views += fmt::format("{} {} {} {} {} {} {} {}\n", box.top, box.left, box.size.height, box.size.width,
                               size.height, size.width, view.top, view.left);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const Dataset dataset(argv[1]);
  const std::int64_t side = std::atoll(argv[2]);
  const std::int64_t count = std::atoll(argv[3]);
  const std::filesystem::path folder = argv[4];
  for (const auto& [name, decoding] : {std::pair("scaled", Decoding::scaled), std::pair("exact", Decoding::exact)}) {
    Shown shown;
    show(dataset, {{side, side}, Augmentation::resized_crop, {}, decoding}, count, shown);
    show(dataset, {{side, side}, Augmentation::none, side * 8 / 7, decoding}, count, shown);
    write_file_atomically(folder / fmt::format("{}.bin", name), std::as_bytes(std::span(shown.images)));
    write_file_atomically(folder / "views.txt", shown.views);
  }
}
