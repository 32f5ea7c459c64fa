// Writes an HTML page about one training, or a comparison of several: results, curves, throughput, networks,
// earlier attempts, differences, machine and versions. With a data set, also the model's mistakes.
//
//   report runs/r20 --output r20.html
//   report runs/r20 runs/r20-wide --data data/cifar10 --output widths.html
#include <fmt/core.h>

#include <array>
#include <string_view>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/text/counted.hpp"
#include "dataset/split.hpp"
#include "files/result_file.hpp"
#include "launch/choice_option.hpp"
#include "launch/field_options.hpp"
#include "launch/hang_timeout.hpp"
#include "launch/number_option.hpp"
#include "launch/result_options.hpp"
#include "launch/run.hpp"
#include "models/model_zoo.hpp"
#include "report/evaluation_page.hpp"
#include "report/page/html.hpp"
#include "report/training_page.hpp"
#include "runtime/failure/contained_failure.hpp"
#include "search/search_overview.hpp"
#include "train/evaluation/model_fit.hpp"
#include "train/evaluation/model_test.hpp"
#include "train/pretrained/pretrained_model.hpp"
#include "train/pretrained/run_model.hpp"

using namespace lockstep;

namespace {

void require_place_for_page(const std::filesystem::path& file) {
  const auto begins_as_page = [](std::string_view start) { return start.starts_with(html_page_start); };
  static constexpr std::array<std::string_view, 2> endings = {".html", ".htm"};
  require_place_for_result(file, {"report", begins_as_page}, "--output", endings);
}

constexpr std::size_t max_pictures = 24;
constexpr std::int64_t max_pixels = 128;
constexpr std::size_t best_trials = 5;  // of a search

struct ReportOptions {
  std::vector<std::filesystem::path> folders;
  std::filesystem::path output;
  std::filesystem::path data;
  Split split = Split::test;
  int loader_threads = 1;
  HangTimeout hang_timeout;
  Settings settings;  // of the device, of image preprocessing, and of test-time augmentation

  void declare(CLI::App& app) {
    app.description("Writes a self-contained HTML page about a training, or a comparison of several.");
    app.add_option("RUN_FOLDER", folders,
                   "Output folders of trainings, or of searches, whose five best trials are compared")
        ->required()
        ->expected(1, max_runs)
        ->type_name("FOLDER");
    add_result(app, "--output", output, require_place_for_page, "HTML file to write")->required();
    CLI::Option* const data_option =
        app.add_option(
               "--data", data,
               "Folder made by make_shards: evaluate the best model of each training, and show confusions, worst "
               "classes and misclassified pictures")
            ->type_name("FOLDER");
    add_choice(app, "--split", splits, split, "Split to evaluate");
    add_number(app, "--loader-threads", loader_threads, {1, 256}, "Threads per rank that read samples")
        ->type_name("THREADS");
    declare_fields(app, settings, {FieldGroup::device, FieldGroup::resizing, FieldGroup::testing});
    for (const char* of_evaluation : {"--split", "--loader-threads", "--resize", "--decode", "--test-augment"}) {
      app.get_option(of_evaluation)->needs(data_option);
    }
    hang_timeout.declare(app);
    app.footer(
        "Examples:\n  report runs/r20 --output r20.html\n"
        "  report runs/r20 runs/r20-wide --data data/cifar10 --output widths.html");
  }
};

// Collective. Returns HTML on rank 0, where it also notes the network in `runs`.
std::string tested(const Session& session, const ReportOptions& options, const std::filesystem::path& folder,
                   std::vector<RunRecord>& runs) {
  RunModel model;
  const std::filesystem::path file = from_rank_0(session.world, [&] {
    model = model_of_run(folder);
    return model.file.string();
  });
  ModelTest test(session, {file, "", split_folder(options.data, options.split), options.settings.recipe.images,
                           options.loader_threads, options.settings.run.test_time_augmentation});
  const Evaluation evaluation = test.evaluate();
  if (session.world.rank() != 0) return "";
  for (RunRecord& run : runs) {
    if (run.name == folder) run.network = model_graph(model_options(test.file()));
  }
  const std::string heading = fmt::format("Evaluation: {}, {} split of '{}'", model.description,
                                          split_name(options.split), test.dataset().manifest().name);
  return evaluation_html(heading, evaluation, test.file().classes,
                         misclassified_images(evaluation, test.dataset(), test.rules(), max_pictures, max_pixels));
}

// With the best trials in place of a search.
std::vector<std::filesystem::path> training_folders(const ReportOptions& options) {
  std::vector<std::filesystem::path> folders;
  for (const std::filesystem::path& folder : options.folders) {
    if (!holds_search(folder)) {
      folders.push_back(folder);
      continue;
    }
    const std::vector<std::filesystem::path> best = best_trial_folders(folder, best_trials);
    folders.insert(folders.end(), best.begin(), best.end());
    log::info("'{}' is a search: its best {} are compared.", folder.string(), counted(best.size(), "trial"));
  }
  require(folders.size() <= max_runs, Failure::usage, "{} trainings are too many. Name at most {}.", folders.size(),
          max_runs);
  return folders;
}

// If there are several folders, skips those without a training and prints a warning.
std::vector<RunRecord> runs_of(const ReportOptions& options) {
  std::vector<RunRecord> runs;
  const std::vector<std::filesystem::path> folders = training_folders(options);
  for (const std::filesystem::path& folder : folders) {
    try {
      runs.push_back(read_run(folder));
    } catch (const Error& error) {
      if (folders.size() == 1 || error.failure() != Failure::usage) throw;
      log::warning("skipped: {}", error.what());
    }
  }
  require(!runs.empty(), Failure::usage, "none of the {} folders has a training. Choose output folders of trainings.",
          folders.size());
  return runs;
}

// Returns why a folder's model cannot be tested on the data, in a sentence; empty if it can.
std::string objection_to(const ReportOptions& options, const std::filesystem::path& folder) try {
  const Manifest data = read_manifest(split_folder(options.data, options.split));
  rules_for(read_pretrained_model(model_of_run(folder).file, "", data), data, options.settings.recipe.images);
  return "";
} catch (const Error& error) {
  return error.failure() == Failure::usage ? error.what() : "";
}

// Collective. With --data, the folders of `runs`, which rank 0 has. If there are several, skips those whose model
// cannot be tested on the data and prints a warning.
std::vector<std::filesystem::path> tested_folders(const Session& session, const ReportOptions& options,
                                                  const std::vector<RunRecord>& runs) {
  std::string names;
  for (const RunRecord& run : runs) {
    if (options.data.empty()) break;
    const std::string validation_error = runs.size() == 1 ? "" : objection_to(options, run.name);
    if (validation_error.empty())
      names += run.name + '\0';
    else
      log::warning("'{}' is not evaluated: {}", run.name, validation_error);
  }
  names = session.world.broadcast(names, 0);
  std::vector<std::filesystem::path> folders;
  for (std::size_t at = 0; at < names.size(); at += folders.back().string().size() + 1) {
    folders.emplace_back(names.c_str() + at);
  }
  return folders;
}

}  // namespace

int main(int argc, char** argv) {
  return run<ReportOptions>(argc, argv, [](Session& session, const ReportOptions& options) {
    if (!options.data.empty()) open_device(session, device_options(options.settings.recipe, options.settings.run));
    const bool writes = session.world.rank() == 0;
    std::vector<RunRecord> runs;
    on_rank_0(session.world, [&] { runs = runs_of(options); });
    std::string evaluations;
    for (const std::filesystem::path& folder : tested_folders(session, options, runs)) {
      evaluations += tested(session, options, folder, runs);
    }
    if (!writes) return;
    for (RunRecord& run : runs) {
      if (!run.network) run.network = network_of_run(run.name);
    }
    write_file_atomically(options.output, html_page(title_of(runs), training_html(runs, evaluations)));
    log::plain(fmt::format("{}: {}", options.output.string(), counted(runs.size(), "training")));
  });
}
