#include "dataset/loading/augmented_reader.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/text/printable.hpp"
#include "device/reflect.hpp"
#include "picture/jpeg.hpp"

namespace lockstep {
namespace {

// The largest reduction at which each pixel of the image still covers at least one pixel of the picture.
int reduction_of(const Resampling& resampling, Decoding decoding) {
  if (decoding == Decoding::exact) return 1;
  const std::int64_t times =
      std::min(resampling.box.size.height / resampling.size.height, resampling.box.size.width / resampling.size.width);
  return times >= 8 ? 8 : times >= 4 ? 4 : times >= 2 ? 2 : 1;
}

// A side of the part of a picture that a window shows, of `count` pixels from `first` on: its first pixel and its
// length.
std::pair<std::int64_t, std::int64_t> shown_side(std::int64_t first, std::int64_t count, std::int64_t limit,
                                                 CropFill fill) {
  std::int64_t begin = std::clamp<std::int64_t>(first, 0, limit);
  std::int64_t end = std::clamp<std::int64_t>(first + count, begin, limit);
  if (fill == CropFill::zeros) return {begin, end - begin};
  begin = limit;
  end = 0;
  for (std::int64_t i = first; i < first + count; ++i) {
    begin = std::min(begin, reflected(i, limit));
    end = std::max(end, reflected(i, limit) + 1);
  }
  return {begin, end - begin};
}

// The part of the resampled picture that the window shows, also as a reflection.
PictureBox inside(const AugmentationParams& augmentation, const PictureSize& image, const PictureSize& picture) {
  const auto [top, height] = shown_side(augmentation.top, image.height, picture.height, augmentation.fill);
  const auto [left, width] = shown_side(augmentation.left, image.width, picture.width, augmentation.fill);
  return {top, left, {height, width}};
}

}  // namespace

std::span<const std::uint8_t> AugmentedReader::read(std::int64_t sample, const AugmentationParams& augmentation) {
  const PicturePart part = read_part(sample, augmentation);
  const bool is_whole =
      part.pixels.size == rules_.size && part.top == augmentation.top && part.left == augmentation.left;
  if (is_whole && !augmentation.mirrored && !augmentation.colors) return part.pixels.pixels;
  image_.resize(static_cast<std::size_t>(rules_.size.height * rules_.size.width * dataset_.manifest().shape.channels));
  cut_window(part, augmentation, rules_.size, image_);
  if (augmentation.colors) adjust_colors(image_, *augmentation.colors);
  return image_;
}

// The whole picture, or the part of the resampled picture that the window shows.
PicturePart AugmentedReader::read_part(std::int64_t sample, const AugmentationParams& augmentation) {
  try {
    if (augmentation.resampling) {
      const PictureBox box = inside(augmentation, rules_.size, augmentation.resampling->size);
      if (box.size.height == 0 || box.size.width == 0) return {};
      resample(sample, *augmentation.resampling, box);
      return {resampled_, box.top, box.left};
    }
    if (dataset_.manifest().store != SampleStore::jpeg) return {dataset_.picture(sample)};
    std::string remark;
    decode_jpeg(dataset_.jpeg(sample), decoded_, remark);
    return {decoded_};
  } catch (const PictureFault& fault) {
    throw Error(Failure::bad_data,
                fmt::format("sample {} of the data set '{}' {}. The sample was valid when the data set was made, so "
                            "its shard was written wrongly. Make the data set again.",
                            sample, printable(dataset_.manifest().name), fault.what()));
  }
}

void AugmentedReader::resample(std::int64_t sample, const Resampling& resampling, const PictureBox& box) {
  if (dataset_.manifest().store != SampleStore::jpeg) {
    resize(dataset_.picture(sample), resampling, box, resampled_);
    return;
  }
  const int reduction = reduction_of(resampling, rules_.decoding);
  const Resampler resampler(resampling, box, reduction);
  decode_jpeg_window(dataset_.jpeg(sample), resampler.source(), reduction, decoded_);
  resampler.resample(decoded_.pixels.data(), decoded_.size.width * 3, resampled_);
}

}  // namespace lockstep
