#include "search/search_overview.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/text/counted.hpp"
#include "base/text/printable.hpp"
#include "run/lock_holder.hpp"
#include "search/journal/search_folder.hpp"
#include "search/page/search_record.hpp"
#include "search/results_table.hpp"
#include "search/search_text.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t shown_trials = 12;

// A process that works on the search. Those of a shared search have a folder each.
FolderHolder worker_of(const fs::path& folder) {
  FolderHolder holder = holder_of(folder);
  std::error_code none;
  for (const fs::directory_entry& task : fs::directory_iterator(folder / "tasks", none)) {
    if (holder.kind == FolderHolder::Kind::nobody) holder = holder_of(task.path());
  }
  return holder;
}

std::string describe_state(const SearchRecord& search) {
  const FolderHolder holder = worker_of(search.folder);
  if (holder.kind != FolderHolder::Kind::nobody) return "running: " + describe_lock_holder(holder.process);
  // The model of the best training is kept at the very end.
  const bool has_model = search.best && !search.space.has_custom_loop();
  const bool lacks_model = has_model && is_absent(SearchFolder(search.folder).best_model());
  return !are_over(records_of(search)) || lacks_model ? "stopped; the same command continues it" : "done";
}

std::string describe_best(const SearchRecord& search) {
  if (!search.best) return "no trial has a result";
  const TrialRecord& trial = search.trials.at(*search.best).last;
  return fmt::format("trial {}, {} {} after {} steps{}", *search.best, metric_name(search.space.metric),
                     metric_text(search.space, *trial.metric), trial.steps,
                     is_absent(SearchFolder(search.folder).best_model()) ? "" : " (best.h5)");
}

}  // namespace

bool holds_search(const fs::path& folder) { return !is_absent(SearchFolder(folder).journal()); }

std::string describe_search(const fs::path& folder) {
  const SearchRecord search = read_search(folder);
  const Space& space = search.space;
  const std::map<std::int64_t, TrialRecord> records = records_of(search);
  std::size_t results = 0;
  std::int64_t restarts = 0;
  for (const auto& [number, trial] : search.trials) {
    results += trial.results.size();
    restarts += trial.last.restarts;
  }
  return fmt::format(
      "search over options of '{}'\n  searcher   {}, {} so far, each of at most {}\n  metric     {}, {} is better\n"
      "  state      {}\n  results    {}, and {}\n  best       {}\n\n{}\n\n"
      "{}A page: search --report {}.",
      printable(space.program), choice_name(searcher_kinds, space.searcher.kind), counted(records.size(), "trial"),
      length_text(space.searcher.max_length, space.unit), metric_name(space.metric),
      space.smaller_is_better ? "smaller" : "larger", describe_state(search), results, counted(restarts, "restart"),
      describe_best(search), results_table(space, records, shown_trials),
      records.empty() || space.has_custom_loop()
          ? ""
          : fmt::format("A trial: inspect '{}'. Its output: trial-1.log. ", SearchFolder(folder).trial(1).string()),
      shell_command({folder.string()}));
}

SearchStatus search_status(const fs::path& folder) {
  const bool is_running = worker_of(folder).kind != FolderHolder::Kind::nobody;
  const SearchRecord search = read_search(folder);
  std::size_t results = 0;
  for (const auto& [number, trial] : search.trials) results += trial.results.size();
  return {is_running,
          fmt::format("{}: {}, {}; best: {}", is_running ? "running" : describe_state(search),
                      counted(records_of(search).size(), "trial"), counted(results, "result"), describe_best(search))};
}

std::vector<fs::path> best_trial_folders(const fs::path& folder, std::size_t most) {
  const SearchRecord search = read_search(folder);
  require(search.best.has_value(), Failure::usage,
          "no trial of the search in '{}' has a result yet. Call report again later.", folder.string());
  std::vector<fs::path> folders;
  for (const std::int64_t number : ranked_trials(search)) {
    const TrialRecord& trial = search.trials.at(number).last;
    if (trial.code != 0 || !trial.metric || folders.size() == most) break;
    folders.push_back(SearchFolder(folder).trial(number));
  }
  return folders;
}

}  // namespace lockstep
