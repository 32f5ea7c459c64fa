#include "train/prediction/picture_preparation.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "dataset/loading/window.hpp"
#include "picture/decode.hpp"
#include "picture/resize.hpp"
#include "train/evaluation/model_fit.hpp"

namespace lockstep {
namespace {

// Pillow's luma weights, which leave a gray picture unchanged.
void make_gray(OwnedPicture& picture) {
  std::size_t pixel = 0;
  for (std::size_t at = 0; at < picture.pixels.size(); at += 3) {
    const std::uint32_t weighted =
        picture.pixels[at] * 19595U + picture.pixels[at + 1] * 38470U + picture.pixels[at + 2] * 7471U;
    picture.pixels[pixel++] = static_cast<std::uint8_t>((weighted + 0x8000U) >> 16);
  }
  picture.pixels.resize(pixel);
}

}  // namespace

std::int64_t usual_shorter_side(const ModelFile& model) {
  constexpr std::int64_t small_picture = 64;
  const std::int64_t side = std::min(model.shape.height, model.shape.width);
  if (model.shorter_side) return *model.shorter_side == 0 ? side : *model.shorter_side;
  return side <= small_picture ? side : side_with_margin(side);
}

std::int64_t shorter_side_of(const ModelFile& model, const Manifest& data) {
  const std::int64_t stored = std::min(data.shape.height, data.shape.width);
  return rules_for(model, data, {}).shorter_side.value_or(stored);
}

PicturePreparation::PicturePreparation(const ModelFile& model, std::int64_t shorter_side, const SampleBits& sample_bits)
    : shape_(model.shape),
      shorter_side_(shorter_side),
      sample_bits_(sample_bits),
      normalizer_(model.mean, model.deviation) {
  require(shape_.channels == 1 || shape_.channels == 3, Failure::usage,
          "the model expects images with {} channels, but image files have 1 or 3. Choose another model.",
          shape_.channels);
}

void PicturePreparation::write(std::span<const std::byte> file, std::span<float> image) const {
  DecodedPicture decoded = decode_picture(file, sample_bits_);
  const PictureSize size{shape_.height, shape_.width};
  const PictureSize whole = decoded.picture.size;
  const PictureSize resized = covering(whole, with_shorter_side(size, shorter_side_));
  const AugmentationParams crop = center_crop({size}, resized);
  // Only this part is computed: the whole of a thin picture can exceed the memory.
  const PictureBox shown = shown_part(crop, size, resized);
  OwnedPicture picture;
  resize(decoded.picture, {{0, 0, whole}, resized}, shown, picture);
  if (shape_.channels == 1) make_gray(picture);
  std::vector<std::uint8_t> window(image.size());
  cut_window({picture, shown.top, shown.left}, crop, size, window);
  std::vector<float> planes(image.size());
  normalizer_.write(window, planes);
  const auto channels = static_cast<std::size_t>(shape_.channels);
  const std::size_t plane = planes.size() / channels;
  for (std::size_t pixel = 0; pixel < plane; ++pixel) {
    for (std::size_t c = 0; c < channels; ++c) image[pixel * channels + c] = planes[c * plane + pixel];
  }
}

}  // namespace lockstep
