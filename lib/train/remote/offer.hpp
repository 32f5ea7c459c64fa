// What a server offers to each of its trainers that are programs of their own: the recipe, and what must be the same at
// both ends: version, data, model, instruction set.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "train/opening/opened_training.hpp"

namespace lockstep {

std::string offer_to_trainers(const OpenedTraining& training);

// The settings of a trainer: the server's recipe and instruction set, and `own` for what the trainer decides itself.
// Throws Error(usage) if the trainer is of another version, or its processor lacks the instruction set, and
// Error(other) if the offer is damaged.
ValidSettings accept_offer(const nlohmann::json& offer, const Session& session, const RunOptions& own);

// Throws Error(usage) if the data that the trainer has opened, or its model, are not the server's.
void require_same_training(const nlohmann::json& offer, const TrainingData& data, const Model& model);

}  // namespace lockstep
