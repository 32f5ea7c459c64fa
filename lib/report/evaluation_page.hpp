// The evaluation section of a report page: confusion matrix, worst classes, most frequent confusions and example
// pictures.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dataset/dataset.hpp"
#include "dataset/loading/augment.hpp"
#include "train/evaluation/evaluation.hpp"

namespace lockstep {

struct Confusion {
  std::int64_t label;
  std::int64_t prediction;
  std::int64_t samples;
};
// All pairs of label and wrong prediction, the most frequent first. Ties are ordered by label, then by prediction.
std::vector<Confusion> confusions_of(const Evaluation& evaluation);

// Classes with samples, by increasing accuracy. Ties are ordered by class index.
struct ClassScore {
  std::int64_t label;
  std::int64_t samples;
  std::int64_t correct;
  std::int64_t predicted;  // samples of any class with this prediction
};
std::vector<ClassScore> worst_classes(const Evaluation& evaluation);

// Indices of misclassified samples. Takes one sample of each frequent confusion in turn, in the order of the data set.
//
//   labels  [samples], as evaluation.predictions
std::vector<std::int64_t> select_misclassified(const Evaluation& evaluation, std::span<const std::int32_t> labels,
                                               std::size_t most);

struct MisclassifiedImage {
  std::int32_t label;
  std::int32_t prediction;
  std::int64_t sample;
  std::vector<std::uint8_t> png;
};
// As the network saw them, with sides of at most `longest_side` pixels.
std::vector<MisclassifiedImage> misclassified_images(const Evaluation& evaluation, const Dataset& dataset,
                                                     const ImageRules& rules, std::size_t most,
                                                     std::int64_t longest_side);

// A page section. `heading` and `classes` are untrusted.
std::string evaluation_html(std::string_view heading, const Evaluation& evaluation,
                            std::span<const std::string> classes, std::span<const MisclassifiedImage> pictures);

}  // namespace lockstep
