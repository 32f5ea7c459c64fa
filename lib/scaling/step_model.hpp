// Predicts the step time at rank counts that were not measured, from those that were.
//
// Compute time is linear in a rank's samples, and grows with the number of ranks that share a node. AllReduceModel
// predicts the all-reduce time of buckets. Backward hides a measured share of it, between nothing and all that the
// schedule allows. Random delays of ranks grow like the expected maximum of as many draws (expected_maximum).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "scaling/all_reduce_model.hpp"
#include "scaling/study.hpp"

namespace lockstep {

// All-reduces of buckets, which start one after another as backward fills the buckets.
struct Exposure {
  double overlapped = 0;  // seconds beyond backward, if all-reduces overlap with it
  double after = 0;       // seconds of all all-reduces, if they start after backward

  double hideable() const { return after - overlapped; }
};
Exposure exposure_of(std::span<const Bucket> buckets, double backward_seconds,
                     const std::function<double(std::int64_t bytes)>& sum_seconds);

// Splits the same gradients into buckets of `bytes`. The last bucket is unchanged, because nothing hides it.
std::vector<Bucket> rebucket(std::span<const Bucket> buckets, std::int64_t bytes);

struct StepSetting {
  RankGrid grid;
  std::int64_t batch_per_rank = 1;
  std::optional<std::int64_t> bucket_bytes = {};  // nullopt: as measured
  Exchange exchange = {};
};

// What a compression was measured to change.
struct CompressedSteps {
  std::int64_t powersgd_rank = 0;
  std::vector<Bucket> buckets;  // what it sends
  double seconds = 0;           // of an update, besides sums and waiting, more than without compression
};

// Times in seconds, for an update. With local steps: their mean.
struct StepPrediction {
  Interval step;
  double computing = 0;
  double exposed = 0;
  double imbalance = 0;
  double rest = 0;
};

// What an exchange with parameter servers was measured to take.
struct ServerExchange {
  std::int64_t servers = 0;
  bool on_several_nodes = false;
  Regression seconds;  // by (bytes through the busiest link, rounds)
};

struct StepModel {
  AllReduceModel sums;
  Regression computing;       // seconds by (1, samples, samples times (ranks on the node - 1))
  Regression rest;            // the same features: waiting for samples, optimizer, everything else
  Regression imbalance;       // seconds by (compute seconds times expected_maximum())
  Regression hidden;          // all-reduce seconds by (seconds that the schedule can hide)
  double backward_share = 0;  // of the compute time
  std::vector<Bucket> buckets;
  std::vector<CompressedSteps> compressed;  // those that the study measured
  std::vector<ServerExchange> servers;      // likewise
  int max_ranks = 0;                        // largest rank count of the fit

  bool covers(const RankGrid& grid) const { return sums.covers(grid); }
  const CompressedSteps* find_compressed(std::int64_t powersgd_rank) const;  // null: not measured
  const ServerExchange* find_servers(const RankGrid& grid, std::int64_t count) const;
  // Precondition: covers(setting.grid), and compression or servers were measured. Local steps are predicted to hide
  // none of their exchange.
  StepPrediction predict(const StepSetting& setting) const;

 private:
  Interval exposed_to_servers(const StepSetting& setting) const;
  Interval exposed_sums(const StepSetting& setting, std::span<const Bucket> sent, double backward_seconds,
                        double without) const;
};

// Fits points of at most `max_ranks` ranks. Returns nullopt if none of them has several ranks, or if the device does
// not report the parts of a step.
std::optional<StepModel> fit_steps(const Study& study, int max_ranks);

// The bucket size with the shortest predicted step, among powers of two from 1 to 64 MiB.
struct BucketAdvice {
  std::int64_t bytes = 0;
  double gain = 0;  // share of the measured step time
};
BucketAdvice advise_bucket(const StepModel& model, StepSetting setting);

}  // namespace lockstep
