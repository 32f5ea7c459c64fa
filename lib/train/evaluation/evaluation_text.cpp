#include "train/evaluation/evaluation_text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "base/text/printable.hpp"
#include "base/text/text_table.hpp"
#include "train/evaluation/class_scores.hpp"

namespace lockstep {

namespace {

constexpr std::size_t label_width = 6;
constexpr std::size_t count_width = 7;
// With more classes the matrix does not fit a terminal; the worst ones are listed instead.
constexpr std::int64_t largest_matrix = (terminal_width - label_width) / count_width;
constexpr std::size_t listed = 20;

std::string percent(std::int64_t part, std::int64_t all) {
  return all == 0 ? "-" : fmt::format("{:.2f} %", 100.0 * static_cast<double>(part) / static_cast<double>(all));
}

std::size_t longest_name(std::span<const std::string> classes) {
  std::size_t width = 5;
  for (const std::string& name : classes) width = std::max(width, name.size());
  return width;
}

std::string confusion_matrix(const Evaluation& evaluation) {
  std::string text = fmt::format("\nconfusion (rows: label, columns: prediction)\n{:{}}", "", label_width);
  for (std::int64_t c = 0; c < evaluation.classes; ++c) text += fmt::format("{:>{}}", c, count_width);
  for (std::int64_t label = 0; label < evaluation.classes; ++label) {
    text += fmt::format("\n{:>{}}", label, label_width);
    for (std::int64_t c = 0; c < evaluation.classes; ++c) {
      text += fmt::format("{:>{}}", evaluation.count(label, c), count_width);
    }
  }
  return text;
}

std::string worst_mistakes(const Evaluation& evaluation, std::span<const std::string> classes) {
  const std::vector<Confusion> mistakes = confusions_of(evaluation);
  std::string text = "\nmost frequent mistakes (samples, label -> prediction)";
  for (const Confusion& mistake : std::span(mistakes).first(std::min(listed, mistakes.size()))) {
    text += fmt::format("\n{:>7}  {} -> {}", mistake.samples, classes[static_cast<std::size_t>(mistake.label)],
                        classes[static_cast<std::size_t>(mistake.prediction)]);
  }
  return text;
}

std::string class_table(const Evaluation& evaluation, std::span<const std::string> classes,
                        std::span<const std::int64_t> shown) {
  const std::size_t width = longest_name(classes);
  std::string text = fmt::format("class  {:<{}}  {:>8}  {:>9}\n", "name", width, "samples", "correct");
  for (const std::int64_t label : shown) {
    const std::int64_t samples = evaluation.label_count(label);
    text += fmt::format("{:>5}  {:<{}}  {:>8}  {:>9}\n", label, classes[static_cast<std::size_t>(label)], width,
                        samples, percent(evaluation.count(label, label), samples));
  }
  return text;
}

}  // namespace

std::string accuracy_text(double accuracy, TestTimeAugmentation augmentation, double plain_accuracy) {
  const std::string text = fmt::format("{:.2f} %", 100 * accuracy);
  if (augmentation == TestTimeAugmentation::plain) return text;
  return fmt::format("{} with {} ({:.2f} % without)", text, test_augmentation_name(augmentation), 100 * plain_accuracy);
}

std::string accuracy_text(const Evaluation& evaluation) {
  return accuracy_text(evaluation.accuracy(), evaluation.augmentation, evaluation.plain_accuracy().value_or(0));
}

std::string evaluation_text(const Evaluation& evaluation, std::span<const std::string> names) {
  std::vector<std::string> classes;
  for (const std::string& name : names) classes.push_back(printable_name(name));
  std::string text = fmt::format("samples  {}\nloss     {:.4f}\ntop-1    {}\n", evaluation.samples, evaluation.loss(),
                                 evaluation.samples == 0 ? "-" : accuracy_text(evaluation));
  constexpr std::int64_t top = 5;  // with so few classes, the label is always among the top 5
  if (evaluation.classes > top) text += fmt::format("top-5    {}\n", percent(evaluation.in_top5, evaluation.samples));
  text += '\n';
  if (evaluation.classes <= largest_matrix) {
    std::vector<std::int64_t> all(classes.size());
    std::iota(all.begin(), all.end(), std::int64_t{0});
    return text + class_table(evaluation, classes, all) + confusion_matrix(evaluation);
  }
  std::vector<std::int64_t> worst;
  for (const ClassScore& score : worst_classes(evaluation)) worst.push_back(score.label);
  if (worst.size() > listed) {
    text += fmt::format("the worst {} of {} classes (--json has all)\n", listed, worst.size());
    worst.resize(listed);
  }
  return text + class_table(evaluation, classes, worst) + worst_mistakes(evaluation, classes);
}

}  // namespace lockstep
