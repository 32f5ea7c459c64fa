// Reports which rank computed how much, where ranks share micro-batches by speed (step/work_shares.hpp).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "step/weight_sync.hpp"

namespace lockstep {

// "1200 updates in this attempt, 120 (rank 3) to 400 (rank 0) per rank; 0.81 s per step, of which ranks wait 4 % for
// the last one"
std::string shared_work_text(const SharedWork& work);

// What `now` has more than `earlier`, which may be empty.
SharedWork since(const SharedWork& earlier, const SharedWork& now);

// The fields of metrics.jsonl and summary.json.
nlohmann::json shared_work_fields(const SharedWork& work);

}  // namespace lockstep
