// Measures a cluster within some seconds. All functions are collective.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "backend/session.hpp"
#include "models/model_zoo.hpp"
#include "preflight/facts.hpp"

namespace lockstep {

struct PreflightOptions {
  ModelOptions model;            // determines the steps, the gradients and the size of checkpoints
  std::int64_t batch = 1;        // samples per rank and step
  std::string reducer;           // auto | nccl | mpi | shared
  std::filesystem::path folder;  // a job's output folder; it or an ancestor exists
};

// Returns all facts on rank 0, and empty facts on other ranks.
ClusterFacts measure_cluster(const Session& session, const PreflightOptions& options);

}  // namespace lockstep
