// Predicts the classes of unlabeled pictures.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "files/predictions_table.hpp"
#include "step/model.hpp"
#include "train/evaluation/image_views.hpp"
#include "train/prediction/picture_preparation.hpp"

namespace lockstep {

class Predictor {
 public:
  // `model` and `preparation` outlive this. `top`: number of classes to return per picture, at most all. Throws as
  // ImageViews.
  Predictor(const Communicator& world, Model& model, const PicturePreparation& preparation, std::int64_t top,
            TestTimeAugmentation augmentation);

  // Collective. All ranks pass all files and share the work. Returns the results on every rank, in the order of
  // `files`. A file that is not a picture has a fault and no classes. Throws Error(bad_data) if the model's output is
  // not finite.
  std::vector<PicturePrediction> predict(std::span<const std::string> files);

 private:
  // A rank's results for its files, in order.
  struct Found {
    std::vector<ClassProbability> likeliest;  // `top` entries per file, also if it has a fault
    std::string faults;                       // one zero-terminated string per file; empty without a fault
  };
  void predict_batch(std::span<const std::string> files, std::int64_t places, Found& found);
  void add_likeliest(std::span<const float> logits, const std::string& file, Found& found) const;

  const Communicator& world_;
  Model& model_;
  const PicturePreparation& preparation_;
  std::size_t top_;
  ImageViews views_;
};

}  // namespace lockstep
