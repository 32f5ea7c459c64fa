// What other programs print of a search, from the journal in its folder.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace lockstep {

// Whether the folder has a journal.
bool holds_search(const std::filesystem::path& folder);

// For people, on one screen: searcher, state, best trial, trials, and which files have more. Throws as read_search().
std::string describe_search(const std::filesystem::path& folder);

struct SearchStatus {
  bool is_running;
  std::string line;  // for monitoring: "running: 7 trials, 12 results; best: trial 3, ..."
};
// Throws as read_search().
SearchStatus search_status(const std::filesystem::path& folder);

// Output folders of the best trials, at most `most`. Throws Error(usage) if no trial has a result, and as
// read_search().
std::vector<std::filesystem::path> best_trial_folders(const std::filesystem::path& folder, std::size_t most);

}  // namespace lockstep
