// Evaluates a model on a data set. Each sample counts once, for any number of ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "comm/communicator.hpp"
#include "dataset/dataset.hpp"
#include "recipe/run_options.hpp"
#include "step/model.hpp"
#include "train/evaluation/image_views.hpp"

namespace lockstep {

// Batch size of a forward pass. It is smaller for large images, to save memory, and for small data sets, so that ranks
// share them. It does not depend on the number of ranks, because a kernel for another shape could round differently.
std::int64_t evaluation_batch(std::int64_t samples, const PictureSize& image);

// Results by the logits after test-time augmentation, if any. The images without it are one of its views.
struct Evaluation {
  TestTimeAugmentation augmentation = TestTimeAugmentation::plain;
  std::int64_t classes = 0;
  std::int64_t samples = 0;
  std::int64_t in_top5 = 0;               // number of samples whose label is among the five largest logits
  double loss_sum = 0;                    // of the cross-entropy with natural logarithm
  std::int64_t plain_correct = 0;         // number of samples that are correct without the augmentation
  std::vector<std::int32_t> predictions;  // [samples], in data set order
  // Samples by label and prediction, of pairs that occur: a matrix of 20,000 classes would take gigabytes.
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> confusion;

  std::int64_t count(std::int64_t label, std::int64_t prediction) const;
  std::int64_t label_count(std::int64_t label) const;
  std::int64_t correct() const;
  double accuracy() const { return ratio(correct()); }
  // Without the augmentation; std::nullopt if there is none.
  std::optional<double> plain_accuracy() const;
  double top5() const { return ratio(in_top5); }
  double loss() const { return samples == 0 ? 0 : loss_sum / static_cast<double>(samples); }

 private:
  double ratio(std::int64_t part) const;
};

// [samples], in the order of Evaluation::predictions.
std::vector<std::int32_t> labels_of(const Dataset& dataset);

class Evaluator {
 public:
  // `backend`, `dataset` and `model` outlive this. `batch`: if unset, evaluation_batch(). Throws Error(usage) if images
  // of one pixel are to be shifted, and as evaluation_source().
  Evaluator(const Communicator& world, Backend& backend, Model& model, const Dataset& dataset, const ImageRules& rules,
            int loader_threads, DataPlace place, TestTimeAugmentation augmentation,
            std::optional<std::int64_t> batch = std::nullopt);

  std::int64_t batch() const { return batch_; }
  // Computes a batch of noise.
  void rehearse();

  // Collective. Returns the same result on every rank: counts are exact, and the loss is summed in data set order. If
  // logits are equal, the lowest class is the prediction. `told` is called after each batch with an estimate of how
  // many samples all ranks have evaluated. Throws AgreedError if the work of a rank fails.
  using Told = std::function<void(std::int64_t judged)>;
  Evaluation evaluate(const Told& told = {});
  // Likewise. `logits` becomes [samples, classes] in data set order on rank 0, and empty on other ranks. Ranks send
  // them in messages of about `message_bytes`, all ranks together, because MPI counts to 2 GiB.
  Evaluation evaluate(std::vector<float>& logits, std::size_t message_bytes = std::size_t{1} << 28);

 private:
  // The result for one sample.
  struct Judgement {
    float loss;
    std::int32_t prediction;
    std::int32_t plain_prediction;  // without test-time augmentation
    std::int32_t label;             // -1: no sample at this index
    std::int32_t rank_of_label;     // number of classes ranked above the label
  };
  // Also sets `plain_`.
  void read_logits(const Tensor& images, std::vector<float>& logits);
  Judgement judge(const float* logits, const float* plain, std::int32_t label) const;
  Evaluation evaluate_batches(const Told& told, const std::function<void(std::span<const float>)>& take_logits);
  std::vector<Judgement> gather_in_order(const std::vector<Judgement>& own) const;  // collective
  Evaluation count(const std::vector<Judgement>& in_order) const;

  const Communicator& world_;
  Model& model_;
  const Dataset& dataset_;
  SampleShape sample_;
  std::int64_t batch_;
  TestTimeAugmentation augmentation_;
  ImageViews views_;
  std::unique_ptr<Loader> loader_;
  std::vector<float> plain_;  // logits of the batch as it is
};

}  // namespace lockstep
