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
