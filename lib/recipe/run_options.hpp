// How a training is run: folders of data and results, device, monitoring and checkpoints. These options do not change
// what is learned, except for last-bit rounding (see train/opening/resume_rules.hpp).
//
// One entry in recipe/fields.cpp makes each member an option and a field of summary.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "dataset/loading/loader.hpp"
#include "device/device.hpp"
#include "recipe/checkpoint_options.hpp"
#include "recipe/recipe.hpp"
#include "recipe/test_augmentation.hpp"

namespace lockstep {

// The device to compute on.
struct DeviceChoice {
  std::string name = "auto";  // auto | cpu | cuda
  int threads = 0;            // CPU: threads per rank; 0: an equal share of the available cores
  std::string instruction_set =
      "auto";                         // CPU: auto (the best here) | amx_bf16 | avx512_bf16 | avx512 | avx2 | baseline
  std::int64_t gpu_memory_mib = 0;    // GPU: memory for the tensors of a rank; 0: all that is free, or a share
  bool graphs = true;                 // GPU: capture the step as a graph and replay it
  bool deterministic = false;         // GPU: bitwise reproducible runs; implied by virtual ranks
  std::filesystem::path plan_folder;  // kernel choices kept between runs; empty: none are kept
  bool verbose = false;               // print the kernel chosen for each layer and direction
};

// How gradients are reduced over ranks.
struct ReducerOptions {
  std::string reducer = "auto";  // auto | nccl | mpi | shared
  std::int64_t bucket_mib = 4;   // 0: chosen from the latency and bandwidth measured at the start
  int servers = 1;               // with Sync::servers: ranks without samples, which update the weights
  int trainers = 0;              // with servers: programs of their own; 0: the other ranks are trainers
  bool shard_optimizer = false;  // each rank keeps only its part of the optimizer state and the EMA (ZeRO stage 1)
};

struct RunOptions {
  std::filesystem::path data;         // contains train/ and test/
  std::filesystem::path stage;        // copies of the data on the node's local disk; empty: the data are read in place
  std::filesystem::path output;       // empty: no output is written
  std::filesystem::path trainer_of;   // the output of another training, whose trainer this is; empty: it trains itself
  std::filesystem::path tensorboard;  // folder for TensorBoard event files; empty: none are written
  std::filesystem::path trace;        // folder for a trace of each attempt; empty: no traces
  std::string note;                   // the user's description of the training, kept in its records
  std::vector<std::string> tags;      // the user's tags, each KEY=VALUE
  DataPlace data_place = DataPlace::automatic;
  int loader_threads = 1;
  DeviceChoice device;
  ReducerOptions sums;
  TestTimeAugmentation test_time_augmentation = TestTimeAugmentation::plain;
  std::int64_t test_every = 1;        // epochs; the end is always tested
  std::int64_t report_every = 50;     // steps
  std::int64_t audit_every = 500;     // steps between two audits of the ranks' weights; 0: never
  double hang_timeout_seconds = 300;  // 0: no limit
  CheckpointOptions checkpoints;
  std::optional<double> time_limit_seconds;  // from the start of train()
};

// All settings of a training.
struct Settings {
  Recipe recipe;
  RunOptions run;
};

// Settings that are valid for some data, ranks and device. train() takes no others: so the command line refuses before
// a device is opened, --print-recipe prints only what a training accepts, and no other caller can omit the check.
class ValidSettings {
 public:
  // With Sync::servers, trainers that are programs of their own are virtual ranks by default. Throws Error(usage) for
  // an unknown model, images that would shrink, a batch given in two ways, a warm-up as long as the training.
  explicit ValidSettings(Settings settings);

  const Recipe& recipe() const { return settings_.recipe; }
  const RunOptions& run() const { return settings_.run; }

 private:
  Settings settings_;
};

// Device options for these settings. Virtual ranks imply a deterministic device, because identical bits on any number
// of ranks require identical bits in every run.
DeviceOptions device_options(const Recipe& recipe, const RunOptions& run);
// The arithmetic that the device uses. A device ignores options that only another kind of device supports.
Arithmetic arithmetic_of(const Device& device);
// Throws Error(usage) if `device` was opened for another recipe: if it uses arithmetic that this recipe does not allow,
// or chooses kernels nondeterministically although virtual ranks are used.
void require_follows(const Device& device, const Recipe& recipe);

// How many of a training's ranks have no samples although others have. 0 if trainers are programs of their own.
int servers_of(const Settings& settings);

// Throws Error(usage) if virtual ranks are combined with a reduced-precision wire.
AllReduceOptions all_reduce_options(const Recipe& recipe, const RunOptions& run);

}  // namespace lockstep
