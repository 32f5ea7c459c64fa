#include "search/page/search_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "base/text/json_text.hpp"
#include "base/text/printable.hpp"
#include "run/run_file.hpp"
#include "search/journal/journal.hpp"
#include "search/journal/search_folder.hpp"

namespace lockstep {
namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 30;

// Takes the lines of a journal in order.
class JournalReader {
 public:
  explicit JournalReader(SearchRecord& search) : search_(search) {}

  // False if the line does not follow from the lines before.
  bool take(const nlohmann::json& line) {
    if (line.contains("trial") && !line.contains("ask") && !take_end(line)) return false;
    const nlohmann::json orders = line.value("orders", nlohmann::json::array());
    return orders.is_array() && std::ranges::all_of(orders, [&](const auto& order) { return take_order(order); });
  }

 private:
  bool take_order(const nlohmann::json& order) {
    const std::optional<std::int64_t> number = count_in(order, "trial");
    const std::optional<std::int64_t> rung = count_in(order, "rung");
    const std::optional<std::int64_t> length = count_in(order, "length");
    if (!number || !rung || !length || *number < 1 || *rung < 1) return false;
    const bool is_new = !search_.trials.contains(*number);
    if (is_new != (*rung == 1)) return false;
    ReportedTrial& trial = search_.trials[*number];
    if (is_new) trial.last.settings = texts_in(order, "settings");
    trial.last.ahead = static_cast<std::size_t>(*rung - 1);
    trial.open_length = length;
    return true;
  }

  bool take_end(const nlohmann::json& line) {
    const auto found = search_.trials.find(count_in(line, "trial").value_or(0));
    if (found == search_.trials.end() || !found->second.open_length) return false;
    ReportedTrial& trial = found->second;
    if (line.contains("restart")) {
      ++trial.last.restarts;
      return true;
    }
    trial.last.ahead.reset();
    const auto rung = static_cast<std::size_t>(std::max<std::int64_t>(count_in(line, "rung").value_or(1), 1) - 1);
    if (const std::optional<double> metric = finite_number_in(line, "metric")) {
      trial.last.rung = rung;
      trial.last.length = *trial.open_length;
      trial.last.steps = count_in(line, "steps").value_or(0);
      trial.last.metric = metric;
      trial.results.push_back({rung, *trial.open_length, trial.last.steps, *metric});
      trial.open_length.reset();
    } else {
      trial.last.code = static_cast<int>(std::clamp<std::int64_t>(count_in(line, "code").value_or(1), 1, 255));
      trial.last.reason = text_in(line, "reason");
    }
    return true;
  }

  SearchRecord& search_;
};

// The lengths of a trial's rungs, as far as they are known.
std::vector<std::int64_t> lengths_of(const ReportedTrial& trial) {
  std::vector<std::int64_t> lengths;
  for (const RungResult& result : trial.results) lengths.push_back(result.length);
  if (trial.open_length) lengths.push_back(*trial.open_length);
  return lengths;
}

void conclude(SearchRecord& search) {
  std::set<std::int64_t> firsts;
  std::set<std::int64_t> all;
  for (const auto& [number, trial] : search.trials) {
    const std::vector<std::int64_t> lengths = lengths_of(trial);
    firsts.insert(lengths.front());
    all.insert(lengths.begin(), lengths.end());
  }
  if (has_rungs(search.space.searcher.kind)) search.brackets = std::max<std::size_t>(firsts.size(), 1);
  for (auto& [number, trial] : search.trials) {
    const auto place = std::distance(firsts.begin(), firsts.find(lengths_of(trial).front()));
    trial.last.bracket = search.brackets == 1 ? 0 : static_cast<std::size_t>(place);
  }
  search.lengths.assign(all.begin(), all.end());
  search.best = best_trial(search.space, records_of(search));
}

}  // namespace

SearchRecord read_search(const std::filesystem::path& folder) {
  const std::filesystem::path file = SearchFolder(folder).journal();
  const std::optional<std::string> text = read_run_file(file, most_bytes);
  require(text.has_value(), Failure::usage,
          "'{}' contains no search: 'search.jsonl' is missing or cannot be read. Name the --output folder of a search.",
          printable(folder.string()));
  SearchRecord search;
  search.folder = folder;
  JournalReader reader(search);
  std::int64_t number = 0;
  std::int64_t counted = 0;
  for (std::size_t place = 0, end = 0; (end = text->find('\n', place)) != std::string::npos; place = end + 1) {
    const nlohmann::json line = try_parse_json(std::string_view(*text).substr(place, end - place));
    ++number;
    const bool is_object = line.is_object();
    if (is_object && !is_next_line(file, line, counted)) continue;
    ++counted;
    if (is_object && number == 1) search.space = space_of(line.value("space", nlohmann::json()), file.string());
    require(is_object && reader.take(line), Failure::bad_data,
            "'{}', line {} is damaged. Restore the file from a copy.", printable(file.string()), number);
  }
  require(number > 0, Failure::usage, "'{}' contains no search: 'search.jsonl' is empty. Start the search first.",
          printable(folder.string()));
  conclude(search);
  return search;
}

std::map<std::int64_t, TrialRecord> records_of(const SearchRecord& search) {
  std::map<std::int64_t, TrialRecord> records;
  for (const auto& [number, trial] : search.trials) records.emplace(number, trial.last);
  return records;
}

std::vector<std::int64_t> ranked_trials(const SearchRecord& search) {
  return ranked_trials(search.space, records_of(search));
}

}  // namespace lockstep
