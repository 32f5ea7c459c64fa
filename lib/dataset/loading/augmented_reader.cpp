#include "dataset/loading/augmented_reader.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/text/printable.hpp"
#include "dataset/loading/normalizer.hpp"
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

// The part of the window inside the resampled picture.
PictureBox inside(const AugmentationParams& augmentation, const PictureSize& image, const PictureSize& picture) {
  const auto part = [](std::int64_t first, std::int64_t count, std::int64_t limit) {
    const std::int64_t begin = std::clamp<std::int64_t>(first, 0, limit);
    return std::pair(begin, std::clamp<std::int64_t>(first + count, begin, limit) - begin);
  };
  const auto [top, height] = part(augmentation.top, image.height, picture.height);
  const auto [left, width] = part(augmentation.left, image.width, picture.width);
  return {top, left, {height, width}};
}

}  // namespace

AugmentedPicture AugmentedReader::read(std::int64_t sample, const AugmentationParams& augmentation) {
  AugmentedPicture seen = read_window(sample, augmentation);
  seen.augmentation.erased = augmentation.erased;
  seen.augmentation.colors.reset();
  if (!augmentation.colors) return seen;
  constexpr std::int64_t channels = 3;
  changed_.size = rules_.size;
  changed_.pixels.resize(static_cast<std::size_t>(rules_.size.height * rules_.size.width * channels));
  cut_window(seen.picture, seen.augmentation, rules_.size, changed_.pixels);
  adjust_colors(changed_.pixels, *augmentation.colors);
  seen.augmentation.top = 0;
  seen.augmentation.left = 0;
  return {changed_, seen.augmentation};
}

AugmentedPicture AugmentedReader::read_window(std::int64_t sample, const AugmentationParams& augmentation) {
  const bool is_jpeg = dataset_.manifest().store == SampleStore::jpeg;
  try {
    if (augmentation.resampling) {
      const PictureBox window = inside(augmentation, rules_.size, augmentation.resampling->size);
      if (window.size.height == 0 || window.size.width == 0)
        return {{}, {augmentation.top, augmentation.left, augmentation.mirrored}};
      resample(sample, *augmentation.resampling, window);
      const auto top = static_cast<std::int32_t>(augmentation.top - window.top);
      const auto left = static_cast<std::int32_t>(augmentation.left - window.left);
      return {resampled_, {top, left, augmentation.mirrored}};
    }
    if (!is_jpeg) return {dataset_.picture(sample), augmentation};
    std::string remark;
    decode_jpeg(dataset_.jpeg(sample), decoded_, remark);
    return {decoded_, augmentation};
  } catch (const PictureFault& fault) {
    throw Error(Failure::bad_data,
                fmt::format("sample {} of the data set '{}' {}. The sample was valid when the data set was made, so "
                            "its shard was written wrongly. Make the data set again.",
                            sample, printable(dataset_.manifest().name), fault.what()));
  }
}

void AugmentedReader::resample(std::int64_t sample, const Resampling& resampling, const PictureBox& window) {
  if (dataset_.manifest().store != SampleStore::jpeg) {
    resize(dataset_.picture(sample), resampling, window, resampled_);
    return;
  }
  const int reduction = reduction_of(resampling, rules_.decoding);
  const Resampler resampler(resampling, window, reduction);
  decode_jpeg_window(dataset_.jpeg(sample), resampler.source(), reduction, decoded_);
  resampler.resample(decoded_.pixels.data(), decoded_.size.width * 3, resampled_);
}

}  // namespace lockstep
