// Tests a trained model on a data set: accuracy over all classes, for each class, and what is mistaken for what.
//
//   mpirun -n 2 evaluate --model-file runs/cifar10/model.h5 --data data/cifar10
//   evaluate --follow runs/cifar10 --data data/cifar10      each checkpoint of a training as it appears
#include <fmt/core.h>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "dataset/split.hpp"
#include "dataset/staging/stage.hpp"
#include "files/predictions_table.hpp"
#include "launch/choice_option.hpp"
#include "launch/field_options.hpp"
#include "launch/number_option.hpp"
#include "launch/run.hpp"
#include "models/model_zoo.hpp"
#include "train/evaluation/evaluation.hpp"
#include "train/evaluation/evaluation_text.hpp"
#include "train/evaluation/model_fit.hpp"
#include "train/following/follow_training.hpp"
#include "train/given/given_model.hpp"

using namespace lockstep;

namespace {

struct EvaluateOptions {
  std::filesystem::path model_file;
  std::string model;
  std::filesystem::path followed;
  std::filesystem::path data;
  Split split = Split::test;
  std::filesystem::path predictions;
  int loader_threads = 1;
  Settings settings;  // of the device, of how pictures become images, and of a test's view

  void declare(CLI::App& app) {
    app.description("Tests a trained model on a data set.");
    CLI::Option* const file =
        app.add_option(
               "--model-file", model_file,
               "A model file or a checkpoint of train_cifar, or weights that another program wrote (safetensors, or "
               "HDF5 with a data set for each tensor)")
            ->type_name("FILE");
    CLI::Option* const follow =
        app.add_option(
               "--follow", followed,
               "The output folder of a training: test each of its checkpoints as it appears, until the training "
               "has ended, and keep the list in FOLDER.evaluations.SPLIT.jsonl")
            ->type_name("FOLDER")
            ->excludes(file);
    app.add_option("--model", model, "The model that another program's weights are of: " + known_models())
        ->type_name("NAME")
        ->excludes(follow);
    app.add_option("--data", data, "Folder made by make_shards")->required()->type_name("FOLDER");
    add_choice(app, "--split", splits, split, "Part of the data set");
    app.add_option(
           "--predictions", predictions,
           "Where to write one line for each sample: number, label, prediction, their names. Comma-separated (RFC "
           "4180, lines end in LF); tab-separated where FILE ends in .tsv")
        ->type_name("FILE")
        ->excludes(follow);
    add_number(app, "--loader-threads", loader_threads, {1, 256}, "Threads of each rank that read samples")
        ->type_name("THREADS");
    declare_fields(app, settings, {FieldGroup::staging, FieldGroup::device, FieldGroup::pictures, FieldGroup::testing});
  }
  DeviceOptions device_options() const { return lockstep::device_options(settings.recipe, settings.run); }
};

// Collective. With --stage copied first.
std::filesystem::path folder_of_split(const Communicator& world, const EvaluateOptions& options) {
  const SplitFolders from = split_folders(options.data);
  const std::filesystem::path& copies = options.settings.run.stage;
  return (copies.empty() ? from : stage(world, {from, {options.split}, copies}, [] {})).of(options.split);
}

}  // namespace

int main(int argc, char** argv) {
  return run<EvaluateOptions>(argc, argv, [](Session& session, const EvaluateOptions& options) {
    const auto folder = [&] { return folder_of_split(session.world, options); };
    if (!options.followed.empty()) {
      return follow_training(session, {options.followed, folder(), options.split, options.settings.recipe.images,
                                       options.loader_threads, options.settings.run.test_view});
    }
    require(!options.model_file.empty(), Failure::usage,
            "nothing to test: neither --model-file nor --follow is stated. See --help.");
    if (!options.predictions.empty() && session.world.rank() == 0) require_place_for_table(options.predictions);
    const Dataset dataset(folder());
    const ModelFile file = read_given_model(options.model_file, options.model, dataset.manifest());
    const ImageRules rules = rules_for(file, dataset.manifest(), options.settings.recipe.images);

    Model model(session.device(), {file.model, file.shape, static_cast<std::int64_t>(file.classes.size())});
    model.store.allocate(session.device().make_lasting(model.store.reduced_count(), DType::f32));
    model.store.assign(file.entries);

    // Each sample is needed once: it need not stay on the device.
    Evaluator evaluator(session.world, *session.backend, model, dataset, rules, options.loader_threads, DataPlace::host,
                        options.settings.run.test_view);
    const Evaluation evaluation = evaluator.evaluate();
    log::plain(evaluation_text(evaluation, file.classes));
    if (options.predictions.empty() || session.world.rank() != 0) return;
    std::vector<std::int32_t> labels;
    for (std::int64_t sample = 0; sample < dataset.samples(); ++sample) labels.push_back(dataset.label(sample));
    write_file_atomically(options.predictions, predictions_table(labels, evaluation.predictions, file.classes,
                                                                 table_format_of(options.predictions)));
  });
}
