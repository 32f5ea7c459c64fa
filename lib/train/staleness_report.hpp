// Reports how old the gradients of asynchronous updates were (step/async_sync.hpp).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "step/weight_sync.hpp"

namespace lockstep {

// "400 gradients in this attempt: 1.9 updates old on average, 60 (rank 3) to 120 (rank 0) per trainer; 12 too old and
// dropped (rank 3: 12)"
std::string staleness_text(const Staleness& staleness);

// What `now` has more than `earlier`, which may be empty.
Staleness since(const Staleness& earlier, const Staleness& now);

// The fields of metrics.jsonl and summary.json.
nlohmann::json staleness_fields(const Staleness& staleness);

}  // namespace lockstep
