// Tests a trained model on a data set: accuracy over all classes, accuracy of each class, and the confusions.
//
//   mpirun -n 2 evaluate --model-file runs/cifar10/model.h5 --data data/cifar10
//   evaluate --model-file runs/cifar10 --data data/cifar10 --json test.json    the best model of a training
//   evaluate --follow runs/cifar10 --data data/cifar10      each new checkpoint of a running training
#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/text/counted.hpp"
#include "base/text/json_text.hpp"
#include "dataset/split.hpp"
#include "dataset/staging/stage.hpp"
#include "device/precision.hpp"
#include "files/logits_file.hpp"
#include "files/predictions_table.hpp"
#include "launch/choice_option.hpp"
#include "launch/field_options.hpp"
#include "launch/hang_timeout.hpp"
#include "launch/number_option.hpp"
#include "launch/result_options.hpp"
#include "launch/run.hpp"
#include "models/model_zoo.hpp"
#include "runtime/failure/contained_failure.hpp"
#include "search/search_overview.hpp"
#include "train/evaluation/evaluation_json.hpp"
#include "train/evaluation/evaluation_text.hpp"
#include "train/evaluation/model_test.hpp"
#include "train/monitoring/follow_training.hpp"
#include "train/pretrained/run_model.hpp"

using namespace lockstep;

namespace {

struct EvaluateOptions {
  std::filesystem::path model_file;
  std::string model;
  std::filesystem::path followed;
  std::filesystem::path data;
  Split split = Split::test;
  std::filesystem::path predictions;
  std::filesystem::path json;
  std::filesystem::path logits;
  int loader_threads = 1;
  HangTimeout hang_timeout;
  Settings settings;  // of the device, of image preprocessing, and of test-time augmentation

  void declare(CLI::App& app) {
    app.description("Evaluates a trained model on a data set: accuracy, accuracy per class, and confusions.");
    app.option_defaults()->group(heading_of(FieldGroup::model));
    CLI::Option* const file =
        app.add_option(
               "--model-file", model_file,
               "Model file, checkpoint, output folder of a training (its best model), or another program's weights "
               "(safetensors, HDF5)")
            ->type_name("FILE");
    CLI::Option* const follow =
        app.add_option(
               "--follow", followed,
               "Evaluate each new checkpoint of the training with this output folder until it ends; append results to "
               "FOLDER.evaluations.SPLIT.jsonl")
            ->type_name("FOLDER")
            ->excludes(file);
    app.add_option("--model", model, "Network of the weights, if another program wrote them: " + known_models())
        ->type_name("NAME")
        ->check(CLI::Validator(known_models()))
        ->excludes(follow);
    app.option_defaults()->group(heading_of(FieldGroup::data));
    app.add_option("--data", data, "Folder made by make_shards")->required()->type_name("FOLDER");
    add_choice(app, "--split", splits, split, "Split to evaluate");
    add_number(app, "--loader-threads", loader_threads, {1, 256}, "Threads per rank that read samples")
        ->type_name("THREADS");
    app.option_defaults()->group(heading_of(FieldGroup::output));
    add_result(
        app, "--predictions", predictions, require_place_for_table,
        "Write number, label, prediction and class names of each sample to this file: CSV, or tab-separated if it "
        "ends in .tsv")
        ->excludes(follow);
    add_result(app, "--json", json, require_place_for_evaluation,
               "Write the result with all counts to this file, as JSON")
        ->excludes(follow);
    add_result(app, "--logits", logits, require_place_for_logits,
               "Write the logits and labels of all samples to this file, as HDF5")
        ->excludes(follow);
    declare_fields(app, settings, {FieldGroup::staging, FieldGroup::device, FieldGroup::resizing, FieldGroup::testing});
    hang_timeout.declare(app);
    app.footer(
        "Examples:\n  evaluate --model-file runs/r20 --data data/cifar10 --json test.json\n"
        "  mpirun -n 2 evaluate --model-file runs/r20/model.h5 --data data/cifar10\n"
        "  evaluate --follow runs/r20 --data data/cifar10");
  }
  DeviceOptions device_options() const { return lockstep::device_options(settings.recipe, settings.run); }
};

// Collective. With --stage, copies the data first.
std::filesystem::path folder_of_split(const Communicator& world, const EvaluateOptions& options) {
  const SplitFolders from = split_folders(options.data);
  const std::filesystem::path& copies = options.settings.run.stage;
  return (copies.empty() ? from : stage(world, {from, {options.split}, copies}, [] {})).of(options.split);
}

void describe(const Session& session, const ModelTest& test, Split split) {
  const Device& device = session.device();
  const Manifest& data = test.dataset().manifest();
  log::info("model: {}, in {} on {}", test.file().model, precision_name(device.precision()), device.description());
  log::info("data: {} ({}), {} {} samples of {}", data.name, data.source, test.dataset().samples(), split_name(split),
            counted(data.classes.size(), "class", "classes"));
}

}  // namespace

int main(int argc, char** argv) {
  return run<EvaluateOptions>(argc, argv, [](Session& session, const EvaluateOptions& options) {
    const auto folder = [&] { return folder_of_split(session.world, options); };
    if (!options.followed.empty()) {
      require(!holds_search(options.followed), Failure::usage,
              "'{}' (--follow) contains a search. Choose the folder of a trial, such as '{}'.",
              options.followed.string(), (options.followed / "trial-1").string());
      return follow_training(session, {options.followed, folder(), options.split, options.settings.recipe.images,
                                       options.loader_threads, options.settings.run.test_time_augmentation});
    }
    require(!options.model_file.empty(), Failure::usage,
            "nothing to evaluate: neither --model-file nor --follow is set. See --help.");
    const RunModel model = named_model(session.world, options.model_file);
    if (!model.description.empty()) log::info("model: {}", model.description);
    ModelTest test(session, {model.file, options.model, folder(), options.settings.recipe.images,
                             options.loader_threads, options.settings.run.test_time_augmentation});
    describe(session, test, options.split);
    std::vector<float> logits;
    const Evaluation evaluation = options.logits.empty() ? test.evaluate() : test.evaluate(logits);
    require(std::isfinite(evaluation.loss()), Failure::bad_data,
            "the outputs of '{}' are not finite numbers. Its weights come from a training that diverged. Choose "
            "another model.",
            model.file.string());
    log::plain(evaluation_text(evaluation, test.file().classes));
    if (session.world.rank() != 0) return;
    if (!options.json.empty()) {
      const nlohmann::json result = evaluation_json(evaluation, {model.file, test.file().model, test.weights_hash()},
                                                    {test.dataset().manifest(), options.split, test.rules()}, session);
      write_file_atomically(options.json, json_text(result) + "\n");
    }
    const std::vector<std::int32_t> labels = labels_of(test.dataset());
    if (!options.logits.empty()) {
      const std::vector<std::byte> image =
          logits_image(logits, labels, test.file().classes,
                       {test.file().model, test.weights_hash(), test.dataset().manifest().name,
                        split_name(options.split), test_augmentation_name(evaluation.augmentation)});
      write_file_atomically(options.logits, std::span<const std::byte>(image));
    }
    if (options.predictions.empty()) return;
    write_file_atomically(options.predictions, predictions_table(labels, evaluation.predictions, test.file().classes,
                                                                 table_format_of(options.predictions)));
  });
}
