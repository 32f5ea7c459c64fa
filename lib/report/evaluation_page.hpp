// What an evaluation adds to a page: the confusion matrix, the classes that do worst, what is mistaken for what, and
// pictures of it.
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
// Each kind of mistake, the most frequent first; of equal ones by label, then by prediction.
std::vector<Confusion> confusions_of(const Evaluation& evaluation);

// Classes with samples, from the smallest share of right answers on; of equal ones by number.
struct ClassScore {
  std::int64_t label;
  std::int64_t samples;
  std::int64_t correct;
  std::int64_t predicted;  // samples of any class that were taken for it
};
std::vector<ClassScore> worst_classes(const Evaluation& evaluation);

// Numbers of samples that were mistaken, of each frequent kind of mistake in turn one, in the order of the data set.
//
//   labels  [samples], as evaluation.predictions
std::vector<std::int64_t> chosen_mistakes(const Evaluation& evaluation, std::span<const std::int32_t> labels,
                                          std::size_t most);

struct MistakenPicture {
  std::int32_t label;
  std::int32_t prediction;
  std::int64_t sample;
  std::vector<std::uint8_t> png;
};
// As the network saw it, with sides of at most `longest_side`.
std::vector<MistakenPicture> mistaken_pictures(const Evaluation& evaluation, const Dataset& dataset,
                                               const ImageRules& rules, std::size_t most, std::int64_t longest_side);

// A section. `heading` and `classes` may be of any origin.
std::string evaluation_html(std::string_view heading, const Evaluation& evaluation,
                            std::span<const std::string> classes, std::span<const MistakenPicture> pictures);

}  // namespace lockstep
