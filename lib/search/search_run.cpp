#include "search/search_run.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/error.hpp"
#include "base/io/append.hpp"
#include "base/log.hpp"
#include "base/system_failure.hpp"
#include "run/checkpoint_files.hpp"
#include "run/run_file.hpp"
#include "search/search_text.hpp"
#include "slurm/retry/text_cause.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr int look_again_ms = 200;

}  // namespace

ProgramOutput run_to_end(const std::vector<std::string>& words) {
  constexpr double most_seconds = 300;
  return run_within(most_seconds, words);
}

ProgramOutput run_within(double most_seconds, const std::vector<std::string>& words) {
  constexpr double notice_seconds = 10;
  constexpr std::size_t most_bytes = std::size_t{1} << 20;
  ChildProcess process(words, {});
  ProgramOutput output;
  const Stopwatch watch;
  bool has_told = false;
  std::size_t bytes = 0;
  const auto refuse = [&](Failure failure, std::string_view why) {
    process.kill_group();
    throw Error(failure, fmt::format("'{}' was killed, because it {}. Nothing was started. Call it yourself to "
                                     "see what it does.",
                                     shell_command(words), why));
  };
  for (std::optional<int> code; !code;) {
    pollfd wait{process.handle(), POLLIN, 0};
    ::poll(&wait, 1, look_again_ms);
    for (std::string& line : process.lines()) {
      bytes += line.size();
      output.lines.push_back(std::move(line));
    }
    code = process.exit_code();
    output.code = code.value_or(0);
    if (bytes > most_bytes) refuse(Failure::usage, "printed more than 1 MiB");
    if (!code && watch.seconds() > most_seconds) {
      refuse(Failure::other, fmt::format("did not end within {:.0f} s", most_seconds));
    }
    if (!code && watch.seconds() > notice_seconds && !std::exchange(has_told, true)) {
      log::info("waiting for '{}', for at most {:.0f} s.", shell_command(words), most_seconds);
    }
  }
  return output;
}

SearchRun::SearchRun(const Space& space, TrialCommands& commands, TrialPlaces places, SignalQueue& signals,
                     fs::path folder, SearchParts parts)
    : space_(space),
      commands_(commands),
      places_(std::move(places)),
      signals_(signals),
      folder_(std::move(folder)),
      parts_(parts),
      state_(space, folder_, parts) {}

fs::path SearchRun::exit_report_of(std::int64_t trial) const {
  return parts_.shared ? folder_.exit_report(trial, parts_.shared->lease_of(trial)) : folder_.exit_report(trial);
}

void SearchRun::write_result(const Order& order, std::int64_t steps, const TrialEnd& end) {
  const std::vector<Order> orders = state_.add_result(order, steps, end);
  if (!std::exchange(has_header_, true)) log::forwarded(table_header(space_));
  log::forwarded(table_row(space_, order, trials().at(order.trial), orders));
  if (has_failed(end)) {
    log::warning("trial {} has failed with code {} and counts as the worst: {}", order.trial, end.code, end.reason);
  }
}

// The questions that can be answered now, and those whose answers have arrived.
void SearchRun::take_answers() try {
  while (state_.custom() != nullptr && !is_stopping_) {
    const std::size_t open = state_.open_orders().size();
    const auto line = state_.custom()->next_answer(static_cast<std::int64_t>(open) < places_.at_once, open > 0);
    if (!line) return;
    state_.add_answer(*line);
  }
} catch (const Error& error) {
  obstacle_ = error;
  ask_to_stop("the searcher's program has failed");
}

bool SearchRun::is_open() const {
  return !state_.open_orders().empty() || (state_.custom() != nullptr && state_.custom()->is_open());
}

bool SearchRun::run() {
  while (!running_.empty() || (is_open() && !is_stopping_)) {
    take_answers();
    if (!is_stopping_) start_trials();
    if (running_.empty() && (is_stopping_ || !is_open())) break;
    show_progress();
    wait();
    take_signals();
    if (parts_.shared) look_for_lost_trials();
    take_ends();
  }
  if (obstacle_) throw Error(*obstacle_);
  if (is_open()) return false;
  if (repeated_ == 0) state_.finish();
  return true;
}

bool SearchRun::repeat(std::int64_t trial) {
  const TrialRecord& record = trials().at(trial);
  log::warning("'{}' is missing: trial {} is trained again up to step {}. Its result stays.",
               folder_.model(trial).string(), trial, record.steps);
  repeated_ = trial;
  state_.reopen({trial, record.rung, record.length});
  return run();
}

// Whether it may not run now: it runs alone, or the one that runs does.
bool SearchRun::must_wait(const Order& order) const {
  return !running_.empty() && (alone_.contains(order.trial) || alone_.contains(running_.begin()->first));
}

std::optional<Order> SearchRun::next_order() const {
  const std::vector<Order>& open = state_.open_orders();
  const auto next = std::ranges::find_if(open, [&](const Order& one) { return !running_.contains(one.trial); });
  return next == open.end() || must_wait(*next) ? std::nullopt : std::optional(*next);
}

void SearchRun::start_trials() {
  while (std::ssize(running_) < places_.at_once) {
    const std::optional<Order> order = parts_.shared ? take_shared_order() : next_order();
    if (!order) return;
    folder_.require_own_folder(order->trial);
    if (!parts_.shared && !watches_[order->trial].is_free(folder_.trial(order->trial), own_)) {
      if (std::exchange(waits_for_, order->trial) != order->trial) {
        const FolderHolder holder = holder_of(folder_.trial(order->trial));
        const bool is_known = holder.kind != FolderHolder::Kind::nobody;
        log::info("trial {} waits until '{}' is free: {} has it.", order->trial, folder_.trial(order->trial).string(),
                  is_known ? describe_lock_holder(holder.process) : "another process");
      }
      return;
    }
    std::optional<Descriptor> log = folder_.open_log(order->trial);
    if (!log) {
      if (std::exchange(waits_for_, order->trial) != order->trial) {
        log::info("trial {} waits until no process has '{}' open: an earlier command of it has not ended yet.",
                  order->trial, folder_.log(order->trial).string());
      }
      return decide(order->trial, [] {});
    }
    try {
      start(*order, std::move(*log));
    } catch (const Error& error) {
      if (error.failure() != Failure::usage) {
        obstacle_ = error;
        ask_to_stop(fmt::format("trial {} cannot go on", order->trial));
        return decide(order->trial, [] {});
      }
      const TrialEnd end{TrialEnd::Kind::ended, 0, error.exit_code(), error.what()};
      decide(order->trial, [&] { write_result(*order, 0, end); });
    }
  }
}

// A trial ends its command at each rung, and its next one begins when the journal has the result.
void SearchRun::require_no_later_checkpoint(const Order& order, std::int64_t steps) const {
  const fs::path folder = folder_.trial(order.trial);
  const auto newest = newest_checkpoint(folder / run_files::checkpoints);
  require(!newest || newest->step <= steps, Failure::bad_data,
          "'{}' is from step {}, but '{}' has no result of trial {} after step {} yet: lines are missing at its end. "
          "Restore the journal, or move '{}' elsewhere to train the trial again.",
          newest ? newest->path.string() : "", newest ? newest->step : 0, folder_.journal().string(), order.trial,
          steps, folder.string());
}

void SearchRun::start(const Order& order, Descriptor log) {
  const std::vector<OptionWord>& settings = trials().at(order.trial).settings;
  const TrialLength length = commands_.length(settings, order.length);
  require_no_later_checkpoint(order, length.steps);
  const std::size_t place = free_place();
  std::vector<std::string> words = places_.launches.empty() ? places_.launch : places_.launches[place];
  std::ranges::copy(commands_.words(settings, length, folder_.trial(order.trial), places_.threads),
                    std::back_inserter(words));
  if (parts_.events != nullptr && !space_.has_custom_loop()) {
    words.push_back(fmt::format("--tensorboard={}", parts_.events->training_folder(order.trial).string()));
  }
  const fs::path report = exit_report_of(order.trial);
  std::error_code ignored;
  fs::remove(report, ignored);
  append_whole(log, shell_command(words) + "\n");
  ::fcntl(log, F_SETFD, 0);  // this child keeps the lock
  std::map<std::string, std::string> variables = {{exit_report_variable, report.string()}};
  if (!places_.gpus.empty()) variables["CUDA_VISIBLE_DEVICES"] = places_.gpus[place];
  ChildProcess process(words, variables);
  ::fcntl(log, F_SETFD, FD_CLOEXEC);
  running_.emplace(order.trial, Running{std::move(process), order, length.steps, std::move(log), place, report});
  if (running_.size() == 1) return;
  for (auto& [number, trial] : running_) trial.was_alone = false;
}

std::size_t SearchRun::free_place() const {
  std::size_t place = 0;
  while (std::ranges::any_of(running_, [&](const auto& trial) { return trial.second.place == place; })) ++place;
  return place;
}

void SearchRun::wait() {
  std::vector<pollfd> waits = {{signals_.handle(), POLLIN, 0}};
  for (const auto& [number, trial] : running_) waits.push_back({trial.process.handle(), POLLIN, 0});
  if (state_.custom() != nullptr) waits.push_back({state_.custom()->handle(), POLLIN, 0});
  ::poll(waits.data(), waits.size(), look_again_ms);
}

void SearchRun::take_signals() {
  for (std::optional<Signal> signal = signals_.next(); signal; signal = signals_.next()) {
    if (signal->number == SIGCHLD) continue;
    const std::string request = fmt::format("received a request to stop ({})", ::strsignal(signal->number));
    std::exchange(was_asked_to_stop_, true) ? stop_at_once(request) : ask_to_stop(request);
  }
  kill_trials_that_stay();
}

void SearchRun::ask_to_stop(const std::string& why) {
  log::info("{}. The trials under way stop with a checkpoint.", why);
  is_stopping_ = true;
  for (const auto& [number, trial] : running_) trial.process.signal(SIGUSR1);
}

void SearchRun::stop_at_once(const std::string& why) {
  log::info("{} once more. The trials under way stop at once.", why);
  if (!since_second_request_) since_second_request_.emplace();
  for (const auto& [number, trial] : running_) trial.process.signal(SIGUSR1);
}

// A program of the user's may ignore signals.
void SearchRun::kill_trials_that_stay() const {
  constexpr double seconds_to_end = 5;
  if (!since_second_request_ || since_second_request_->seconds() < seconds_to_end) return;
  for (const auto& [number, trial] : running_) trial.process.kill_group();
}

void SearchRun::take_output(Running& trial, std::int64_t number) {
  for (const std::string& line : trial.process.lines()) {
    trial.last_lines.push_back(line);
    if (trial.last_lines.size() > lines_for_text_cause) trial.last_lines.pop_front();
    if (trial.is_lost || append_whole(trial.log, line + "\n")) continue;
    throw system_failure(fmt::format("cannot write the log of trial {}", number), errno, Access::writing);
  }
}

void SearchRun::take_ends() {
  for (auto trial = running_.begin(); trial != running_.end();) {
    take_output(trial->second, trial->first);
    const std::optional<int> code = trial->second.process.exit_code();
    if (!code) {
      ++trial;
      continue;
    }
    const Running ended = std::move(trial->second);
    trial = running_.erase(trial);
    decide(ended.order.trial, [&] { judge_end(ended, *code); });
  }
}

void SearchRun::judge_end(const Running& trial, int code) {
  const Order& order = trial.order;
  const std::vector<std::string> last_lines(trial.last_lines.begin(), trial.last_lines.end());
  const TrialEnd end = trial_end(space_, folder_.trial(order.trial), trial.steps, code, trial.exit_report, last_lines);
  // While the search stops, a failure may be due to that. The next run repeats the rest of the rung.
  if (end.kind == TrialEnd::Kind::stopped || (has_failed(end) && is_stopping_)) {
    if (!is_stopping_) ask_to_stop(fmt::format("trial {} was stopped: {}", order.trial, end.reason));
  } else if (has_failed(end)) {
    take_failure(trial, end);
  } else if (order.trial == repeated_) {
    state_.close(order);
  } else {
    write_result(order, trial.steps, end);
  }
}

void SearchRun::take_failure(const Running& trial, const TrialEnd& end) {
  using Kind = TrialEnd::Kind;
  const Order& order = trial.order;
  const bool lacked_memory = end.kind == Kind::no_memory || end.kind == Kind::killed;
  if (lacked_memory && !trial.was_alone) alone_.insert(order.trial);
  const bool may_go_on = end.kind != Kind::prevented && order.trial != repeated_;
  if (end.kind == Kind::no_memory && !trial.was_alone) {
    log::warning("trial {} ran out of memory beside other trials. It is repeated alone: {}", order.trial, end.reason);
  } else if (may_go_on && end.kind != Kind::ended && end.kind != Kind::no_memory &&
             trials().at(order.trial).restarts < space_.max_restarts) {
    restart(order, end);
  } else if (!may_go_on || end.kind == Kind::bad_place) {
    give_up(order, end);
  } else {
    write_result(order, trial.steps, end);
  }
}

void SearchRun::restart(const Order& order, const TrialEnd& end) {
  state_.add_restart(order, end);
  log::warning("trial {} has failed with code {} and is restarted ({} of {}): {}", order.trial, end.code,
               trials().at(order.trial).restarts, space_.max_restarts, end.reason);
}

// Stops the search because of an end that is not the trial's fault. Nothing is decided about the trial.
void SearchRun::give_up(const Order& order, const TrialEnd& end) {
  obstacle_.emplace(failure_of_code(end.code),
                    fmt::format("the search stops, because trial {} cannot go on: {}{} Nothing is decided about it. "
                                "Remove the cause, and the same command continues the search.",
                                order.trial, end.reason, end.reason.ends_with('.') ? "" : "."));
  ask_to_stop(fmt::format("trial {} cannot go on", order.trial));
}

void SearchRun::show_progress() {
  if (!log::is_terminal()) return;
  std::string numbers;
  for (const auto& [number, trial] : running_) numbers += fmt::format(" {}", number);
  std::string best;
  if (const std::optional<std::int64_t> trial = best_trial(space_, trials())) {
    best = fmt::format("  best {} (trial {})", metric_text(space_, *trials().at(*trial).metric), *trial);
  }
  const auto judged =
      std::ranges::count_if(trials(), [](const auto& trial) { return trial.second.metric || trial.second.code != 0; });
  log::progress(fmt::format("search  {} of {} trials have results{}  {}  running:{}", judged,
                            space_.searcher.max_trials, best, format_duration(watch_.seconds()), numbers));
}

}  // namespace lockstep
