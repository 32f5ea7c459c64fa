// What a model takes unlabelled pictures for.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "files/predictions_table.hpp"
#include "step/model.hpp"
#include "train/prediction/picture_preparation.hpp"

namespace lockstep {

class Predictor {
 public:
  // `model` and `preparation` outlive this. `top`: how many classes are told of each picture, at most all.
  Predictor(const Communicator& world, Model& model, const PicturePreparation& preparation, std::int64_t top);

  // Collective: ranks share the files, of which each is given all. On every rank, in the order of `files`. A file that
  // is no picture has no classes, and a fault. Throws Error(bad_data) where the model's answer is no number.
  std::vector<PicturePrediction> predict(std::span<const std::string> files);

 private:
  // What a rank found out about its files, one after another.
  struct Found {
    std::vector<ClassProbability> likeliest;  // `top` for each, also where there is a fault
    std::string faults;                       // one for each, ended by a zero byte; empty without one
  };
  void predict_batch(std::span<const std::string> files, std::int64_t places, Found& found);
  void add_likeliest(std::span<const float> logits, const std::string& file, Found& found) const;

  const Communicator& world_;
  Model& model_;
  const PicturePreparation& preparation_;
  std::size_t top_;
};

}  // namespace lockstep
