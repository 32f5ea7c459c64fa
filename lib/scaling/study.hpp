// A scaling study: measurements of training steps and all-reduces at several rank counts. Pure data; study_file.hpp
// writes and reads it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scaling/exchange.hpp"

namespace lockstep {

inline constexpr std::int64_t max_study_ranks = 1 << 20;

// The parts of a step's time, as means over ranks.
enum class StepPart : std::uint8_t {
  input,      // waiting for samples
  forward,    //
  backward,   // without `exposed` time
  exposed,    // all-reduces of gradients that are not hidden
  imbalance,  // waiting for the last rank
  optimizer,  //
  other,      // the rest of the step
};
inline constexpr std::size_t step_part_count = 7;
std::string_view name_of(StepPart part);   // "exposed": the key in files
std::string_view describe(StepPart part);  // "exposed gradient all-reduces"

// A bucket of gradients.
struct Bucket {
  std::int64_t bytes = 0;
  double ready = 1;  // when its all-reduce starts, as a share of backward
  double skew = 0;   // seconds between the first and the last rank to start it
};

// All-reduces of one size without other work. Seconds of the slowest rank, one per repeat.
struct MeasuredAllReduce {
  std::int64_t bytes = 0;
  std::vector<double> seconds;
};

// A rank's mean times per step.
struct RankTimes {
  std::string host;
  double input = 0;    // seconds waiting for samples
  double arrival = 0;  // seconds from the start of a step to its wait for the others
};

// The settings that a study varies besides ranks and batches.
struct StudySetup {
  std::int64_t threads = 1;     // per rank; no effect on a GPU
  std::int64_t bucket_mib = 4;  // 0: chosen by measurement at the start
  std::string precision = "fp32";
  Exchange exchange = {};

  bool operator==(const StudySetup&) const = default;
};

// Steps with one rank count and one batch size.
struct StudyPoint {
  RankGrid grid;
  StudySetup setup;
  std::int64_t batch_per_rank = 0;
  std::int64_t memory_bytes = 0;     // tensors of a rank, maximum
  std::vector<double> step_seconds;  // per update, of the slowest rank, one per repeat
  std::vector<double> other_cores;   // cores of a node used by other programs, one per repeat; or empty
  std::array<std::vector<double>, step_part_count> parts;  // seconds, one per repeat; empty if not reported
  std::vector<Bucket> buckets;                             // in all-reduce order; empty if not reported
  std::vector<MeasuredAllReduce> sums;                     // empty with one rank
  std::vector<RankTimes> by_rank;                          // of the last repeat; empty if not reported

  bool has_parts() const { return !parts[0].empty(); }
  double part(StepPart part) const;  // seconds, the median of the repeats
  std::int64_t global_batch() const { return (grid.ranks - setup.exchange.servers) * batch_per_rank; }
};

// The accuracy of a fixed short recipe with one global batch, on any ranks.
struct BatchAccuracy {
  std::int64_t global_batch = 0;
  std::vector<double> accuracies = {};  // test accuracies as shares, one per seed
  std::string missing = {};             // why some or all are missing; empty: complete
};

struct Study {
  std::string model;
  std::int64_t parameters = 0;
  std::int64_t image_height = 0;
  std::int64_t image_width = 0;
  std::string input;              // "noise", or the folder of the shards
  std::string device;             // "cpu: AMD EPYC, AVX2, 1 thread", rank 0's
  StudySetup setup;               // default settings while ranks and batches vary
  std::string reducer;            // with the largest rank count
  std::int64_t cores = 0;         // of rank 0's node
  std::int64_t weak_batch = 0;    // samples per rank for weak scaling (the global batch grows)
  std::int64_t strong_batch = 0;  // samples of all ranks for strong scaling
  std::vector<StudyPoint> points;
  std::int64_t accuracy_epochs = 0;       // of the short recipe; 0: no training was run
  std::vector<BatchAccuracy> accuracies;  // ordered by batch
  std::map<std::string, std::string> versions;
  std::vector<std::string> hosts;  // by rank
  std::string command;
  std::string commit;
  std::string started;
  std::string ended;
};

// Whether the point has the study's default settings. Models are fitted to such points.
bool is_default_point(const Study& study, const StudyPoint& point);
// The largest rank count of any point.
int max_ranks_of(const Study& study);

enum class Scaling : std::uint8_t { weak, strong };
std::string_view name_of(Scaling scaling);  // "weak"

// The points of one kind of scaling, by rank count. A point may belong to both kinds.
std::vector<const StudyPoint*> points_of(const Study& study, Scaling scaling);

// Samples per second, with the confidence interval of the repeats.
Interval throughput_of(const StudyPoint& point);

// The global batches of all points, sorted and unique.
std::vector<std::int64_t> global_batches_of(const Study& study);
// The largest throughput with this global batch and default settings.
Interval best_throughput(const Study& study, std::int64_t global_batch);

// A setting that was varied alone, with the largest rank count and the batch of weak scaling.
enum class Sweep : std::uint8_t { threads, buckets, precision, exchange };
inline constexpr std::array<Sweep, 4> sweeps = {Sweep::threads, Sweep::buckets, Sweep::precision, Sweep::exchange};

// The default point first, then the others as measured. Empty if this setting was not varied.
std::vector<const StudyPoint*> points_of(const Study& study, Sweep sweep);
// The ratio of a point's throughput to that of `base`, computed repeat by repeat.
Interval speed_ratio(const StudyPoint& point, const StudyPoint& base);

// The throughput per rank as a share of that of `base`. Computed repeat by repeat, because the repeats of both points
// were interleaved.
Interval efficiency_of(const StudyPoint& point, const StudyPoint& base);
// For readers of a study, in lines for a terminal.
inline constexpr std::array<std::string_view, 2> efficiency_note = {
    "Efficiency: throughput per rank relative to the fewest ranks in the same repeat.",
    "It is a median over repeats, so the ratio of two printed rates can differ."};

}  // namespace lockstep
