#include "train/pretrained/assign_pretrained.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <string_view>

#include "base/error.hpp"
#include "base/text/counted.hpp"

namespace lockstep {

namespace {

constexpr const char* first_weight = "conv1.weight";  // of residual networks

// Kernel size of a square convolution; 0 if `dims` are not those of one.
std::int64_t kernel_of(const std::vector<std::int64_t>& dims) {
  return dims.size() == 4 && dims[2] == dims[3] ? dims[3] : 0;
}

// The stem of a residual network depends on the image size, which the model's name does not include.
void require_same_beginning(const std::filesystem::path& path, std::span<const ParameterStore::Entry> entries,
                            const Model& model) {
  constexpr std::int64_t of_small_images = 3;
  constexpr std::int64_t of_large_images = 7;
  const auto& own = model.store.parameters().front();
  const auto given = std::ranges::find(entries, first_weight, &ParameterStore::Entry::name);
  if (own.name != first_weight || given == entries.end()) return;
  const std::int64_t here = kernel_of(own.dims);
  const std::int64_t there = kernel_of(given->dims);
  const bool differs =
      (here == of_small_images && there == of_large_images) || (here == of_large_images && there == of_small_images);
  if (!differs || !std::ranges::equal(std::span(own.dims).first(2), std::span(given->dims).first(2))) return;
  const bool is_small = here == of_small_images;
  const SampleShape& image = model.options.sample;
  throw Error(
      Failure::usage,
      fmt::format("the weights in '{}' are for images of {} 64 pixels, but these images have {} x {} pixels. Up to 64 "
                  "pixels, a residual network starts with a 3 x 3 convolution, above with a 7 x 7 convolution and "
                  "pooling. Use {} (--image-size {} in a training), or weights trained on {} images.",
                  path.string(), is_small ? "more than" : "up to", image.height, image.width,
                  is_small ? "larger images" : "smaller images", is_small ? "224" : "64",
                  is_small ? "small" : "large"));
}

const ParameterStore::Entry* find(std::span<const ParameterStore::Entry> entries, std::string_view name) {
  const auto found = std::ranges::find(entries, name, &ParameterStore::Entry::name);
  return found == entries.end() ? nullptr : &*found;
}

// Number of classes of the weights: the length of the last bias of `store` in the file.
std::optional<std::int64_t> classes_in(std::span<const ParameterStore::Entry> entries, const ParameterStore& store) {
  const ParameterStore::Entry* const bias = find(entries, store.parameters().back().name);
  return bias != nullptr && bias->dims.size() == 1 ? std::optional(bias->dims.front()) : std::nullopt;
}

// Prefixes with which all of `names` occur in a file; only the empty prefix if they occur without one.
std::vector<std::string> fitting_prefixes(std::span<const ParameterStore::Entry> entries,
                                          const std::vector<std::string>& names) {
  std::set<std::string_view> there;
  for (const ParameterStore::Entry& entry : entries) there.insert(entry.name);
  const auto fits_behind = [&](const std::string& prefix) {
    return std::ranges::all_of(names, [&](const std::string& name) { return there.contains(prefix + name); });
  };
  if (fits_behind("")) return {""};
  std::vector<std::string> prefixes;
  const std::string ending = "." + names.front();
  for (const std::string_view name : there) {
    if (!name.ends_with(ending)) continue;
    const std::string prefix(name.substr(0, name.size() - names.front().size()));
    if (fits_behind(prefix)) prefixes.push_back(prefix);
  }
  return prefixes;
}

std::vector<std::string> names_needed(const ParameterStore& store, Head head) {
  std::vector<std::string> names = store.names();
  const std::string layer = head_of(store);
  if (head == Head::fresh) std::erase_if(names, [&](const std::string& name) { return name.starts_with(layer); });
  return names;
}

// Whether the entries fit a model with these options and their own number of classes.
bool fits(std::vector<ParameterStore::Entry> entries, ModelOptions options, Device& device) try {
  options.residual_init = ResidualInit::standard;
  const Model any_classes(device, options);
  remove_prefix("", entries, any_classes.store, Head::as_written);
  options.classes = classes_in(entries, any_classes.store).value_or(0);
  return Model(device, options).store.misfit(entries).empty();
} catch (const Error&) {
  return false;  // unsupported image size, or no classes
}

// "--model resnet18 with images of 224 x 224 pixels", or several; empty if none fits. Tries several image sizes, on
// which the shapes of weights depend. The model's own size is tried first, and not named.
std::string fitting_models(const std::vector<ParameterStore::Entry>& entries, const Model& model) {
  const std::int64_t channels = model.options.sample.channels;
  const std::array samples = {model.options.sample, SampleShape{32, 32, channels}, SampleShape{224, 224, channels}};
  std::vector<std::string> found;
  for (const std::string& name : model_names()) {
    ModelOptions options = model.options;
    options.name = name;
    options.network.clear();
    const auto fits_for = [&](const SampleShape& sample) {
      options.sample = sample;
      return fits(entries, options, model.store.device());
    };
    const auto* const sample = std::ranges::find_if(samples, fits_for);
    if (sample == samples.end()) continue;
    const bool is_its_own = sample == samples.begin();
    found.push_back("--model " + name +
                    (is_its_own ? "" : fmt::format(" with images of {} x {} pixels", sample->height, sample->width)));
  }
  return fmt::format("{}", fmt::join(found, " or "));
}

void require_same_classes(const std::filesystem::path& path, const std::vector<ParameterStore::Entry>& entries,
                          const Model& model) {
  const std::optional<std::int64_t> classes = classes_in(entries, model.store);
  if (!classes || *classes == model.options.classes) return;
  require(!fits(entries, model.options, model.store.device()), Failure::usage,
          "the last layer of '{}' has {}, but the data have {}. Choose the data it was trained on, or train a new last "
          "layer (--new-head in a training).",
          path.string(), counted(*classes, "class", "classes"), model.options.classes);
}

void require_fit(const std::filesystem::path& path, const std::vector<ParameterStore::Entry>& entries,
                 const Model& model) {
  const std::string misfit = model.store.misfit(entries);
  if (misfit.empty()) return;
  require_same_beginning(path, entries, model);
  require_same_classes(path, entries, model);
  const std::string others = fitting_models(entries, model);
  throw Error(
      Failure::usage,
      fmt::format("the weights in '{}' do not fit the model '{}': {}. {}", path.string(), model.options.name, misfit,
                  others.empty() ? "Choose another --model or another file." : fmt::format("They fit {}.", others)));
}

}  // namespace

std::string head_of(const ParameterStore& store) {
  const std::string& last = store.parameters().back().name;
  return last.substr(0, last.rfind('.') + 1);
}

std::string remove_prefix(const std::filesystem::path& path, std::vector<ParameterStore::Entry>& entries,
                          const ParameterStore& store, Head head) {
  const std::vector<std::string> prefixes = fitting_prefixes(entries, names_needed(store, head));
  require(prefixes.size() < 2, Failure::usage,
          "'{}' holds the weights of the model {} times, with the prefixes '{}'. It is unclear which ones to use. Keep "
          "only one of them in the file.",
          path.string(), prefixes.size(), fmt::join(prefixes, "' and '"));
  if (prefixes.empty() || prefixes.front().empty()) return "";
  for (ParameterStore::Entry& entry : entries) {
    if (entry.name.starts_with(prefixes.front())) entry.name.erase(0, prefixes.front().size());
  }
  return prefixes.front();
}

std::optional<std::string> describe_prefix(const std::filesystem::path& path, const std::string& prefix) {
  if (prefix.empty()) return std::nullopt;
  return fmt::format("weights in '{}': the prefix '{}' is removed from their names", path.string(), prefix);
}

std::optional<std::string> assign_pretrained(const std::filesystem::path& path,
                                             std::vector<ParameterStore::Entry> entries, Model& model) {
  const std::string prefix = remove_prefix(path, entries, model.store, Head::as_written);
  require_fit(path, entries, model);
  model.store.assign(entries);
  return describe_prefix(path, prefix);
}

}  // namespace lockstep
