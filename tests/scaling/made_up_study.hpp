// Studies whose truth is known.
#pragma once

#include <cstdint>
#include <vector>

#include "scaling/step_model.hpp"
#include "scaling/study.hpp"

namespace lockstep {

// A machine of whatever size: one node, sums that backward does not hide.
struct MadeUpMachine {
  double seconds_a_sample = 1e-3;
  double backward_share = 0.6;
  double optimizer_seconds = 2e-3;
  double input_seconds = 1e-4;
  double latency_seconds = 20e-6;
  double bytes_a_second = 5e9;
  double lateness = 0;  // imbalance, as a share of computing times expected_maximum()
  double noise = 0;     // of whole steps, as a share, by turns above and below
  std::vector<std::int64_t> bucket_bytes = {4 << 20, 4 << 20, 4 << 20, 1 << 20};
  std::vector<int> ranks = {1, 2, 4};
  int repeats = 5;
  int ranks_per_node = 1024;

  double sum_seconds(int count, double bytes) const {
    if (count == 1) return 0;
    int rounds = 0;
    while ((1 << rounds) < count) ++rounds;
    return 2 * rounds * latency_seconds + 2.0 * (count - 1) / count * bytes / bytes_a_second;
  }
};

inline StudyPoint made_up_point(const MadeUpMachine& machine, int ranks, std::int64_t batch) {
  StudyPoint point;
  point.grid = {ranks, (ranks + machine.ranks_per_node - 1) / machine.ranks_per_node};
  point.batch_per_rank = batch;
  point.memory_bytes = 100'000'000 + batch * 1'000'000;
  const double computing = machine.seconds_a_sample * static_cast<double>(batch);
  double exposed = 0;
  double ready = 0;
  for (const std::int64_t bytes : machine.bucket_bytes) {
    exposed += machine.sum_seconds(ranks, static_cast<double>(bytes));
    ready += 1.0 / static_cast<double>(machine.bucket_bytes.size());
    point.buckets.push_back({bytes, ready});
  }
  for (int repeat = 0; repeat < machine.repeats; ++repeat) {
    const double disturbed = 1 + (repeat % 2 == 0 ? machine.noise : -machine.noise);
    const auto add = [&](StepPart part, double seconds) {
      point.parts[static_cast<std::size_t>(part)].push_back(seconds * disturbed);
      return seconds * disturbed;
    };
    point.step_seconds.push_back(
        add(StepPart::input, machine.input_seconds) + add(StepPart::forward, (1 - machine.backward_share) * computing) +
        add(StepPart::backward, machine.backward_share * computing) + add(StepPart::exposed, exposed) +
        add(StepPart::imbalance, machine.lateness * expected_maximum(ranks) * computing) +
        add(StepPart::optimizer, machine.optimizer_seconds) + add(StepPart::other, 0));
  }
  for (const std::int64_t bytes : {std::int64_t{16} << 10, std::int64_t{1} << 20, std::int64_t{4} << 20}) {
    if (ranks == 1) break;
    const double seconds = machine.sum_seconds(ranks, static_cast<double>(bytes));
    point.sums.push_back({bytes, std::vector<double>(static_cast<std::size_t>(machine.repeats), seconds)});
  }
  for (int rank = 0; rank < ranks; ++rank) {
    point.by_rank.push_back({"node" + std::to_string(rank / machine.ranks_per_node), machine.input_seconds,
                             machine.input_seconds + computing + machine.optimizer_seconds});
  }
  return point;
}

// Weak with 32 samples a rank, strong with 64 samples a step.
inline Study made_up_study(const MadeUpMachine& machine) {
  Study study;
  study.model = "resnet20";
  study.parameters = 269'722;
  study.image_height = study.image_width = 32;
  study.input = "noise";
  study.device = "cpu: made up, 1 thread";
  study.reducer = "shared memory (4 ranks)";
  study.cores = 8;
  study.weak_batch = 32;
  study.strong_batch = 64;
  for (const int ranks : machine.ranks) {
    study.points.push_back(made_up_point(machine, ranks, study.weak_batch));
    const std::int64_t share = study.strong_batch / ranks;
    if (share * ranks == study.strong_batch && share != study.weak_batch) {
      study.points.push_back(made_up_point(machine, ranks, share));
    }
    for (int rank = static_cast<int>(study.hosts.size()); rank < ranks; ++rank) study.hosts.emplace_back("node0");
  }
  study.versions = {{"lockstep", "1.0"}, {"MPI", "Open MPI v4.1.4"}};
  study.command = "scaling_study --output study";
  study.commit = "0123456";
  study.started = "2026-11-23T00:00:00Z";
  study.ended = "2026-11-23T00:10:00Z";
  return study;
}

// As the largest weak point with another setup, at so many times its speed.
inline StudyPoint& add_varied(Study& study, const StudySetup& setup, double speed) {
  StudyPoint point = *points_of(study, Scaling::weak).back();
  point.setup = setup;
  for (double& seconds : point.step_seconds) seconds /= speed;
  for (std::vector<double>& part : point.parts) {
    for (double& seconds : part) seconds /= speed;
  }
  study.points.push_back(point);
  return study.points.back();
}

// Servers on 4 ranks, whose exchange takes 1 ms and the time of its bytes through the busiest link.
inline void add_servers(Study& study, const MadeUpMachine& machine, std::int64_t servers) {
  StudyPoint& point = add_varied(study, {.exchange = {.servers = servers}}, 1);
  double bytes = 0;
  for (const Bucket& bucket : point.buckets) bytes += static_cast<double>(bucket.bytes);
  const double pushed = pushed_through_busiest_link(point.grid, servers);
  for (double& seconds : point.parts[static_cast<std::size_t>(StepPart::exposed)]) {
    seconds = 1e-3 + 2 * pushed * bytes / machine.bytes_a_second;
  }
  point.buckets.clear();
}

}  // namespace lockstep
