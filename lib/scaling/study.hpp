// A scaling study: what was measured of training steps and sums at several rank counts. Pure data; study_file.hpp
// writes and reads it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scaling/sum_model.hpp"

namespace lockstep {

inline constexpr std::int64_t most_study_ranks = 1 << 20;

// What a step's time goes to, as the mean rank spends it.
enum class StepPart : std::uint8_t {
  input,      // waiting for samples
  forward,    //
  backward,   // without what sums take in it
  exposed,    // sums of gradients that nothing hides
  imbalance,  // waiting for the rank that comes last
  optimizer,  //
  other,      // what the parts above leave of a step
};
inline constexpr std::size_t step_part_count = 7;
std::string_view name_of(StepPart part);   // "exposed": the key in files
std::string_view describe(StepPart part);  // "exposed sums of gradients"

// A bucket of gradients.
struct Bucket {
  std::int64_t bytes = 0;
  double ready = 1;  // when its sum is started, as a share of backward
  double skew = 0;   // seconds between the first and the last rank to start it
};

// Sums of so many bytes, alone. Seconds of the slowest rank, by repeat.
struct MeasuredSum {
  std::int64_t bytes = 0;
  std::vector<double> seconds;
};

// A rank's mean of a step.
struct RankTimes {
  std::string host;
  double input = 0;    // seconds waiting for samples
  double arrival = 0;  // seconds from a step's begin to its wait for the others
};

// What a study varies beside ranks and batches.
struct StudySetup {
  std::int64_t threads = 1;     // of a rank; on a GPU it tells nothing
  std::int64_t bucket_mib = 4;  // 0: measured at the start
  std::string precision = "fp32";

  bool operator==(const StudySetup&) const = default;
};

// Steps with so many ranks and samples of each.
struct StudyPoint {
  RankGrid grid;
  StudySetup setup;
  std::int64_t batch_per_rank = 0;
  std::int64_t memory_bytes = 0;                           // tensors of a rank, at most
  std::vector<double> step_seconds;                        // of the slowest rank, by repeat
  std::vector<double> other_cores;                         // that others took of a node meanwhile, by repeat; or empty
  std::array<std::vector<double>, step_part_count> parts;  // seconds by repeat; empty where the device does not tell
  std::vector<Bucket> buckets;                             // in the order of their sums; empty likewise
  std::vector<MeasuredSum> sums;                           // none with one rank
  std::vector<RankTimes> by_rank;                          // of the last repeat; empty likewise

  bool has_parts() const { return !parts[0].empty(); }
  double part(StepPart part) const;  // seconds, the median of its repeats
  std::int64_t global_batch() const { return grid.ranks * batch_per_rank; }
};

// What a fixed short recipe comes to with so many samples a step, on any ranks.
struct BatchAccuracy {
  std::int64_t global_batch = 0;
  std::vector<double> accuracies = {};  // of tests, as shares, by seed
  std::string missing = {};             // why there are none, or not all; empty: all are there
};

struct Study {
  std::string model;
  std::int64_t parameters = 0;
  std::int64_t image_height = 0;
  std::int64_t image_width = 0;
  std::string input;              // "noise", or where shards lie
  std::string device;             // "cpu: AMD EPYC, AVX2, 1 thread", rank 0's
  StudySetup setup;               // that ranks and batches are varied with
  std::string reducer;            // with the most ranks
  std::int64_t cores = 0;         // of rank 0's node
  std::int64_t weak_batch = 0;    // samples of each rank where the global batch grows
  std::int64_t strong_batch = 0;  // samples of all ranks where it does not
  std::vector<StudyPoint> points;
  std::int64_t accuracy_epochs = 0;       // of the short recipe; 0: nothing was trained
  std::vector<BatchAccuracy> accuracies;  // the smallest batch first
  std::map<std::string, std::string> versions;
  std::vector<std::string> hosts;  // by rank
  std::string command;
  std::string commit;
  std::string started;
  std::string ended;
};

// Whether nothing but ranks and batch sets the point apart: what models are fitted on.
bool is_usual(const Study& study, const StudyPoint& point);
// The most ranks of any point.
int most_ranks_of(const Study& study);

enum class Scaling : std::uint8_t { weak, strong };
std::string_view name_of(Scaling scaling);  // "weak"

// The points of one kind of scaling, by rank count. A point may be of both.
std::vector<const StudyPoint*> points_of(const Study& study, Scaling scaling);

// Samples a second, with the interval of its repeats.
Interval throughput_of(const StudyPoint& point);

// Of rank counts, each once, the smallest first.
std::vector<std::int64_t> global_batches_of(const Study& study);
// The largest rate with so many samples a step, as usual.
Interval best_throughput(const Study& study, std::int64_t global_batch);

// What was varied alone, with the most ranks and the batch of weak scaling.
enum class Sweep : std::uint8_t { threads, buckets, precision };
inline constexpr std::array<Sweep, 3> sweeps = {Sweep::threads, Sweep::buckets, Sweep::precision};

// The usual point first, then the others as measured; none where nothing was varied.
std::vector<const StudyPoint*> points_of(const Study& study, Sweep sweep);
// How many times the samples of `base` a point takes in a second, repeat by repeat.
Interval speed_ratio(const StudyPoint& point, const StudyPoint& base);

// The throughput of a rank as a share of that of a rank of `base`. Repeat by repeat, for those of both points ran
// beside each other.
Interval efficiency_of(const StudyPoint& point, const StudyPoint& base);

}  // namespace lockstep
