// A model file and a data set, opened for evaluation. Shared by all programs that evaluate.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "backend/session.hpp"
#include "dataset/dataset.hpp"
#include "files/model_file.hpp"
#include "recipe/run_options.hpp"
#include "train/evaluation/evaluation.hpp"

namespace lockstep {

struct ModelTestOptions {
  std::filesystem::path file;
  std::string model;             // name of the model (--model) if another program wrote the weights, otherwise empty
  std::filesystem::path folder;  // folder of the split
  ImageOptions images;
  int loader_threads = 1;
  TestTimeAugmentation view = TestTimeAugmentation::plain;
};

class ModelTest {
 public:
  // Collective. `session` outlives this. Throws as Dataset, read_pretrained_model() and rules_for().
  ModelTest(const Session& session, const ModelTestOptions& options);

  const Dataset& dataset() const { return dataset_; }
  const ModelFile& file() const { return file_; }
  const ImageRules& rules() const { return rules_; }
  std::string weights_hash() const;
  // Collective.
  Evaluation evaluate() { return evaluator_->evaluate(); }
  Evaluation evaluate(std::vector<float>& logits) { return evaluator_->evaluate(logits); }  // likewise

 private:
  Dataset dataset_;
  ModelFile file_;
  ImageRules rules_;
  Model model_;
  std::unique_ptr<Evaluator> evaluator_;
};

}  // namespace lockstep
