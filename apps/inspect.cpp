// Describes a file: a shard, a manifest, a model, a checkpoint, or another program's weights. For a data set, it can
// also draw the images that a network receives; for a model by name, it lists the layers.
//
//   inspect runs/cifar10/model.h5
//   inspect data/mine --pictures batch.png --image-size 128
//   inspect --model resnet50 --image-size 224
#include <fmt/ranges.h>

#include <array>
#include <limits>
#include <optional>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/text/counted.hpp"
#include "base/text/printable.hpp"
#include "dataset/loading/picture_grid.hpp"
#include "dataset/split.hpp"
#include "files/result_file.hpp"
#include "launch/field_options.hpp"
#include "launch/number_option.hpp"
#include "launch/result_options.hpp"
#include "launch/run.hpp"
#include "models/model_zoo.hpp"
#include "network/cost.hpp"
#include "network/onnx/onnx_network.hpp"
#include "picture/decode.hpp"
#include "picture/png.hpp"
#include "scaling/study_file.hpp"
#include "scaling/study_table.hpp"
#include "search/search_overview.hpp"
#include "train/inspection.hpp"

using namespace lockstep;

namespace {

constexpr std::int64_t drawn_images = 64;

bool begins_as_png(std::string_view start) {
  return picture_format(std::as_bytes(std::span(start))) == PictureFormat::png;
}

void require_place_for_pictures(const std::filesystem::path& file) {
  static constexpr std::array<std::string_view, 1> endings = {".png"};
  require_place_for_result(file, {"PNG picture", begins_as_png}, "--pictures", endings);
}

struct InspectOptions {
  std::filesystem::path file;
  std::filesystem::path pictures;
  std::string model;
  std::int64_t classes = 1000;
  Settings settings;  // of image preprocessing

  void declare(CLI::App& app) {
    app.description(
        "Prints the contents of a data set, shard, model, checkpoint, training, search or scaling study, or of "
        "pretrained weights, or the layers of a model.");
    auto* const file_option =
        app.add_option("FILE", file,
                       "Data set folder, manifest.json, shard, model file, checkpoint, output folder of a training, "
                       "search or scaling study, or another program's weights (safetensors, HDF5)")
            ->type_name("FILE");
    auto* const model_option = app.add_option("--model", model,
                                              "Print a model's layers with their sizes and millions of multiply-adds "
                                              "(MMAC), for images of --image-size "
                                              "(default: 224, or as the ONNX file says). Known: " +
                                                  known_models() + ", or NAME.onnx")
                                   ->type_name("NAME")
                                   ->excludes(file_option);
    add_number(app, "--classes", classes, {1, 1'000'000}, "With --model: number of classes")->needs(model_option);
    add_result(
        app, "--pictures", pictures, require_place_for_pictures,
        "Draw the first training images of a data set (test split: evaluation images) into this PNG file, as the "
        "options below prepare them");
    CLI::Option* const pictures_option = app.get_option("--pictures");
    model_option->excludes(pictures_option);
    declare_recipe(app, settings);
    add_number(app, "--seed", settings.recipe.seed, {0, std::numeric_limits<std::uint64_t>::max()},
               "Seed of sample order and augmentation");
    declare_fields(app, settings, {FieldGroup::augmentation, FieldGroup::resizing});
    for (CLI::Option* const option : app.get_options()) {
      const bool is_of_pictures = option->get_group() == heading_of(FieldGroup::augmentation) ||
                                  option->get_group() == heading_of(FieldGroup::resizing);
      if (is_of_pictures && option->get_name() != "--image-size") option->needs(pictures_option);
    }
    app.get_option("--seed")->needs(pictures_option);
    app.final_callback([&app] {
      const bool has_images = app.count("--pictures") + app.count("--model") > 0;
      for (const char* option : {"--recipe", "--image-size"}) {
        if (has_images || app.count(option) == 0) continue;
        throw CLI::ValidationError(option, "it has no effect without --pictures or --model. Add one of them");
      }
    });
    app.footer(
        "Examples:\n  inspect runs/r20\n  inspect runs/r20/model.h5\n"
        "  inspect data/mine --pictures batch.png --image-size 128\n  inspect --model resnet50 --image-size 224\n"
        "  inspect --model net.onnx");
  }
};

bool is_for_tests(const std::filesystem::path& split) {
  const std::string name = std::filesystem::weakly_canonical(split).filename();
  return name == split_name(Split::test) || name == split_name(Split::validation);
}

void draw(const InspectOptions& options) {
  const std::filesystem::path split = drawn_split(options.file);
  const Dataset dataset(split);
  const Manifest& data = dataset.manifest();
  const Recipe& recipe = options.settings.recipe;
  const ImageRules rules = is_for_tests(split) ? without_augmentation(test_rules(recipe.images, data))
                                               : training_rules(recipe.images, data, 0);
  const PictureGrid grid = picture_grid(dataset, rules, recipe.seed, drawn_images);
  const std::vector<std::uint8_t> file = encode_png(grid.picture);
  write_file_atomically(options.pictures, std::as_bytes(std::span(file)));
  log::plain(fmt::format("'{}': {} images of '{}' as {} shows them", options.pictures.string(), grid.labels.size(),
                         split.string(), is_for_tests(split) ? "a test" : "a training"));
  std::vector<std::string> row;
  const auto class_of = [&](std::int32_t label) {
    return printable_name(data.classes[static_cast<std::size_t>(label)]);
  };
  for (std::size_t image = 0; image < grid.labels.size(); ++image) {
    const std::string label = class_of(grid.labels[image]);
    row.push_back(grid.shares.empty() ? label
                                      : fmt::format("{:.2f} {} + {:.2f} {}", grid.shares[image], label,
                                                    1 - grid.shares[image], class_of(grid.others[image])));
    if (std::ssize(row) < grid.columns) continue;
    log::plain(fmt::format("{}", fmt::join(row, ", ")));
    row.clear();
  }
  if (!row.empty()) log::plain(fmt::format("{}", fmt::join(row, ", ")));
}

NetworkGraph named_network(const InspectOptions& options) {
  const std::optional<std::int64_t> side = options.settings.recipe.images.side;
  if (is_onnx_path(options.model)) {
    const OnnxNetwork network =
        read_onnx_network(options.model, side ? std::optional(ValueShape{*side, *side, 0}) : std::nullopt);
    for (const std::string& warning : network.warnings) log::warning("{}", warning);
    return network.graph;
  }
  constexpr std::int64_t usual_side = 224;
  const std::int64_t pixels = side.value_or(usual_side);
  return model_graph({options.model, {pixels, pixels, 3}, options.classes});
}

std::string describe_study(const std::filesystem::path& file) {
  const Study study = read_study(file);
  return fmt::format("scaling study of {} up to {}, {}\n\n{}\n\n{}", study.model, counted(max_ranks_of(study), "rank"),
                     study.device, study_table(study), study_sentences(study));
}

}  // namespace

int main(int argc, char** argv) {
  return run<InspectOptions>(argc, argv, [](Session&, const InspectOptions& options) {
    if (!options.model.empty()) return log::plain(network_table(named_network(options)));
    require(!options.file.empty(), Failure::usage, "FILE is missing. Name a file or folder, or use --model NAME.");
    if (!options.pictures.empty()) return draw(options);
    const std::filesystem::path study = options.file / study_file;
    if (!is_absent(study)) return log::plain(describe_study(study));
    log::plain(holds_search(options.file) ? describe_search(options.file) : describe_file(options.file));
  });
}
