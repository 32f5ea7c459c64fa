// Classifies pictures with a trained model: JPEG and PNG files of any size, without labels.
//
//   predict runs/cifar10/model.h5 holiday/ cat.jpg --top 3
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/text/printable.hpp"
#include "dataset/pictures/sample_bits.hpp"
#include "dataset/same_data.hpp"
#include "dataset/split.hpp"
#include "launch/field_options.hpp"
#include "launch/hang_timeout.hpp"
#include "launch/number_option.hpp"
#include "launch/result_options.hpp"
#include "launch/run.hpp"
#include "models/model_zoo.hpp"
#include "picture/decode.hpp"
#include "recipe/recipe.hpp"
#include "runtime/failure/contained_failure.hpp"
#include "train/prediction/picture_files.hpp"
#include "train/prediction/predictor.hpp"
#include "train/pretrained/assign_pretrained.hpp"
#include "train/pretrained/pretrained_model.hpp"
#include "train/pretrained/run_model.hpp"

using namespace lockstep;

namespace {

struct PredictOptions {
  std::filesystem::path model_file;
  std::vector<std::filesystem::path> pictures;
  std::filesystem::path list;
  std::filesystem::path table;
  std::string model;
  std::filesystem::path data;
  std::filesystem::path classes;
  std::int64_t top = 1;
  std::int64_t resize = 0;
  HangTimeout hang_timeout;
  std::optional<std::int64_t> sample_bits;
  Settings settings;  // of the device, and of test-time augmentation

  void declare(CLI::App& app) {
    app.description("Classifies pictures with a trained model.");
    app.add_option("MODEL", model_file,
                   "Model file, checkpoint, output folder of a training (its best model), or another program's weights "
                   "(safetensors, HDF5)")
        ->required()
        ->type_name("FILE");
    app.add_option("PICTURES", pictures, "JPEG and PNG files, or folders of them")->type_name("FILE");
    app.add_option("--list", list, "File that lists further pictures, one path per line")->type_name("FILE");
    add_number(app, "--top", top, {1, 1 << 20}, "Number of classes to print per picture, the most probable first");
    add_number(app, "--resize", resize, {0, 1 << 16},
               "Shorter side before the center crop; 0: as in the model's evaluation, else 8/7 of input sizes above 64")
        ->type_name("PIXELS");
    add_number(app, "--sample-bits", sample_bits, {least_sample_bits, max_sample_bits},
               "16-bit PNG files without an sBIT chunk: number of significant low bits (default: as in training)");
    add_result(app, "--predictions", table, require_place_for_table,
               "Write the table to this file, not to standard output: CSV, or tab-separated if it ends in .tsv");
    CLI::Option* const name =
        app.add_option("--model", model, "Network of the weights, if another program wrote them: " + known_models())
            ->type_name("NAME")
            ->check(CLI::Validator(known_models()));
    app.add_option(
           "--data", data,
           "Prepare pictures as in evaluation on this data set. Defines classes, size and normalization of another "
           "program's weights")
        ->type_name("FOLDER");
    app.add_option(
           "--classes", classes,
           "Instead of --data, for torchvision's ImageNet weights (224 pixels): file with the class names, one per "
           "line, in label order")
        ->type_name("FILE")
        ->needs(name)
        ->excludes("--data");
    declare_fields(app, settings, {FieldGroup::testing, FieldGroup::device});
    hang_timeout.declare(app);
    app.footer(
        "Examples:\n  predict runs/r20 holiday/ cat.jpg --top 3\n"
        "  predict weights.safetensors cat.jpg --model resnet50 --classes names.txt");
  }
  // Standard output contains only the table. So --device auto must not print that it found no GPU.
  DeviceOptions device_options() const {
    DeviceOptions options = lockstep::device_options(settings.recipe, settings.run);
    if (options.name == "auto" && visible_gpus().empty()) options.name = "cpu";
    return options;
  }
};

struct Given {
  ModelFile model;
  std::int64_t shorter_side;
};

Given given_by(const PredictOptions& options, const std::filesystem::path& file) {
  const auto side_or = [&](std::int64_t usual, const SampleShape& image) {
    if (options.resize == 0) return usual;
    require_resize_covers(options.resize, {image.height, image.width});
    return options.resize;
  };
  if (!options.data.empty()) {
    const Manifest data = read_manifest(split_folder(options.data, Split::test));
    ModelFile model = read_pretrained_model(file, options.model, data);
    const std::int64_t side = side_or(shorter_side_of(model, data), model.shape);
    return {std::move(model), side};
  }
  const std::vector<std::string> classes =
      options.classes.empty() ? std::vector<std::string>() : lines_of(options.classes);
  ModelFile model = read_pretrained_model(file, options.model, classes);
  const std::int64_t side = side_or(usual_shorter_side(model), model.shape);
  return {std::move(model), side};
}

// Rank 0's list, on all ranks.
std::vector<std::string> files_of(const Communicator& world, const PredictOptions& options) {
  const std::string names = from_rank_0(world, [&] {
    std::string found;
    for (const std::filesystem::path& path : options.pictures) {
      require(!is_absent(path), Failure::usage, "'{}' does not exist. Check the path.", path.string());
    }
    std::vector<std::filesystem::path> named = options.pictures;
    if (!options.list.empty()) std::ranges::copy(lines_of(options.list), std::back_inserter(named));
    for (const std::string& name : picture_files(named)) found += name + '\0';
    require(!named.empty(), Failure::usage, "no images are given (PICTURES, --list). See --help.");
    require(!found.empty(), Failure::usage, "'{}' contains no files. Give image files, or folders that contain some.",
            named.front().string());
    return found;
  });
  std::vector<std::string> files;
  for (std::size_t at = 0; at < names.size(); at += files.back().size() + 1) files.emplace_back(names.c_str() + at);
  require_same_files(world, sizes_on_rank_0(world, {files.begin(), files.end()}));
  return files;
}

// Collective.
SampleBits sample_bits_in(const Communicator& world, const std::vector<std::string>& files,
                          std::optional<std::int64_t> stated) {
  const auto read = [&](std::int64_t index, std::size_t max_bytes) -> std::string {
    try {
      return read_start(files[static_cast<std::size_t>(index)], max_bytes);
    } catch (const Error&) {  // reported with the predictions
      return {};
    }
  };
  const auto name = [&](std::int64_t index) { return files[static_cast<std::size_t>(index)]; };
  return sample_bits_of(world, {std::ssize(files), name, read}, stated).bits;
}

void print(const std::vector<PicturePrediction>& predictions, const ModelFile& file, const PredictOptions& options) {
  for (const PicturePrediction& prediction : predictions) {
    if (!prediction.fault.empty()) log::warning("{}", prediction.fault);
  }
  std::string table = pictures_table(predictions, file.classes, table_format_of(options.table));
  if (options.table.empty()) {
    table.pop_back();  // plain() ends the last line
    log::plain(table);
  } else {
    write_file_atomically(options.table, table);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run<PredictOptions>(argc, argv, [](Session& session, const PredictOptions& options) -> Ending {
    const RunModel named = named_model(session.world, options.model_file);
    // Standard output contains only the table.
    if (session.world.rank() == 0 && !named.description.empty()) log::warning("model: {}", named.description);
    const Given given = given_by(options, named.file);
    const ModelFile& file = given.model;
    require_same_on_ranks(session.world, {identity_of_model(named.file, file)}, same_files_advice);
    const std::vector<std::string> files = files_of(session.world, options);
    const SampleBits bits =
        sample_bits_in(session.world, files, options.sample_bits ? options.sample_bits : file.sample_bits);
    const PicturePreparation preparation(file, given.shorter_side, bits);

    Model model(session.device(), model_options(file));
    model.store.allocate(session.device().make_persistent(model.store.gradient_buffer_count(), DType::f32));
    const std::optional<std::string> words = assign_pretrained(options.model_file, file.entries, model);
    if (session.world.rank() == 0 && words) log::warning(*words);
    const std::vector<PicturePrediction> predictions =
        Predictor(session.world, model, preparation, options.top, options.settings.run.test_time_augmentation)
            .predict(files);
    if (session.world.rank() == 0) print(predictions, file, options);

    const auto faults = std::ranges::count_if(predictions, [](const auto& one) { return !one.fault.empty(); });
    if (faults == 0) return {};
    return {static_cast<int>(Failure::bad_data),
            fmt::format("{} of {} files could not be read as images (listed above). The others are in the table.",
                        faults, files.size())};
  });
}
