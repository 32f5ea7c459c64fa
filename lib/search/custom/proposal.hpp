// Hyperparameters in the words of a searcher's program (apps/search.md).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "search/space/space.hpp"

namespace lockstep {

// {"lr": {"low": 0.001, "high": 1, "log": true}, "optimizer": {"choices": ["sgd", "lamb"]}}, without constants.
nlohmann::json hyperparameters_json(const Space& space);

// The words of a trial with the settings `given`, in file order. If a hyperparameter is missing, unknown, or outside
// its range, throws Error(usage) with the reason, as the end of a sentence ("'lr' is 7, ...").
std::vector<OptionWord> proposed_words(const Space& space, const nlohmann::json& given);

}  // namespace lockstep
