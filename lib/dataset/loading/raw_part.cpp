#include "dataset/loading/raw_part.hpp"

#include <algorithm>
#include <cassert>

#include "runtime/watch/rank_status.hpp"

namespace lockstep {

void fill_raw_part(const LoaderSource& source, PixelSource pixels, std::int64_t part, RawPart& memory) {
  const PartPlace place = source.plan->place(part);
  std::uint8_t* next_pixels = memory.pixels.data();
  for (std::int64_t i = 0; i < place.samples; ++i) {
    const std::int64_t position = place.first + i;
    const std::int64_t sample = source.plan->sample_at(place, position);
    // All pictures that a GPU takes have the size of the image.
    const View view = source.plan->view_at(place, position, source.dataset->image_size(), source.dataset->image_size());
    const std::int64_t place_of_pixels = pixels == PixelSource::resident ? sample : i;
    memory.views[static_cast<std::size_t>(i)] = {static_cast<std::int32_t>(place_of_pixels), view.top, view.left,
                                                 view.mirrored ? 1 : 0};
    if (pixels == PixelSource::resident) continue;
    source.dataset->begin_reading(sample, place.epoch);
    const Picture picture = source.dataset->picture(sample);
    assert(next_pixels + picture.pixels.size() <= memory.pixels.data() + memory.pixels.size());
    next_pixels = std::ranges::copy(picture.pixels, next_pixels).out;
    memory.labels[static_cast<std::size_t>(i)] = source.dataset->label(sample);
  }
  rank_status::end_reading();
  std::ranges::fill(memory.views.subspan(static_cast<std::size_t>(place.samples)), cuda::SampleView{-1, 0, 0, 0});
  memory.samples = place.samples;
}

void copy_pixels(const Dataset& dataset, std::int64_t first, std::int64_t count, std::uint8_t* pixels) {
  for (std::int64_t sample = first; sample < first + count; ++sample) {
    dataset.begin_reading(sample, 0);
    pixels = std::ranges::copy(dataset.picture(sample).pixels, pixels).out;
  }
  rank_status::end_reading();
}

}  // namespace lockstep
