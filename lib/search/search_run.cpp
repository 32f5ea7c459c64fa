#include "search/search_run.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iterator>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "base/io/append.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/system_failure.hpp"
#include "base/text/json_text.hpp"
#include "base/text/printable.hpp"
#include "run/run_file.hpp"
#include "search/search_text.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr int look_again_ms = 200;
constexpr int journal_version = 1;

// Appends to the log of a trial. The file is locked until the last process that has the descriptor ends. Nothing if an
// earlier process of the trial still has it: one of a killed search, which is stopping. Throws as system_failure().
std::optional<Descriptor> open_log(const fs::path& file) {
  Descriptor log(create_new_file(file.c_str()));
  constexpr int flags = O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;  // waits for no pipe's reader
  // careful-open: for a file of an earlier attempt, in a folder that this process has locked
  if (log < 0 && errno == EEXIST) log = Descriptor(::open(file.c_str(), flags));
  if (log >= 0 && ::flock(log, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return std::nullopt;
  if (log >= 0) return log;
  throw system_failure(fmt::format("cannot write '{}'", file.string()), errno, Access::writing, "the trial's output");
}

// The first field in which two spaces differ.
std::string difference(const nlohmann::json& recorded, const nlohmann::json& now) {
  for (const auto& [name, value] : now.items()) {
    if (!recorded.is_object() || recorded.value(name, nlohmann::json()) != value) return name;
  }
  return "fields that this one has not";
}

}  // namespace

ProgramOutput run_to_end(const std::vector<std::string>& words) {
  ChildProcess process(words, {});
  ProgramOutput output;
  for (std::optional<int> code; !code;) {
    pollfd wait{process.handle(), POLLIN, 0};
    ::poll(&wait, 1, look_again_ms);
    for (std::string& line : process.lines()) output.lines.push_back(std::move(line));
    code = process.exit_code();
    output.code = code.value_or(0);
  }
  return output;
}

SearchRun::SearchRun(const Space& space, TrialCommands& commands, TrialPlaces places, SignalQueue& signals,
                     fs::path folder)
    : space_(space),
      commands_(commands),
      places_(std::move(places)),
      signals_(signals),
      folder_(std::move(folder)),
      journal_(folder_ / "search.jsonl"),
      searcher_(space.searcher) {
  replay();
}

fs::path SearchRun::folder_of(std::int64_t trial) const { return folder_ / fmt::format("trial-{}", trial); }
fs::path SearchRun::exit_report_of(std::int64_t trial) const {
  return folder_ / fmt::format("trial-{}.end.json", trial);
}

nlohmann::json SearchRun::json_of(const std::vector<Order>& orders) const {
  nlohmann::json list = nlohmann::json::array();
  for (const Order& order : orders) {
    list.push_back({{"trial", order.trial}, {"rung", order.rung + 1}, {"length", order.length}});
    if (order.rung == 0) list.back()["settings"] = trial_settings(space_, order.trial);
  }
  return list;
}

void SearchRun::take_orders(const std::vector<Order>& orders) {
  for (const Order& order : orders) {
    if (order.rung == 0) trials_[order.trial].settings = trial_settings(space_, order.trial);
    open_.push_back(order);
  }
  // Promotions come first, so that good trials end early.
  std::ranges::sort(
      open_, [](const Order& a, const Order& b) { return a.rung != b.rung ? a.rung > b.rung : a.trial < b.trial; });
}

void SearchRun::replay() {
  const std::vector<Order> first = searcher_.start();
  nlohmann::json header = {{"search", journal_version}, {"space", space_.content}, {"orders", json_of(first)}};
  take_orders(first);
  if (journal_.lines().empty()) {
    journal_.append(header);
    return;
  }
  const nlohmann::json& recorded = journal_.lines().front();
  require(recorded.value("space", nlohmann::json()) == space_.content, Failure::usage,
          "'{}' holds a search of another space ('{}' differs). Choose another --output, or restore the space file.",
          folder_.string(), difference(recorded.value("space", nlohmann::json()), space_.content));
  require(recorded == header, Failure::bad_data,
          "'{}', line 1 has other decisions than this version of search makes. Continue with the version that started "
          "it, or choose another --output.",
          journal_.path().string());
  for (std::size_t line = 1; line < journal_.lines().size(); ++line) replay_line(journal_.lines()[line], line + 1);
  log::info("continuing the search in '{}': {} results are known.", folder_.string(), journal_.lines().size() - 1);
}

void SearchRun::replay_line(const nlohmann::json& line, std::size_t number) {
  const std::int64_t trial = count_in(line, "trial").value_or(0);
  const std::int64_t rung = count_in(line, "rung").value_or(0);
  const auto order = std::ranges::find_if(
      open_, [&](const Order& one) { return one.trial == trial && static_cast<std::int64_t>(one.rung) + 1 == rung; });
  const std::optional<double> metric = number_in(line, "metric");
  const int code = static_cast<int>(std::min<std::int64_t>(count_in(line, "code").value_or(0), 255));
  bool is_known = order != open_.end();
  if (is_known && line.contains("restart")) {
    ++trials_[trial].restarts;
    return;
  }
  if (is_known) {
    const Order done = *order;
    open_.erase(order);
    const TrialEnd end{metric ? TrialEnd::Kind::reached : TrialEnd::Kind::ended, metric.value_or(0), code,
                       printable(text_in(line, "reason"))};
    const std::vector<Order> orders = record(done, count_in(line, "steps").value_or(0), end);
    is_known = line.value("orders", nlohmann::json()) == json_of(orders);
    take_orders(orders);
  }
  require(is_known, Failure::bad_data,
          "'{}', line {} has other decisions than this version of search makes. Continue with the version that started "
          "it, or choose another --output.",
          journal_.path().string(), number);
}

// Returns the decisions that follow.
std::vector<Order> SearchRun::record(const Order& order, std::int64_t steps, const TrialEnd& end) {
  TrialRecord& trial = trials_.at(order.trial);
  if (end.kind != TrialEnd::Kind::reached) {
    trial.code = end.code;
    trial.reason = end.reason;
    return searcher_.report(order.trial, std::nullopt);
  }
  trial.rung = order.rung;
  trial.steps = steps;
  trial.metric = end.metric;
  return searcher_.report(order.trial, space_.smaller_is_better ? end.metric : -end.metric);
}

void SearchRun::write_result(const Order& order, std::int64_t steps, const TrialEnd& end) {
  const std::vector<Order> orders = record(order, steps, end);
  std::erase(open_, order);
  nlohmann::json line = {{"trial", order.trial}, {"rung", order.rung + 1}, {"orders", json_of(orders)}};
  if (end.kind == TrialEnd::Kind::reached) {
    line["steps"] = steps;
    line["metric"] = end.metric;
  } else {
    line["code"] = end.code;
    line["reason"] = end.reason;
  }
  journal_.append(line);
  if (!std::exchange(has_header_, true)) log::forwarded(table_header(space_));
  log::forwarded(table_row(space_, order, trials_.at(order.trial), orders));
  if (end.kind != TrialEnd::Kind::reached) {
    log::warning("trial {} has failed with code {} and counts as the worst: {}", order.trial, end.code, end.reason);
  }
  take_orders(orders);
}

bool SearchRun::run() {
  while (!running_.empty() || (!open_.empty() && !is_stopping_)) {
    if (!is_stopping_) start_trials();
    if (running_.empty() && open_.empty()) break;
    show_progress();
    wait();
    take_signals();
    take_ends();
  }
  return open_.empty();
}

void SearchRun::start_trials() {
  while (std::ssize(running_) < places_.at_once) {
    const auto next = std::ranges::find_if(open_, [&](const Order& one) { return !running_.contains(one.trial); });
    if (next == open_.end()) return;
    const Order order = *next;
    fs::path log_file = folder_of(order.trial);
    std::optional<Descriptor> log = open_log(log_file += ".log");
    if (!log) {
      if (std::exchange(waits_for_, order.trial) != order.trial) {
        log::info("trial {} waits for its earlier command, which is stopping.", order.trial);
      }
      return;
    }
    try {
      start(order, std::move(*log));
    } catch (const Error& error) {
      if (error.failure() != Failure::usage) throw;
      write_result(order, 0, {TrialEnd::Kind::ended, 0, error.exit_code(), error.what()});
    }
  }
}

void SearchRun::start(const Order& order, Descriptor log) {
  const std::vector<OptionWord>& settings = trials_.at(order.trial).settings;
  const TrialLength length = commands_.length(settings, order.length);
  std::vector<std::string> words = places_.launch;
  std::ranges::copy(commands_.words(settings, length, folder_of(order.trial), places_.threads),
                    std::back_inserter(words));
  const fs::path report = exit_report_of(order.trial);
  std::error_code ignored;
  fs::remove(report, ignored);
  append_whole(log, shell_command(words) + "\n");
  ::fcntl(log, F_SETFD, 0);  // this child keeps the lock
  const std::size_t place = free_place();
  std::map<std::string, std::string> variables = {{exit_report_variable, report.string()}};
  if (!places_.gpus.empty()) variables["CUDA_VISIBLE_DEVICES"] = places_.gpus[place];
  ChildProcess process(words, variables);
  ::fcntl(log, F_SETFD, FD_CLOEXEC);
  running_.emplace(order.trial, Running{std::move(process), order, length.steps, std::move(log), place});
}

std::size_t SearchRun::free_place() const {
  std::size_t place = 0;
  while (std::ranges::any_of(running_, [&](const auto& trial) { return trial.second.place == place; })) ++place;
  return place;
}

void SearchRun::wait() {
  std::vector<pollfd> waits = {{signals_.handle(), POLLIN, 0}};
  for (const auto& [number, trial] : running_) waits.push_back({trial.process.handle(), POLLIN, 0});
  ::poll(waits.data(), waits.size(), look_again_ms);
}

void SearchRun::take_signals() {
  for (std::optional<Signal> signal = signals_.next(); signal; signal = signals_.next()) {
    if (signal->number != SIGCHLD)
      ask_to_stop(fmt::format("received a request to stop ({})", ::strsignal(signal->number)));
  }
}

void SearchRun::ask_to_stop(const std::string& why) {
  log::info("{}. The trials under way stop with a checkpoint.", why);
  is_stopping_ = true;
  for (const auto& [number, trial] : running_) trial.process.signal(SIGUSR1);
}

void SearchRun::take_output(Running& trial, std::int64_t number) {
  for (const std::string& line : trial.process.lines()) {
    if (append_whole(trial.log, line + "\n")) continue;
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
    take_end(ended, *code);
  }
}

void SearchRun::take_end(const Running& trial, int code) {
  const Order& order = trial.order;
  const TrialEnd end = trial_end(space_, folder_of(order.trial), trial.steps, code, exit_report_of(order.trial));
  const bool has_failed = end.kind == TrialEnd::Kind::failed || end.kind == TrialEnd::Kind::ended;
  // While the search stops, a failure may be due to that. The next run repeats the rest of the rung.
  if (end.kind == TrialEnd::Kind::stopped || (has_failed && is_stopping_)) {
    if (!is_stopping_) ask_to_stop(fmt::format("trial {} was stopped: {}", order.trial, end.reason));
    return;
  }
  std::int64_t& restarts = trials_.at(order.trial).restarts;
  if (end.kind != TrialEnd::Kind::failed || restarts >= space_.max_restarts) {
    write_result(order, trial.steps, end);
    return;
  }
  ++restarts;
  journal_.append({{"trial", order.trial},
                   {"rung", order.rung + 1},
                   {"restart", restarts},
                   {"code", end.code},
                   {"reason", end.reason}});
  log::warning("trial {} has failed with code {} and is restarted ({} of {}): {}", order.trial, end.code, restarts,
               space_.max_restarts, end.reason);
}

void SearchRun::show_progress() {
  if (!log::is_terminal()) return;
  std::string numbers;
  for (const auto& [number, trial] : running_) numbers += fmt::format(" {}", number);
  std::string best;
  if (const std::optional<std::int64_t> trial = best_trial(space_, trials_)) {
    best = fmt::format("  best {} (trial {})", metric_text(space_, *trials_.at(*trial).metric), *trial);
  }
  log::progress(fmt::format("search  {} of {} trials begun{}  {}  running:{}", trials_.size(),
                            space_.searcher.max_trials, best, format_duration(watch_.seconds()), numbers));
}

void keep_best_model(const fs::path& trial_folder, const fs::path& folder) {
  const RegularFile model = open_to_read(trial_folder / "model.h5");
  UnpublishedFile copy(folder / "best.h5");
  constexpr std::size_t piece = std::size_t{1} << 20;
  for (std::size_t place = 0; place < model.bytes(); place += piece) {
    const std::string bytes = read_at(model, place, std::min(piece, model.bytes() - place));
    copy.append(std::as_bytes(std::span(bytes)));
  }
  copy.publish([] {});
}

}  // namespace lockstep
