// A training that a test makes up, with the observers that report it: what the loop tells them, and in its order.
#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/io/file.hpp"
#include "train/observers/metrics_reports.hpp"
#include "train/observers/progress_lines.hpp"
#include "train/observers/training_summary.hpp"
#include "train/opening/earlier_results.hpp"

namespace lockstep {

// The folder of `name` in `parent`, with its lock.
class OutputFolder {
 public:
  explicit OutputFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& path() const { return folder_; }
  FolderLock* lock() {
    if (!lock_) lock_.emplace(folder_, "--output");
    return &*lock_;
  }
  std::vector<nlohmann::json> metrics() const {
    std::vector<nlohmann::json> objects;
    std::ifstream file(folder_ / "metrics.jsonl");
    for (std::string line; std::getline(file, line);) objects.push_back(nlohmann::json::parse(line));
    return objects;
  }
  nlohmann::json summary() const { return nlohmann::json::parse(read_file(folder_ / "summary.json", 200'000)); }

 private:
  std::filesystem::path folder_;
  std::optional<FolderLock> lock_;
};

// What else there is to know about a step.
struct StepFacts {
  double waited_ms = 0;
  std::optional<double> norm = {};
  std::optional<std::int64_t> image_side = {};
  std::optional<double> skipped_at = {};  // the loss scale after a step that overflowed
  std::optional<Staleness> staleness = {};
  std::optional<SharedWork> work = {};
};

class ReportedTraining {
 public:
  ReportedTraining(FolderLock* output, TrainingLength length, std::int64_t report_every,
                   const TrainingState* earlier = nullptr, LaterOutput past = LaterOutput::repeated,
                   std::unique_ptr<EventLog> events = nullptr, const nlohmann::json& epochs = nullptr)
      : length_(length), report_every_(report_every), counters_(earlier) {
    if (earlier != nullptr) progress_ = earlier->progress;
    if (output != nullptr) {
      results_.emplace(take_over_results(*output, earlier == nullptr ? nullptr : &earlier->progress,
                                         length_.steps() - progress_.step, past, {nlohmann::json::object(), epochs}));
    }
    counters_.start(results_ ? results_->best : BestTest());
    stream_ = std::make_unique<MetricsStream>(output, std::move(events));
    observers_.push_back(std::make_unique<ProgressLines>());
    observers_.push_back(std::make_unique<MetricsReports>(*stream_, nullptr));
  }

  // From here on, summary.json is written, too.
  void summarize(FolderLock& output, Split judging = Split::test,
                 const nlohmann::json& fields = nlohmann::json::object()) {
    observers_.push_back(std::make_unique<TrainingSummary>(output, std::move(results_->summary), counters_, judging,
                                                           [fields] { return fields; }));
  }

  // Does the step that follows on `steps` steps.
  void step(std::int64_t steps, const Metrics& metrics, const StepFacts& facts = {}) {
    progress_.step = steps + 1;
    counters_.add(metrics, progress_.step);
    StepResult result;
    result.step = steps;
    result.learning_rate = 0.1;
    result.metrics = metrics;
    result.skipped = facts.skipped_at.has_value();
    result.loss_scale = facts.skipped_at.value_or(1);
    const bool ends_stretch = progress_.step % report_every_ == 0 || length_.ends_epoch(progress_.step);
    const StepView view{view_,
                        result,
                        facts.waited_ms,
                        facts.norm,
                        facts.image_side,
                        ends_stretch,
                        facts.staleness ? &*facts.staleness : nullptr,
                        facts.work ? &*facts.work : nullptr};
    for (const auto& observer : observers_) observer->on_step(view);
    if (ends_stretch) counters_.end_stretch();
  }
  // A test after `steps` steps. Of several splits the last one judges.
  void test(std::int64_t steps, const std::vector<TestResult>& results) {
    progress_.step = steps;
    for (const TestResult& result : results) {
      counters_.add(result, steps);
      for (const auto& observer : observers_) observer->on_evaluation(view_, result);
    }
    progress_.tested_step = steps;
    counters_.judge_test();
    for (const auto& observer : observers_) observer->on_tested(view_);
  }
  void end(const TrainingOutcome& outcome = {}) {
    for (const auto& observer : observers_) observer->on_end(outcome);
  }

  MetricsStream& stream() { return *stream_; }
  const TrainingCounters& counters() const { return counters_; }
  const TrainingView& view() const { return view_; }

 private:
  TrainingLength length_;
  std::int64_t report_every_;
  TrainingProgress progress_;
  TrainingCounters counters_;
  std::string divergence_;
  TrainingView view_{length_, progress_, counters_, divergence_, {}, {}};
  std::optional<EarlierResults> results_;
  std::unique_ptr<MetricsStream> stream_;
  std::vector<std::unique_ptr<TrainingObserver>> observers_;
};

}  // namespace lockstep
