// Training steps on some of a job's ranks, timed and taken apart, and sums of the model's buckets alone.
#pragma once

#include <cstdint>

#include "backend/session.hpp"
#include "dataset/dataset.hpp"
#include "recipe/recipe.hpp"
#include "scaling/study.hpp"
#include "step/model.hpp"

namespace lockstep {

// Shards to read. The data set outlives the measuring.
struct StudyInput {
  const Dataset* dataset = nullptr;  // null: one batch of noise again and again
  ImageRules rules = {};
  int loader_threads = 1;
  DataPlace place = DataPlace::automatic;
};

struct PointSettings {
  ModelOptions model;
  NetworkMaker make_network = make_model;
  DeviceOptions device;
  AllReduceOptions sums;
  StudyInput input;
  std::int64_t batch_per_rank = 1;
  double seconds = 1;  // of timed steps, about
};

struct MeasuredPoint {
  StudyPoint point;  // of one repeat
  std::int64_t parameters;
  std::string device;
  std::string reducer;
};

// Collective over `ranks`, each of which learns the same. Opens a device of its own, so that nothing of a point
// remains. Throws as open_backend(), make_all_reduce() and load_onto(); Error(diverged) where the loss is not finite.
MeasuredPoint measure_point(const Communicator& ranks, const PointSettings& settings);

// `all` is of the repeats before, and empty before the first.
void add_repeat(StudyPoint& all, const StudyPoint& repeat);

}  // namespace lockstep
