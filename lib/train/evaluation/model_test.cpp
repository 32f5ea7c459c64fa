#include "train/evaluation/model_test.hpp"

#include <cstdint>
#include <optional>
#include <string>

#include "base/log.hpp"
#include "dataset/same_data.hpp"
#include "train/evaluation/make_evaluator.hpp"
#include "train/evaluation/model_fit.hpp"
#include "train/pretrained/assign_pretrained.hpp"
#include "train/pretrained/pretrained_model.hpp"

namespace lockstep {
namespace {

// Collective.
ModelFile read_same_model(const Communicator& world, const ModelTestOptions& options, const Manifest& data) {
  ModelFile file = read_pretrained_model(options.file, options.model, data);
  require_same_on_ranks(world, {identity_of_data(options.folder, data), identity_of_model(options.file, file)},
                        same_files_advice);
  return file;
}

Dataset& as_trained(Dataset& data, const ModelFile& file) {
  normalize_as_trained(data, file.mean, file.deviation);
  return data;
}

Model& with_weights(Model& model, const ModelFile& file, const std::filesystem::path& path) {
  model.store.allocate(model.store.device().make_persistent(model.store.gradient_buffer_count(), DType::f32));
  if (const std::optional<std::string> words = assign_pretrained(path, file.entries, model)) log::info(*words);
  return model;
}

}  // namespace

// Each sample is read once, so data need not stay on the device.
ModelTest::ModelTest(const Session& session, const ModelTestOptions& options)
    : dataset_(options.folder),
      file_(read_same_model(session.world, options, dataset_.manifest())),
      rules_(rules_for(file_, dataset_.manifest(), options.images)),
      model_(session.device(), model_options(file_)),
      evaluator_(make_evaluator(
          session, with_weights(model_, file_, options.file),
          {as_trained(dataset_, file_), rules_, options.loader_threads, DataPlace::host, options.view})) {}

std::string ModelTest::weights_hash() const { return model_.store.weights_hash(); }

}  // namespace lockstep
