#include "train/given/assign_given.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace lockstep {

namespace {

constexpr const char* first_convolution = "conv1.weight";  // of residual networks

// Of a square convolution; 0: `dims` are those of none.
std::int64_t kernel_of(const std::vector<std::int64_t>& dims) {
  return dims.size() == 4 && dims[2] == dims[3] ? dims[3] : 0;
}

// How a residual network begins depends on the size of its images, which no name of a model tells.
void require_same_beginning(const std::filesystem::path& path, std::span<const ParameterStore::Entry> entries,
                            const Model& model) {
  constexpr std::int64_t of_small_images = 3;
  constexpr std::int64_t of_large_images = 7;
  const auto& own = model.store.parameters().front();
  const auto given = std::ranges::find(entries, first_convolution, &ParameterStore::Entry::name);
  if (own.name != first_convolution || given == entries.end()) return;
  const std::int64_t here = kernel_of(own.dims);
  const std::int64_t there = kernel_of(given->dims);
  const bool differs =
      (here == of_small_images && there == of_large_images) || (here == of_large_images && there == of_small_images);
  if (!differs || !std::ranges::equal(std::span(own.dims).first(2), std::span(given->dims).first(2))) return;
  const bool is_small = here == of_small_images;
  const SampleShape& image = model.options.sample;
  throw Error(
      Failure::usage,
      fmt::format("the weights in '{}' are for images of {} 64 pixels, and these have {} x {} (up to 64 pixels a "
                  "residual network begins with a convolution of 3 x 3, above with one of 7 x 7 and a pooling). "
                  "Give it {} (--image-size {} in a training), or take weights that were trained on {} images.",
                  path.string(), is_small ? "more than" : "up to", image.height, image.width,
                  is_small ? "larger images" : "smaller images", is_small ? "224" : "64",
                  is_small ? "small" : "large"));
}

}  // namespace

void assign_given(const std::filesystem::path& path, std::span<const ParameterStore::Entry> entries, Model& model) {
  require_same_beginning(path, entries, model);
  model.store.assign(entries);
}

}  // namespace lockstep
