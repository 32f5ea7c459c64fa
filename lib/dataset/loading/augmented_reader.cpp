#include "dataset/loading/augmented_reader.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/text/printable.hpp"
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
      const PictureBox box = shown_part(augmentation, rules_.size, augmentation.resampling->size);
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
