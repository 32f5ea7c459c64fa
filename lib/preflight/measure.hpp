// Measures a cluster in some seconds. All collective.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "backend/session.hpp"
#include "models/model_zoo.hpp"
#include "preflight/facts.hpp"

namespace lockstep {

struct PreflightOptions {
  ModelOptions model;            // whose steps are computed, whose gradients are summed, whose checkpoints need room
  std::int64_t batch = 1;        // samples of a rank's step
  std::string reducer;           // auto | nccl | mpi | shared
  std::filesystem::path folder;  // that a job would write into; itself or the nearest above it is there
};

// Whole on rank 0; elsewhere nothing.
ClusterFacts measure_cluster(const Session& session, const PreflightOptions& options);

}  // namespace lockstep
