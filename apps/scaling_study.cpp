// Measures how training scales: steps on 1, 2, 4, ... of a job's ranks, with a constant batch per rank (weak scaling)
// and a constant global batch (strong scaling). Splits the step time into parts, judges it and predicts it.
//
//   mpirun -n 4 scaling_study --model resnet20 --output study
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "backend/versions.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/progress.hpp"
#include "dataset/same_data.hpp"
#include "dataset/split.hpp"
#include "device/cpu/threads/threads.hpp"
#include "device/precision.hpp"
#include "files/folder/folder_lock.hpp"
#include "files/folder/set_aside.hpp"
#include "files/result_file.hpp"
#include "launch/choice_option.hpp"
#include "launch/common_instruction_set.hpp"
#include "launch/exchange_options.hpp"
#include "launch/field_options.hpp"
#include "launch/hang_timeout.hpp"
#include "launch/local_gpus.hpp"
#include "launch/number_option.hpp"
#include "launch/run.hpp"
#include "models/model_zoo.hpp"
#include "report/page/html.hpp"
#include "runtime/failure/contained_failure.hpp"
#include "scaling/measuring/measure_point.hpp"
#include "scaling/measuring/train_batch.hpp"
#include "scaling/study_file.hpp"
#include "scaling/study_page.hpp"
#include "scaling/study_points.hpp"
#include "scaling/study_table.hpp"

using namespace lockstep;

namespace {

struct StudyOptions {
  std::filesystem::path output;
  std::filesystem::path data;
  std::string model = "resnet20";
  std::optional<std::int64_t> image_size;
  std::int64_t classes = 10;
  std::int64_t channels = 3;
  std::vector<int> ranks;
  std::int64_t batch_per_rank = 32;
  std::optional<std::int64_t> global_batch;
  std::int64_t repeats = 5;
  double seconds = 2;
  int loader_threads = 1;
  SweptValues swept;
  std::filesystem::path accuracy_data;
  std::int64_t accuracy_epochs = 3;
  std::int64_t accuracy_seeds = 3;
  double accuracy_rate = 0.2;
  HangTimeout hang_timeout;
  Settings settings;  // of the device and the all-reduce

  void declare(CLI::App& app) {
    app.description(
        "Measures weak and strong scaling of training: times the parts of a step on 1, 2, 4, ... ranks, and finds what "
        "limits the speed.");
    constexpr NumberRange<std::int64_t> count{1, std::int64_t{1} << 20};
    app.option_defaults()->group(heading_of(FieldGroup::output));
    app.add_option("--output", output, "Folder for study.json, study.csv and report.html")
        ->required()
        ->type_name("FOLDER");
    app.option_defaults()->group("Workload");
    app.add_option("--data", data, "Folder made by make_shards (default: one batch of noise)")->type_name("FOLDER");
    app.add_option("--model", model, "Network: " + known_models())
        ->type_name("NAME")
        ->check(CLI::Validator(known_models()));
    add_number(app, "--image-size", image_size, count, "Height and width of the input (default: from --data, else 32)")
        ->type_name("PIXELS");
    add_number(app, "--channels", channels, {1, 16}, "Without --data: channels of the input")->type_name("COUNT");
    add_number(app, "--classes", classes, count, "Without --data: number of classes")->type_name("COUNT");
    add_number(app, "--loader-threads", loader_threads, {1, 256}, "Threads per rank that read samples")
        ->type_name("THREADS");
    app.option_defaults()->group("Measurement");
    add_numbers(app, "--ranks", ranks, {1, 1 << 20},
                "Rank counts to measure (default: 1, 2, 4, ... and all ranks of the job)")
        ->type_name("COUNT")
        ->delimiter(',');
    add_number(app, "--batch-per-rank", batch_per_rank, count, "Weak scaling: samples per rank and step")
        ->type_name("SAMPLES");
    add_number(
        app, "--global-batch", global_batch, count,
        "Strong scaling: samples per step (default: --batch-per-rank, rounded up so that all rank counts divide it)")
        ->type_name("SAMPLES");
    add_number(app, "--repeats", repeats, {1, 100}, "Measurements per rank count and batch, in turn")
        ->type_name("COUNT");
    add_number(app, "--seconds", seconds, {0.01, 3600}, "Approximate time per measurement")->type_name("SECONDS");
    app.option_defaults()->group("Sweeps");
    const std::string largest = " to measure, on the largest rank count with --batch-per-rank";
    add_numbers(app, "--sweep-threads", swept.threads, {1, 4096}, "Further values of --threads" + largest)
        ->type_name("THREADS")
        ->delimiter(',');
    add_numbers(app, "--sweep-bucket-mib", swept.bucket_mib, {0, 1024}, "Further values of --bucket-mib" + largest)
        ->type_name("MIB")
        ->delimiter(',');
    add_choices(app, "--sweep-precision", precisions, swept.precision, "Further values of --precision" + largest)
        ->delimiter(',');
    add_exchanges(app, "--sweep-", swept.exchange, largest);
    app.option_defaults()->group("Accuracy");
    app.add_option("--accuracy-data", accuracy_data,
                   "Folder made by make_shards: also run short trainings on it with each global batch, on all ranks")
        ->type_name("FOLDER");
    add_number(app, "--accuracy-epochs", accuracy_epochs, {1, 10000}, "Epochs per training")->type_name("COUNT");
    add_number(app, "--accuracy-seeds", accuracy_seeds, {1, 100}, "Trainings per global batch, with different seeds")
        ->type_name("COUNT");
    add_number(app, "--accuracy-rate", accuracy_rate, {1e-6, 1e3},
               "Peak learning rate at a global batch of 128; networks without batch norm need less")
        ->type_name("RATE");
    declare_fields(app, settings, {FieldGroup::device, FieldGroup::reduction});
    hang_timeout.declare(app);
    app.footer(
        "Examples:\n  mpirun -n 4 scaling_study --output study\n"
        "  mpirun -n 8 scaling_study --data data/cifar10 --model resnet18 --output study");
  }
};

// Collective. Every point opens a device of its own. All of them use the same number of threads, and warnings about
// threads are printed once.
DeviceOptions place_device(const Communicator& world, const StudyOptions& options) {
  DeviceOptions device = device_options(options.settings.recipe, options.settings.run);
  place_on_node(world, device);
  choose_common_instruction_set(world, device);
  const bool is_cpu = device.name == "cpu" || (device.name == "auto" && visible_gpus().empty());
  if (!is_cpu) return device;
  device.name = "cpu";
  device.threads = cpu::choose_threads(device.threads, device.local_rank, device.local_size);
  device.local_rank = std::max(device.local_rank, 1);  // because local rank 0 would repeat the warnings
  return device;
}

struct Files {
  std::unique_ptr<FolderLock> lock;
  std::filesystem::path study;
  std::filesystem::path table;
  std::filesystem::path page;
};

bool begins_as_page(std::string_view start) { return start.starts_with(html_page_start); }

// Called on rank 0, before the measurements.
Files place_files(const StudyOptions& options) {
  Files files{std::make_unique<FolderLock>(options.output, "--output"), options.output / study_file,
              options.output / "study.csv", options.output / "report.html"};
  require_place_for_result(files.study, {"scaling study", begins_as_study}, "--output");
  require_place_for_result(files.table, {"table of a scaling study", begins_as_study_csv}, "--output");
  require_place_for_result(files.page, {"report", begins_as_page}, "--output");
  return files;
}

// Collective.
std::unique_ptr<Dataset> open_data(const Communicator& world, const StudyOptions& options) {
  if (options.data.empty()) return nullptr;
  require_same_data(world, options.data);
  return std::make_unique<Dataset>(split_folder(options.data, Split::train));
}

// `device` has been placed on its node.
PointSettings settings_of(const StudyOptions& options, const Dataset* data, DeviceOptions device) {
  const Recipe& recipe = options.settings.recipe;
  const std::int64_t side = options.image_size.value_or(32);
  PointSettings settings;
  settings.model = {options.model, {side, side, options.channels}, options.classes};
  if (data != nullptr) {
    ImageOptions images;
    images.side = options.image_size;
    settings.input = {data, training_rules(images, data->manifest(), 0), options.loader_threads,
                      options.settings.run.data_place};
    const PictureSize size = settings.input.rules.size;
    settings.model.sample = {size.height, size.width, data->manifest().shape.channels};
    settings.model.classes = static_cast<std::int64_t>(data->manifest().classes.size());
  }
  settings.device = std::move(device);
  settings.sums = all_reduce_options(recipe, options.settings.run);
  settings.seconds = options.seconds;
  return settings;
}

// Collective.
Study begin_study(const Session& session, const StudyOptions& options, const PointSettings& settings,
                  const std::vector<int>& counts) {
  Study study;
  study.model = options.model;
  study.image_height = settings.model.sample.height;
  study.image_width = settings.model.sample.width;
  study.input = options.data.empty() ? "noise" : options.data.string();
  study.setup = {settings.device.threads, options.settings.run.sums.bucket_mib,
                 precision_name(options.settings.recipe.arithmetic.precision)};
  study.cores = cpu::observe_cores(session.world.local_size()).node_cores;
  study.weak_batch = options.batch_per_rank;
  study.strong_batch = options.global_batch ? *options.global_batch : default_strong_batch(study.weak_batch, counts);
  study.hosts = session.world.all_gather(log::host());
  study.versions = versions_used(settings.device.name == "cpu" ? std::vector<LibraryVersion>() : backend_libraries());
  for (const std::string& word : session.invocation.command_line) {
    study.command += (study.command.empty() ? "" : " ") + word;
  }
  study.commit = session.invocation.commit;
  study.started = utc_time();
  return study;
}

void write(const Files& files, const Study& study) {
  files.lock->require_held();
  write_file_atomically(files.study, study_text(study));
  write_file_atomically(files.table, study_csv(study));
  write_file_atomically(files.page, study_page(study));
}

// A full disk does not stop the study, which is written again at the end.
void write_so_far(const Files& files, const Study& study) {
  try {
    write(files, study);
  } catch (const Error& error) {
    log::warning("{} The study continues.", error.what());
  }
}

// Moves the study of an earlier run aside.
void set_aside(const Files& files) {
  SetAside old(*files.lock);
  for (const std::filesystem::path& file : {files.study, files.table, files.page}) old.move(file.filename().string());
  if (!old.path().empty()) log::info("the previous study was moved to '{}'", old.path().string());
}

// Collective. Ranks other than the first `ranks` sleep meanwhile.
std::optional<MeasuredPoint> measure_on_first(const Communicator& world, int ranks, const PointSettings& settings) {
  enum Half : std::uint8_t { working, waiting };
  const Half half = world.rank() < ranks ? working : waiting;
  std::optional<MeasuredPoint> measured;
  {
    const Communicator part = world.split(half, world.rank());
    if (half == working) measured = measure_point(part, settings);
  }
  world.barrier();
  return measured;
}

// Sets only values that differ from the default, because each rank may have its own number of threads.
PointSettings varied(PointSettings settings, const StudySetup& usual, const PlannedPoint& point) {
  settings.batch_per_rank = point.batch_per_rank;
  const auto threads = static_cast<int>(point.setup.threads);
  if (point.setup.threads != usual.threads) settings.device.threads = threads;
  settings.sums.bucket_bytes = point.setup.bucket_mib << 20;
  settings.exchange = point.setup.exchange;
  if (point.setup.precision != usual.precision) {
    settings.device.precision = find_choice(precisions, point.setup.precision)->value;
  }
  return settings;
}

AccuracySettings accuracy_settings(const StudyOptions& options, const DeviceOptions& device) {
  AccuracySettings settings{options.settings, device, options.accuracy_epochs, options.accuracy_seeds,
                            options.accuracy_rate};
  settings.training.recipe.model = options.model;
  settings.training.recipe.images.side = options.image_size;
  settings.training.run.data = options.accuracy_data;
  settings.training.run.loader_threads = options.loader_threads;
  return settings;
}

// Collective. Writes the study after each training, so that an interruption loses only the current one.
void study_accuracy(const Session& session, const AccuracySettings& settings, const Files& files, Study& study) {
  study.accuracy_epochs = settings.epochs;
  // Only rank 0 knows all points.
  const std::string batches = session.world.all_gather(fmt::format("{}", fmt::join(global_batches_of(study), " ")))[0];
  for (std::istringstream words(batches); !words.eof();) {
    words >> study.accuracies.emplace_back().global_batch;
    study.accuracies.back().missing = "not all seeds are trained yet";
  }
  for (BatchAccuracy& batch : study.accuracies) {
    for (std::int64_t seed = 0; seed < settings.seeds; ++seed) {
      train_seed(session.world, settings, batch);
      if (std::ssize(batch.accuracies) <= seed) break;
      if (seed + 1 < settings.seeds) batch.missing = "not all seeds are trained yet";
      study.ended = utc_time();
      if (session.world.rank() == 0) write_so_far(files, study);
    }
  }
}

void study_scaling(Session& session, const StudyOptions& options) {
  const Communicator& world = session.world;
  Files files;
  on_rank_0(world, [&] { files = place_files(options); });
  const std::unique_ptr<Dataset> data = open_data(world, options);
  PointSettings settings = settings_of(options, data.get(), place_device(world, options));

  require(options.swept.threads.empty() || settings.device.name == "cpu", Failure::usage,
          "--sweep-threads applies to CPUs only, because GPUs do not compute with CPU threads. Leave it out, or add "
          "--device cpu.");
  require(settings.device.name == "cpu" || std::ranges::all_of(options.swept.exchange, runs_on_gpus), Failure::usage,
          "--sweep-servers and --sweep-compress apply to CPUs only. Leave them out, or add --device cpu.");

  if (!options.accuracy_data.empty()) read_manifest(split_folder(options.accuracy_data, Split::train));

  const std::vector<int> counts = options.ranks.empty() ? default_rank_counts(world.size()) : options.ranks;
  Study study = begin_study(session, options, settings, counts);
  std::vector<PlannedPoint> planned = plan_points(counts, world.size(), study.weak_batch, study.strong_batch);
  for (PlannedPoint& point : planned) point.setup = study.setup;
  const int most = std::ranges::max(counts);
  std::ranges::copy(plan_sweeps({most, study.weak_batch, study.setup}, options.swept), std::back_inserter(planned));
  study.points.resize(planned.size());

  if (world.rank() == 0) set_aside(files);
  Progress progress("study", options.repeats * static_cast<std::int64_t>(planned.size()), "measurements");
  for (std::int64_t repeat = 0; repeat < options.repeats; ++repeat) {
    for (std::size_t index = 0; index < planned.size(); ++index) {
      const std::optional<MeasuredPoint> measured =
          measure_on_first(world, planned[index].ranks, varied(settings, study.setup, planned[index]));
      if (measured) {
        add_repeat(study.points[index], measured->point);
        study.parameters = measured->parameters;
        study.points[index].setup = planned[index].setup;
        if (planned[index].setup == study.setup) {
          study.device = measured->device;
          study.reducer = measured->reducer;  // the last point has the most ranks
        }
      }
      progress.add(1);
    }
    study.ended = utc_time();
    if (world.rank() == 0) write_so_far(files, study);
  }
  progress.finish();
  if (!options.accuracy_data.empty()) {
    study_accuracy(session, accuracy_settings(options, settings.device), files, study);
  }
  if (world.rank() != 0) return;
  log::plain(study_table(study) + '\n');
  log::plain(study_sentences(study));
  write(files, study);
  log::info("wrote '{}', with study.json and study.csv in the same folder", files.page.string());
}

}  // namespace

int main(int argc, char** argv) { return run<StudyOptions>(argc, argv, study_scaling); }
