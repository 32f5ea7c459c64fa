#include "train/evaluation/evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "runtime/failure/contained_failure.hpp"
#include "runtime/watch/rank_status.hpp"
#include "step/noise.hpp"

namespace lockstep {

std::int64_t Evaluation::count(std::int64_t label, std::int64_t prediction) const {
  const auto found = confusion.find({label, prediction});
  return found == confusion.end() ? 0 : found->second;
}

std::int64_t Evaluation::label_count(std::int64_t label) const {
  std::int64_t sum = 0;
  for (auto next = confusion.lower_bound({label, 0}); next != confusion.end() && next->first.first == label; ++next) {
    sum += next->second;
  }
  return sum;
}

std::int64_t Evaluation::correct() const {
  std::int64_t sum = 0;
  for (const auto& [pair, count] : confusion) sum += pair.first == pair.second ? count : 0;
  return sum;
}

std::optional<double> Evaluation::plain_accuracy() const {
  return augmentation == TestTimeAugmentation::plain ? std::nullopt : std::optional(ratio(plain_correct));
}

double Evaluation::ratio(std::int64_t part) const {
  return samples == 0 ? 0 : static_cast<double>(part) / static_cast<double>(samples);
}

namespace {

// Batch b of rank r is at index b * ranks + r in data set order. Returns the end of what it wrote.
char* put_in_order(const std::vector<std::string>& of_ranks, std::size_t batch_bytes, char* next) {
  if (of_ranks.empty()) return next;
  for (std::size_t start = 0; start < of_ranks[0].size(); start += batch_bytes) {
    for (const std::string& own : of_ranks) {
      if (start < own.size()) next += own.copy(next, batch_bytes, start);
    }
  }
  return next;
}

}  // namespace

std::vector<std::int32_t> labels_of(const Dataset& dataset) {
  std::vector<std::int32_t> labels;
  for (std::int64_t sample = 0; sample < dataset.samples(); ++sample) labels.push_back(dataset.label(sample));
  return labels;
}

std::int64_t evaluation_batch(std::int64_t samples, const PictureSize& image) {
  constexpr std::int64_t max_samples = 200;
  constexpr std::int64_t max_pixels = std::int64_t{32} * 224 * 224;
  constexpr std::int64_t ranks_with_work = 16;
  const std::int64_t most = std::clamp(max_pixels / (image.height * image.width), std::int64_t{1}, max_samples);
  return std::clamp((samples + ranks_with_work - 1) / ranks_with_work, std::int64_t{1}, most);
}

Evaluator::Evaluator(const Communicator& world, Backend& backend, Model& model, const Dataset& dataset,
                     const ImageRules& rules, int loader_threads, DataPlace place, TestTimeAugmentation augmentation,
                     std::optional<std::int64_t> batch)
    : world_(world),
      model_(model),
      dataset_(dataset),
      sample_{rules.size.height, rules.size.width, dataset.manifest().shape.channels},
      batch_(batch.value_or(evaluation_batch(dataset.samples(), rules.size))),
      augmentation_(augmentation),
      views_(augmentation, rules.size),
      loader_(backend.load_onto(evaluation_source(dataset, rules, batch_, world.rank(), world.size(), loader_threads),
                                place)),
      plain_(static_cast<std::size_t>(batch_ * model.options.classes)) {}

void Evaluator::rehearse() {
  views_.forward(model_, noise_batch(model_.store.device(), sample_, batch_, model_.options.classes).images);
}

void Evaluator::read_logits(const Tensor& images, std::vector<float>& logits) {
  const std::vector<Tensor> outputs = views_.forward(model_, images);
  loader_->start_next();
  views_.read(model_.store.device(), outputs, logits, plain_);
}

Evaluator::Judgement Evaluator::judge(const float* logits, const float* plain, std::int32_t label) const {
  const std::int64_t classes = model_.options.classes;
  const float* const largest = std::max_element(logits, logits + classes);
  const auto plain_prediction = static_cast<std::int32_t>(std::max_element(plain, plain + classes) - plain);
  double sum = 0;
  for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(logits[c]) - *largest);
  const float own = logits[label];
  std::int32_t before = 0;
  for (std::int64_t c = 0; c < classes; ++c) before += logits[c] > own || (logits[c] == own && c < label);
  return {static_cast<float>(std::log(sum) + *largest - own), static_cast<std::int32_t>(largest - logits),
          plain_prediction, label, before};
}

Evaluation Evaluator::evaluate(const Told& told) {
  return evaluate_batches(told, [](std::span<const float>) {});
}

Evaluation Evaluator::evaluate(std::vector<float>& logits, std::size_t message_bytes) {
  std::vector<float> own;
  const Evaluation evaluation = evaluate_batches(
      {}, [&own](std::span<const float> of_sample) { own.insert(own.end(), of_sample.begin(), of_sample.end()); });
  const std::string_view bytes(reinterpret_cast<const char*>(own.data()), own.size() * sizeof(float));
  logits.assign(world_.rank() == 0 ? static_cast<std::size_t>(evaluation.samples * evaluation.classes) : 0, 0);
  char* next = reinterpret_cast<char*>(logits.data());
  const std::size_t batch_bytes = static_cast<std::size_t>(batch_ * evaluation.classes) * sizeof(float);
  const std::size_t of_all_ranks = batch_bytes * static_cast<std::size_t>(world_.size());
  const std::size_t piece = batch_bytes * std::max<std::size_t>(message_bytes / of_all_ranks, 1);
  const auto batches = static_cast<std::size_t>(evaluation_batches(dataset_.samples(), batch_, world_.size()));
  for (std::size_t start = 0; start < batches * batch_bytes; start += piece) {
    const std::string_view part = bytes.substr(std::min(start, bytes.size()), piece);
    next = put_in_order(world_.gather(part, 0), batch_bytes, next);
  }
  return evaluation;
}

Evaluation Evaluator::evaluate_batches(const Told& told,
                                       const std::function<void(std::span<const float>)>& take_logits) {
  Device& device = model_.store.device();
  const std::int64_t classes = model_.options.classes;
  const std::int64_t batches = evaluation_batches(dataset_.samples(), batch_, world_.size());
  std::vector<Judgement> judged;
  ContainedFailure failure(world_);
  failure.run([&] {
    std::vector<float> logits(static_cast<std::size_t>(batch_ * classes));
    std::vector<float> labels(static_cast<std::size_t>(batch_));
    for (std::int64_t index = 0; index < batches; ++index) {
      rank_status::enter(Phase::testing);
      const Batch& batch = loader_->next();
      read_logits(batch.images, logits);
      device.read(batch.labels, labels);
      for (std::size_t place = 0; place < labels.size(); ++place) {
        const auto label = static_cast<std::int32_t>(labels[place]);
        if (label < 0) continue;
        const std::size_t first = place * static_cast<std::size_t>(classes);
        const auto of_sample = std::span<const float>(logits).subspan(first, static_cast<std::size_t>(classes));
        take_logits(of_sample);
        judged.push_back(judge(of_sample.data(), plain_.data() + first, label));
      }
      if (told) told(std::min((index + 1) * batch_ * world_.size(), dataset_.samples()));
    }
  });
  failure.agree(Phase::gathering);
  return count(gather_in_order(judged));
}

std::vector<Evaluator::Judgement> Evaluator::gather_in_order(const std::vector<Judgement>& own) const {
  const std::string_view bytes(reinterpret_cast<const char*>(own.data()), own.size() * sizeof(Judgement));
  rank_status::enter(Phase::gathering);
  const std::vector<std::string> of_ranks = world_.all_gather(bytes);
  rank_status::enter(Phase::testing);
  std::vector<Judgement> in_order(static_cast<std::size_t>(dataset_.samples()));
  put_in_order(of_ranks, static_cast<std::size_t>(batch_) * sizeof(Judgement),
               reinterpret_cast<char*>(in_order.data()));
  return in_order;
}

Evaluation Evaluator::count(const std::vector<Judgement>& in_order) const {
  Evaluation result;
  result.augmentation = augmentation_;
  result.classes = model_.options.classes;
  for (const Judgement& judgement : in_order) {
    ++result.samples;
    result.in_top5 += judgement.rank_of_label < 5;
    result.loss_sum += judgement.loss;
    result.plain_correct += judgement.plain_prediction == judgement.label;
    result.predictions.push_back(judgement.prediction);
    ++result.confusion[{judgement.label, judgement.prediction}];
  }
  return result;
}

}  // namespace lockstep
