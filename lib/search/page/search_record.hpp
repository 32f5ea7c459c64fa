// A search as its folder records it, for its page. The files are untrusted, and a search may be writing them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "search/space/setting_text.hpp"
#include "search/space/space.hpp"
#include "search/trial/trial_record.hpp"

namespace lockstep {

struct RungResult {
  std::size_t rung = 0;     // from 0
  std::int64_t length = 1;  // in the unit of the space's max_length
  std::int64_t steps = 1;
  double metric = 0;
};

struct ReportedTrial {
  TrialRecord last;                 // brackets by the length of their first rung
  std::vector<RungResult> results;  // by rung
  // Of the order without a result: its trial has failed, is being trained, or was stopped.
  std::optional<std::int64_t> open_length;
};

struct SearchRecord {
  std::filesystem::path folder;
  Space space;
  std::map<std::int64_t, ReportedTrial> trials;  // by number
  std::vector<std::int64_t> lengths;             // of all rungs, ascending
  std::size_t brackets = 1;
  std::optional<std::int64_t> best;  // trial
};

// Skips an incomplete last line. Throws Error(usage) if `folder` contains no search, and Error(bad_data) that names the
// file and the line if its journal is damaged.
SearchRecord read_search(const std::filesystem::path& folder);

// What a running search knows of the trials.
std::map<std::int64_t, TrialRecord> records_of(const SearchRecord& search);

// The trials, the best one first, as in trial_record.hpp.
std::vector<std::int64_t> ranked_trials(const SearchRecord& search);

}  // namespace lockstep
