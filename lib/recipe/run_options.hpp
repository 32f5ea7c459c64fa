// How a training is run: where its data and results lie, on what it computes, how it is watched and when it is saved.
// Nothing here changes what is learned, except for the last bits where a place rounds otherwise (see
// train/resume_rules.hpp).
//
// Each member is an option and a field of summary.json by one entry in recipe/fields.cpp.
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

namespace lockstep {

// What to compute on.
struct DeviceChoice {
  std::string name = "auto";  // auto | cpu | cuda
  int threads = 0;            // CPU: threads of this rank; 0: its share of the cores it may use
  std::string instruction_set =
      "auto";                         // CPU: auto (the best here) | amx_bf16 | avx512_bf16 | avx512 | avx2 | baseline
  bool graphs = true;                 // GPU: record the step once and repeat it
  bool deterministic = false;         // GPU: the same bits in every run; virtual ranks imply it
  std::filesystem::path plan_folder;  // of kernel choices kept between runs; empty: none are
  bool verbose = false;               // print the kernel chosen for each layer and direction
};

// How gradients are summed over ranks.
struct ReducerOptions {
  std::string reducer = "auto";  // auto | nccl | mpi | shared
  std::int64_t bucket_mib = 4;   // 0: by the latency and bandwidth of sums, measured at the start
};

// What the prediction of a test rests on: the picture, or the mean of logits of it and its mirror image.
enum class TestTimeAugmentation : std::uint8_t { plain, flip };

struct RunOptions {
  std::filesystem::path data;         // holds train/ and test/
  std::filesystem::path stage;        // of copies of the data on the node's own disk; empty: read where they lie
  std::filesystem::path output;       // empty: nothing is written
  std::filesystem::path tensorboard;  // folder for what TensorBoard shows; empty: nothing is written
  std::filesystem::path trace;        // folder for a trace of each attempt; empty: none is kept
  std::string note;                   // what the training is, in the user's words, for the records
  std::vector<std::string> tags;      // likewise: KEY=VALUE each
  DataPlace data_place = DataPlace::automatic;
  int loader_threads = 1;
  DeviceChoice device;
  ReducerOptions sums;
  TestTimeAugmentation test_time_augmentation = TestTimeAugmentation::plain;
  std::int64_t report_every = 50;     // steps
  std::int64_t audit_every = 500;     // steps between two comparisons of the ranks' weights; 0: never
  double hang_timeout_seconds = 300;  // 0: a rank may stand still for ever
  CheckpointOptions checkpoints;
  std::optional<double> time_limit_seconds;  // from the moment that the Trainer is made
};

// A training as a user states it.
struct Settings {
  Recipe recipe;
  RunOptions run;
};

// Throws Error(usage) on what no data, ranks or device could make right: a model that there is not, images that would
// shrink, batches that are stated in two ways, a warm-up as long as the training.
void require_possible(const Recipe& recipe, const RunOptions& run);

// The device that follows both. With virtual ranks it is deterministic: the same bits on any number of ranks are the
// same bits in every run.
DeviceOptions device_options(const Recipe& recipe, const RunOptions& run);
// How it rounds, as it was told to; a device leaves out what only another kind of device can do.
Arithmetic arithmetic_of(const Device& device);
// Throws Error(usage) if `device` was opened for another recipe: it rounds as this one does not ask for, or chooses
// kernels by the day where virtual ranks promise the same bits.
void require_follows(const Device& device, const Recipe& recipe);

// Throws Error(usage) where virtual ranks and a rounding wire are asked for at once.
AllReduceOptions all_reduce_options(const Recipe& recipe, const RunOptions& run);

}  // namespace lockstep
