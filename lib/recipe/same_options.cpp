#include "recipe/same_options.hpp"

#include <vector>

#include "base/text/json_text.hpp"
#include "comm/same_on_ranks.hpp"
#include "recipe/fields.hpp"

namespace lockstep {

void require_same_options(const Communicator& world, const Settings& settings) {
  std::vector<RankValue> values;
  for (const Field& field : training_fields()) {
    if (field.on_ranks == Field::OnRanks::may_differ) continue;
    values.push_back({"--" + field.name, json_text(json_of(field, settings))});
  }
  require_same_on_ranks(world, values, "Start all ranks with the same options.");
}

}  // namespace lockstep
