#include "train/evaluation/class_scores.hpp"

#include <algorithm>
#include <functional>

namespace lockstep {

std::vector<Confusion> confusions_of(const Evaluation& evaluation) {
  std::vector<Confusion> confusions;
  for (const auto& [pair, samples] : evaluation.confusion) {
    if (pair.first != pair.second) confusions.push_back({pair.first, pair.second, samples});
  }
  std::ranges::stable_sort(confusions, std::ranges::greater{}, &Confusion::samples);
  return confusions;
}

std::vector<ClassScore> worst_classes(const Evaluation& evaluation) {
  std::vector<ClassScore> scores(static_cast<std::size_t>(evaluation.classes));
  for (std::int64_t label = 0; label < evaluation.classes; ++label) {
    scores[static_cast<std::size_t>(label)] = {label, 0, evaluation.count(label, label), 0};
  }
  for (const auto& [pair, samples] : evaluation.confusion) {
    scores[static_cast<std::size_t>(pair.first)].samples += samples;
    scores[static_cast<std::size_t>(pair.second)].predicted += samples;
  }
  std::erase_if(scores, [](const ClassScore& score) { return score.samples == 0; });
  std::ranges::stable_sort(scores, {}, [](const ClassScore& score) {
    return static_cast<double>(score.correct) / static_cast<double>(score.samples);
  });
  return scores;
}

}  // namespace lockstep
