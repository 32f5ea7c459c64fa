#include "search/search_state.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/text/printable.hpp"
#include "run/run_file.hpp"
#include "search/space/recorded_space.hpp"

namespace lockstep {
namespace {

constexpr int journal_version = 1;

}  // namespace

SearchState::SearchState(const Space& space, const SearchFolder& folder, SearchParts parts)
    : space_(space),
      lock_(parts.lock),
      shared_(parts.shared),
      decision_(shared_ ? shared_->lock_journal() : nullptr),
      journal_(folder.journal()),
      searcher_(is_continued() ? with_recorded_concurrency(space.searcher, recorded_space()) : space.searcher),
      custom_(space.searcher.kind == SearcherKind::custom ? std::make_unique<CustomSearcher>(space, folder.path())
                                                          : nullptr),
      events_(parts.events) {
  replay(folder);
  end_decision();
}

void SearchState::begin_decision() {
  decision_ = shared_->lock_journal();
  for (const nlohmann::json& line : journal_.read_new()) replay_line(line);
}

void SearchState::append(nlohmann::json line) {
  ++line_count_;
  if (lock_ != nullptr) lock_->require_held();
  if (shared_) {
    decision_->require_held();
    line["line"] = line_count_;
  }
  journal_.append(line);
}

nlohmann::json SearchState::recorded_space() const { return journal_.lines().front().value("space", nlohmann::json()); }

nlohmann::json SearchState::json_of(const std::vector<Order>& orders) const {
  nlohmann::json list = nlohmann::json::array();
  for (const Order& order : orders) {
    list.push_back({{"trial", order.trial}, {"rung", order.rung + 1}, {"length", order.length}});
    if (order.rung == 0) list.back()["settings"] = settings_of(order.trial);
  }
  return list;
}

std::vector<OptionWord> SearchState::settings_of(std::int64_t trial) const {
  return custom_ ? custom_->settings_of(trial) : trial_settings(space_, trial);
}

void SearchState::add(const std::vector<Order>& orders) {
  for (const Order& order : orders) {
    const auto [place, is_new] = trials_.try_emplace(order.trial);
    TrialRecord& trial = place->second;
    if (is_new) trial.settings = settings_of(order.trial);
    if (is_new && events_ != nullptr) events_->start(order.trial, trial.settings);
    if (!custom_) trial.bracket = searcher_.bracket_of(order.trial);
    trial.ahead = order.rung;
    open_.push_back(order);
  }
  // Promotions come first, so that good trials end early.
  std::ranges::sort(
      open_, [](const Order& a, const Order& b) { return a.rung != b.rung ? a.rung > b.rung : a.trial < b.trial; });
}

void SearchState::replay(const SearchFolder& folder) {
  const std::vector<Order> first = custom_ ? std::vector<Order>() : searcher_.start();
  nlohmann::json header = {{"search", journal_version}, {"space", space_.content}, {"orders", json_of(first)}};
  add(first);
  if (!is_continued()) {
    folder.require_no_trials();
    append(header);
    return;
  }
  const std::string difference = difference_in_spaces(recorded_space(), space_.content);
  require(difference.empty(), Failure::usage,
          "'{}' holds a search of another space ('{}' differs). Choose another --output, or call search with the "
          "earlier file and options.",
          folder.path().string(), difference);
  header["space"] = recorded_space();
  nlohmann::json recorded = journal_.lines().front();
  recorded.erase("line");
  require(recorded == header, Failure::bad_data,
          "'{}', line 1 has other decisions than this version of search makes. Continue with the version that started "
          "it, or choose another --output.",
          journal_.path().string());
  line_count_ = 1;
  for (std::size_t line = 1; line < journal_.lines().size(); ++line) replay_line(journal_.lines()[line]);
  log::info("continuing the search in '{}': {} results are known.", folder.path().string(),
            std::ranges::count_if(journal_.lines(), [](const auto& line) {
              return line.contains("orders") && !line.contains("ask");
            }) - 1);
  require_folders(folder);
}

void SearchState::require_folders(const SearchFolder& folder) const {
  for (const auto& [number, trial] : trials_) folder.require_own_folder(number);
  for (const Order& order : open_) {
    if (order.rung == 0 || !is_absent(folder.trial(order.trial))) continue;
    log::warning("'{}' is missing: trial {} is trained from the start again. Its results stay.",
                 folder.trial(order.trial).string(), order.trial);
  }
}

void SearchState::replay_line(const nlohmann::json& line) {
  if (!is_next_line(journal_.path(), line, line_count_)) return;
  ++line_count_;
  const std::int64_t trial = count_in(line, "trial").value_or(0);
  const std::int64_t rung = count_in(line, "rung").value_or(0);
  const auto order = std::ranges::find_if(
      open_, [&](const Order& one) { return one.trial == trial && static_cast<std::int64_t>(one.rung) + 1 == rung; });
  const std::optional<double> metric = finite_number_in(line, "metric");
  const int code = static_cast<int>(std::min<std::int64_t>(count_in(line, "code").value_or(0), 255));
  const bool is_answer = custom_ && line.contains("ask");
  bool is_known = is_answer || order != open_.end();
  if (is_known && line.contains("restart")) {
    ++trials_[trial].restarts;
    return;
  }
  if (is_answer) {
    const std::vector<Order> orders = custom_->follow(line);
    is_known = line.value("orders", nlohmann::json()) == json_of(orders);
    add(orders);
  } else if (is_known) {
    const Order done = *order;
    close(done);
    const TrialEnd end{metric ? TrialEnd::Kind::reached : TrialEnd::Kind::ended, metric.value_or(0), code,
                       printable(text_in(line, "reason"))};
    const std::vector<Order> orders = record(done, count_in(line, "steps").value_or(0), end);
    is_known = line.value("orders", nlohmann::json()) == json_of(orders);
    add(orders);
  }
  require(is_known, Failure::bad_data,
          "'{}', line {} has other decisions than this version of search makes. Continue with the version that started "
          "it, or choose another --output.",
          journal_.path().string(), line_count_);
}

// Returns the decisions that follow.
std::vector<Order> SearchState::record(const Order& order, std::int64_t steps, const TrialEnd& end) {
  TrialRecord& trial = trials_.at(order.trial);
  if (end.kind != TrialEnd::Kind::reached) {
    trial.code = end.code;
    trial.reason = end.reason;
    if (events_ != nullptr) events_->end(order.trial, SessionStatus::failure);
    if (!custom_) return searcher_.report(order.trial, std::nullopt);
    custom_->report(order, std::nullopt);
    return {};
  }
  trial.rung = order.rung;
  trial.length = order.length;
  trial.steps = steps;
  trial.metric = end.metric;
  if (events_ != nullptr) events_->add_result(order.trial, steps, end.metric);
  if (!custom_) return searcher_.report(order.trial, space_.smaller_is_better ? end.metric : -end.metric);
  custom_->report(order, end.metric);
  return {};
}

std::vector<Order> SearchState::add_result(const Order& order, std::int64_t steps, const TrialEnd& end) {
  const std::vector<Order> orders = record(order, steps, end);
  close(order);
  nlohmann::json line = {{"trial", order.trial}, {"rung", order.rung + 1}, {"orders", json_of(orders)}};
  if (end.kind == TrialEnd::Kind::reached) {
    line["steps"] = steps;
    line["metric"] = end.metric;
  } else {
    line["code"] = end.code;
    line["reason"] = end.reason;
  }
  append(line);
  add(orders);
  return orders;
}

void SearchState::add_answer(nlohmann::json line) {
  const std::vector<Order> orders = custom_->follow(line);
  line["orders"] = json_of(orders);
  append(std::move(line));
  add(orders);
}

void SearchState::finish() {
  if (custom_) custom_->finish();
  for (const auto& [number, trial] : trials_) {
    if (events_ != nullptr && trial.code == 0) events_->end(number, SessionStatus::success);
  }
}

void SearchState::add_restart(const Order& order, const TrialEnd& end) {
  const std::int64_t restarts = ++trials_.at(order.trial).restarts;
  append({{"trial", order.trial},
          {"rung", order.rung + 1},
          {"restart", restarts},
          {"code", end.code},
          {"reason", end.reason}});
}

void SearchState::close(const Order& order) {
  trials_.at(order.trial).ahead.reset();
  std::erase(open_, order);
}

}  // namespace lockstep
