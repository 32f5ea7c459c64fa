#include "train/custom/custom_run.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/text/json_text.hpp"
#include "base/text/number.hpp"
#include "base/text/printable.hpp"
#include "files/checkpoint/checkpoint_writer.hpp"
#include "files/tensor_file.hpp"
#include "run/metrics.hpp"
#include "run/run_file.hpp"
#include "run/run_state.hpp"
#include "runtime/failure/contained_failure.hpp"
#include "runtime/failure/failure_report.hpp"
#include "runtime/watch/rank_status.hpp"
#include "train/opening/earlier_results.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// Readers of the folder expect epochs: a custom run counts as one.
constexpr int epochs = 1;

std::int64_t step_of_custom(const fs::path& path, std::string& image) {
  return parse_custom_checkpoint(path, image).steps_completed;
}

// Throws Error(usage) that names all differences. `earlier` comes from a checkpoint, so it is untrusted.
void require_same_options(const nlohmann::json& earlier, const nlohmann::json& now, const fs::path& checkpoint) {
  nlohmann::json all = earlier;
  all.update(now);
  std::string differences;
  const auto shown = [](const nlohmann::json& value) {
    return value.is_null() ? std::string("absent") : printable(json_text(value));
  };
  for (const auto& [name, value] : all.items()) {
    const nlohmann::json before = earlier.value(name, nlohmann::json());
    const nlohmann::json after = now.value(name, nlohmann::json());
    if (before == after) continue;
    differences += fmt::format("{}--{} {}, but now it is {}", differences.empty() ? "" : "; with ", printable(name),
                               shown(before), shown(after));
  }
  require(differences.empty(), Failure::usage,
          "the checkpoint '{}' was made with {}. A resumed run keeps its options. Use the earlier values, another "
          "--output, or --resume never.",
          checkpoint.string(), differences);
}

}  // namespace

CustomRun::CustomRun(const Session& session, CustomRunOptions options)
    : session_(session), options_(std::move(options)), scope_(session, options_.time_limit_seconds) {
  output_ = take_output_folder(world(), scope_.stops, options_.output);
  scope_.stops.wait_for_rank_0([&](const std::function<void()>& look) {
    auto lock = std::make_shared<FolderLock>(options_.output / run_files::checkpoints, "--output", this_lock_holder(),
                                             FolderLock::default_heartbeat, look);
    lock->lie_within(output_);
    checkpoints_.emplace(std::move(lock), KeepRule{options_.keep_latest, 0}, step_of_custom);
  });
  NamedArrays arrays_of_rank_0;
  std::string image = from_rank_0(world(), [&] { return restored_image(arrays_of_rank_0); });
  restored_from_ = world().broadcast(restored_from_.string(), 0);
  keeps_results_ = world().max(checkpoints_ && checkpoints_->has(restored_from_) ? 1 : 0) > 0;
  on_all_ranks(world(), [&] {
    if (image.empty()) return;
    restored_ = parse_custom_checkpoint(restored_from_, image);
    if (!arrays_of_rank_0.empty()) restored_.arrays = std::move(arrays_of_rank_0);
    require_same_options(restored_.options, options_.of_program, restored_from_);
    require(restored_.steps_completed <= options_.max_steps, Failure::usage,
            "the checkpoint '{}' is from step {}, but --max-steps is {}. Raise --max-steps, or use --resume never.",
            restored_from_.string(), restored_.steps_completed, options_.max_steps);
  });
  saved_step_ = last_step_ = restored_.steps_completed;
  scope_.stops.end_start_if_asked();
}

void CustomRun::begin() {
  scope_.stops.end_start_if_asked();
  on_rank_0(world(), [this] { take_over(); });
  failure_report::own_summary();
}

// The bytes of the checkpoint to resume from; empty: start from the beginning.
std::string CustomRun::find() {
  if (options_.resume == "never") return "";
  if (options_.resume != "auto") {
    restored_from_ = options_.resume;
    return read_file(restored_from_, tensor_file_limits::file_bytes);
  }
  std::optional<CheckpointFolder::Found> newest = checkpoints_->newest_valid();
  if (!newest) return "";
  restored_from_ = newest->path;
  return std::move(newest->image);
}

// What find() returns. If only rank 0 gets the arrays, they are moved to `arrays`.
std::string CustomRun::restored_image(NamedArrays& arrays) {
  std::string image = find();
  if (image.empty() || options_.restored_arrays == RestoredArrays::on_all_ranks) return image;
  CustomCheckpoint checkpoint = parse_custom_checkpoint(restored_from_, image);
  arrays = std::exchange(checkpoint.arrays, {});
  const std::vector<std::byte> rest = checkpoint_image(checkpoint);
  return {reinterpret_cast<const char*>(rest.data()), rest.size()};
}

void CustomRun::take_over() {
  const bool is_new = restored_from_.empty();
  const bool is_named = options_.resume != "auto" && options_.resume != "never";
  std::string named;  // it may be of another folder
  if (is_named) named = read_file(restored_from_, tensor_file_limits::file_bytes);
  constexpr std::int64_t no_step = -1;
  const std::int64_t resumed = keeps_results_ ? saved_step_ : no_step;
  const LaterOutput past = checkpoints_->has_after(resumed) ? LaterOutput::set_aside : LaterOutput::repeated;
  const TrainingProgress progress{.step = saved_step_, .tested_step = saved_step_};
  const auto take_results = [&] {
    EarlierResults earlier =
        take_over_results(*output_, keeps_results_ ? &progress : nullptr, max_steps() - saved_step_, past,
                          {.recipe = {{"options", options_.of_program}}, .epochs = epochs});
    summary_.emplace(std::move(earlier.summary));
  };
  if (is_named) {
    checkpoints_->resume_with_copy(resumed, saved_step_, std::as_bytes(std::span(named)), take_results);
  } else {
    take_results();
    checkpoints_->resume_after(resumed, {});
  }
  if (keeps_results_) {
    const std::vector<std::string> listed = summary_->results();
    results_ = {listed.begin(), listed.end()};
    read_last_validation();
  }
  const bool was_done = !summary_->fields().empty() && !summary_->is_unfinished();
  is_left_whole_ = keeps_results_ && was_done && saved_step_ == max_steps();
  metrics_.emplace(*output_);
  if (!is_left_whole_) write_summary(RunState::running);
  if (is_new) return log::info("starting from the beginning, up to step {}", max_steps());
  log::info("resuming from '{}': step {} of {}", restored_from_.string(), saved_step_, max_steps());
}

// Of the lines before the checkpoint, which are left.
void CustomRun::read_last_validation() {
  std::string last;
  read_metrics(options_.output, [&](const NumberedLine& line) {
    if (line.content && line.content->kind == MetricsLine::Kind::validation) last = line.text;
  });
  const nlohmann::json fields = try_parse_json(last);
  if (!fields.is_object()) return;
  validation_ = nlohmann::json::object();
  for (const auto& [name, value] : fields.items()) {
    if (name != "kind" && !is_common_field(name)) validation_[name] = value;
  }
}

void CustomRun::require_step(std::int64_t steps, const char* what) const {
  require(steps >= 1 && steps <= max_steps(), Failure::usage,
          "the program {} after {} steps, but a run has 1 to {} steps (--max-steps). Correct the program's call.", what,
          steps, max_steps());
}

void CustomRun::report_training_metrics(std::int64_t steps_completed, const MetricValues& metrics) {
  report("training", steps_completed, metrics);
}

void CustomRun::report_validation_metrics(std::int64_t steps_completed, const MetricValues& metrics) {
  report("validation", steps_completed, metrics);
  validation_ = metrics;
}

void CustomRun::report(const char* kind, std::int64_t steps, const MetricValues& metrics) {
  require(world().rank() == 0, Failure::usage,
          "rank {} has reported {} metrics after step {}. Only rank 0 may report. Call it on rank 0 only.",
          world().rank(), kind, steps);
  require_step(steps, "has reported metrics");
  nlohmann::json line = {
      {"kind", kind}, {"epoch", epochs}, {"step", steps}, {"steps", max_steps()}, {"seconds", seconds()}};
  std::string text = fmt::format("step {}/{}  {}", steps, max_steps(), kind);
  for (const auto& [name, value] : metrics) {
    require(is_metric_name(name) && !line.contains(name), Failure::usage,
            "'{}' cannot be the name of a metric. Names have 1 to 64 letters, digits, '_', '-' and '.', and differ "
            "from kind, epoch, step, steps and seconds. Correct the program's call.",
            printable(name));
    line[name] = std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
    text += fmt::format("  {} {:.6g}", name, value);
  }
  const std::string json = json_text(line);
  require(parse_metrics_line(json).has_value(), Failure::usage,
          "{} metrics do not fit a line of metrics.jsonl, which has at most 64 KiB. Report fewer.", metrics.size());
  is_left_whole_ = false;
  metrics_->append(json);
  failure_report::set_step(steps - 1);
  last_step_ = std::max(last_step_, steps);
  log::info(std::string_view(text));
}

void CustomRun::save_checkpoint(std::int64_t steps_completed, const NamedArrays& arrays,
                                const nlohmann::json& metadata) {
  std::vector<StreamedArray> streamed;
  for (const auto& [name, values] : arrays) streamed.push_back(streamed_array(name, values));
  stream_checkpoint(steps_completed, streamed, metadata);
}

void CustomRun::stream_checkpoint(std::int64_t steps_completed, std::span<const StreamedArray> arrays,
                                  const nlohmann::json& metadata) {
  on_rank_0(world(), [&] {
    require_step(steps_completed, "has saved a checkpoint");
    require(steps_completed >= saved_step_, Failure::usage,
            "the program has saved a checkpoint after step {}, but the last one is from step {}. Save checkpoints in "
            "the order of their steps.",
            steps_completed, saved_step_);
  });
  if (steps_completed > saved_step_) {
    const Stopwatch watch;
    failure_ = stream(fmt::format("the checkpoint of step {}", steps_completed),
                      {steps_completed, {}, metadata, seconds(), options_.of_program}, arrays,
                      [&](const WriteContent& content) { checkpoints_->write(steps_completed, content); });
    last_step_ = std::max(last_step_, steps_completed);
    checkpoint_seconds_ = std::max(checkpoint_seconds_, watch.seconds());
    if (failure_.empty()) saved_step_ = steps_completed;
  }
  failure_report::set_step(steps_completed - 1);
}

// Rank 0 calls `write` with what writes the content of the file. The other ranks take part. Returns why `what` was not
// written, on all ranks; empty: it was.
std::string CustomRun::stream(const std::string& what, const CustomCheckpoint& checkpoint,
                              std::span<const StreamedArray> arrays,
                              const std::function<void(const WriteContent&)>& write) {
  std::string reason;
  const WriteContent content = [&](UnpublishedFile* file) { stream_custom_checkpoint(file, checkpoint, arrays); };
  const Phase before = rank_status::record().phase;
  rank_status::enter(world().rank() == 0 ? Phase::saving : Phase::gathering);
  ContainedFailure failure(world());
  failure.run([&] {
    if (world().rank() == 0) {
      reason = write_or_warn(what, [&] { write(content); });
    } else {
      content(nullptr);
    }
  });
  failure.agree(Phase::meeting);
  rank_status::enter(before);
  return world().broadcast(reason, 0);
}

// Before the run writes the file `name` for the first time: lists it in summary.json.
void CustomRun::claim_result(const std::string& name) {
  require(is_result_name(name), Failure::usage,
          "'{}' cannot be the name of a result, which is a file of the program's own in the output folder itself. "
          "Correct the program's call.",
          printable(name));
  output_->require_held();
  if (!results_.insert(name).second) return;
  is_left_whole_ = false;
  const bool may_be_foreign = !keeps_results_ && !is_absent(result(name));
  if (may_be_foreign) {
    if (!aside_) aside_.emplace(*output_);
    aside_->move(name);
    log::warning("'{}' of an earlier run is moved to '{}'.", result(name).string(), aside_->path().string());
  }
  write_summary(RunState::running);
}

void CustomRun::write_result(const std::string& name, std::span<const std::byte> bytes) {
  claim_result(name);
  write_file_atomically(result(name), bytes);
}

std::string CustomRun::stream_result(const std::string& name, const CustomCheckpoint& about,
                                     std::span<const StreamedArray> arrays) {
  on_rank_0(world(), [&] { claim_result(name); });
  const auto write = [&](const WriteContent& content) {
    stream_file(
        result(name), [this] { output_->require_held(); }, content);
  };
  return stream(fmt::format("'{}'", result(name).string()), about, arrays, write);
}

bool CustomRun::should_preempt() {
  scope_.stops.note_step(since_look_.seconds());
  since_look_ = Stopwatch();
  if (!has_asked_) has_asked_ = scope_.stops.must_ask({checkpoint_seconds_, false});
  const Phase before = rank_status::record().phase;
  rank_status::enter(Phase::meeting);
  is_preempted_ = world().max(has_asked_ ? 1 : 0) > 0;
  rank_status::enter(before);
  return is_preempted_;
}

Ending CustomRun::conclude() {
  rank_status::enter(Phase::saving);
  if (is_preempted_) return preempted();
  on_rank_0(world(), [this] {
    metrics_->finish();
    if (!is_left_whole_) write_summary(failure_.empty() ? RunState::done : RunState::failed);
    log::info("done after step {}", last_step_);
  });
  if (failure_.empty()) return {};
  return {
      static_cast<int>(Failure::other),
      fmt::format("all steps are done, but the last checkpoint could not be written: {} {}", failure_, what_follows())};
}

std::string CustomRun::what_follows() const {
  if (saved_step_ == 0) return "The same command starts from the beginning.";
  return fmt::format("The {} resumes from step {}.", same_command(options_.resume), saved_step_);
}

Ending CustomRun::preempted() {
  const std::string reason = scope_.stops.reason();
  on_rank_0(world(), [this] {
    metrics_->flush();
    if (!is_left_whole_) write_summary(RunState::stopped);
  });
  if (!failure_.empty()) {
    return {static_cast<int>(Failure::other),
            fmt::format("stopped after step {} ({}), but its checkpoint could not be written: {} {}", last_step_,
                        reason, failure_, what_follows())};
  }
  if (saved_step_ == 0) {
    return {
        static_cast<int>(Failure::other),
        fmt::format("stopped before the first checkpoint ({}). The same command starts from the beginning.", reason)};
  }
  const std::string sentence = fmt::format(
      "stopped with the checkpoint of step {} of {} in '{}' ({}). The {} resumes from it.", saved_step_, max_steps(),
      (options_.output / run_files::checkpoints).string(), reason, same_command(options_.resume));
  log::info_to_terminal(sentence);
  return {static_cast<int>(Failure::stopped_early), sentence};
}

void CustomRun::write_summary(RunState state) {
  if (state == RunState::done) return summary_->write(state, summary_fields());
  write_or_warn(fmt::format("'{}'", result(run_files::summary).string()),
                [&] { summary_->write(state, summary_fields()); });
}

// apps/files.md documents the fields.
nlohmann::json CustomRun::summary_fields() const {
  const Invocation& invocation = session_.invocation;
  const std::vector<std::string>& words = invocation.command_line;
  return {{"model", words.empty() ? "" : fs::path(words.front()).filename().string()},
          {"command_line", words},
          {"commit", invocation.commit},
          {"build", invocation.build},
          {"recipe", {{"epochs", epochs}, {"options", options_.of_program}}},
          {"run", {{"output", options_.output.string()}, {"resume", options_.resume}}},
          {"ranks", world().size()},
          {"step", last_step_},
          {"steps", max_steps()},
          {"epochs", epochs},
          {"steps_per_epoch", max_steps()},
          {"validation_metrics", validation_},
          {"results", results_},
          {"seconds", scope_.since_start.seconds()}};
}

}  // namespace lockstep
