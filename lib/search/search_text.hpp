// What a search prints, in 80 columns.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/text/text_table.hpp"
#include "search/searcher.hpp"
#include "search/space/space.hpp"
#include "search/trial/trial_record.hpp"

namespace lockstep {

// The line, cut to 80 bytes if it is longer, but not within a character.
std::string cut_line(std::string line);

// A column for each hyperparameter that varies, and a cell for each trial, of whose settings it has the words.
std::vector<TextColumn> setting_columns(const Space& space, const std::vector<std::vector<OptionWord>>& trials);
// The table, in lines of at most 80 bytes; what is longer is cut.
std::string table_text(const std::vector<TextColumn>& columns);

// Words as one line for a shell, quoted where needed.
std::string shell_command(const std::vector<std::string>& words);

// "61.20 %" of an accuracy, "0.6931" of a loss.
std::string metric_text(const Space& space, double metric);
// "epochs"; "batches", the steps of a custom training loop. TrialLength::steps_per_epoch is 1 then.
const char* cost_unit(const Space& space);

// Whether no later result can promote a trial that has one.
bool are_final(const Space& space, const std::map<std::int64_t, TrialRecord>& trials);
// Of a trial that has not failed, and is not to be trained further now: "complete", "ended early" if results are final,
// else "waiting".
const char* resting_state(const Space& space, const TrialRecord& trial, bool is_final);

// Trials, rungs and cost, for --dry-run. `units_per_epoch`: how many of the space's length units an epoch has.
std::string plan_text(const Space& space, double units_per_epoch);
// How the searcher decides, for --describe.
std::string description_text(const Space& space);

// One line for each result.
std::string table_header(const Space& space);
std::string table_row(const Space& space, const Order& order, const TrialRecord& trial,
                      const std::vector<Order>& decisions);

}  // namespace lockstep
