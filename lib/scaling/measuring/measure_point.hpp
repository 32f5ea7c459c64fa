// Times training steps on some of a job's ranks, splits their time into parts, and times all-reduces of the model's
// buckets alone.
#pragma once

#include <cstdint>

#include "backend/session.hpp"
#include "dataset/dataset.hpp"
#include "recipe/recipe.hpp"
#include "scaling/study.hpp"
#include "step/model.hpp"

namespace lockstep {

// The training input. The data set must outlive the measurement.
struct StudyInput {
  const Dataset* dataset = nullptr;  // null: the same batch of noise in every step
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
  Exchange exchange = {};
  double seconds = 1;  // approximate duration of the timed steps
};

struct MeasuredPoint {
  StudyPoint point;  // with one repeat
  std::int64_t parameters;
  std::string device;
  std::string reducer;
};

// Collective over `ranks`; all of them get the same result. Opens its own device, so that no state remains. Throws what
// open_backend(), make_all_reduce() and load_onto() throw, and Error(diverged) if the loss is not finite.
MeasuredPoint measure_point(const Communicator& ranks, const PointSettings& settings);

// `all` contains the previous repeats; it is empty before the first.
void add_repeat(StudyPoint& all, const StudyPoint& repeat);

}  // namespace lockstep
