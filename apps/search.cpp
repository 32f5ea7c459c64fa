// Searches hyperparameters: runs many trainings, judges them early, and continues after any interruption.
//
//   search space.yaml --dry-run
//   search space.yaml --output runs/search
//   search --report runs/search
//   mpirun -n 8 search space.yaml --output runs/search
//   search experiment.yaml --program train_cifar --arguments "--data data/cifar10"
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>

#include "backend/backend.hpp"
#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/io/partial_file.hpp"
#include "base/log.hpp"
#include "base/text/counted.hpp"
#include "files/folder/folder_lock.hpp"
#include "job/job_environment.hpp"
#include "launch/choice_option.hpp"
#include "launch/run_outside_ranks.hpp"
#include "search/hparams/trial_events.hpp"
#include "search/journal/search_array.hpp"
#include "search/journal/shared_search.hpp"
#include "search/page/search_page.hpp"
#include "search/remove_checkpoints.hpp"
#include "search/results_table.hpp"
#include "search/search_file.hpp"
#include "search/search_run.hpp"
#include "search/search_text.hpp"
#include "search/trial/rank_places.hpp"
#include "search/trial/trial_command.hpp"
#include "search/trial/trial_launch.hpp"
#include "search/trial/trial_result.hpp"
#include "slurm/submit/blocked_signals.hpp"
#include "slurm/submit/sbatch_run.hpp"
#include "slurm/submit/submission.hpp"

using namespace lockstep;

namespace {

struct SearchOptions {
  std::filesystem::path space;
  StatedCommand command;
  std::filesystem::path output;
  std::filesystem::path report;
  std::string group;
  bool is_array = false;
  std::vector<std::string> sbatch_options;
  std::filesystem::path tensorboard;
  bool dry_run = false;
  bool describes = false;
  TrialLauncher launcher = TrialLauncher::automatic;
  bool oversubscribes = false;

  void declare(CLI::App& app) {
    app.description(
        "Searches hyperparameters: runs trainings as commands, judges them early, and continues when it is called "
        "again.");
    auto* const space_file =
        app.add_option("SPACE", space, "Search file, or experiment file of Determined, in YAML (see apps/search.md)")
            ->type_name("FILE");
    app.add_option("--program", command.program, "Program of the trials, instead of the file's 'program'")
        ->type_name("NAME")
        ->needs(space_file);
    app.add_option("--arguments", command.arguments, "Options of all trials, instead of the file's 'arguments'")
        ->type_name("WORDS")
        ->needs(space_file);
    app.add_option("--output", output, "Folder of the search (default: the file's name without its ending)")
        ->type_name("FOLDER");
    add_choice(app, "--launcher", trial_launchers, launcher,
               "What starts trials of several ranks; auto: srun in a Slurm job, else mpirun");
    app.add_flag("--oversubscribe", oversubscribes,
                 "Let a trial that mpirun starts have more ranks than this node has cores");
    app.add_option("--join", group,
                   "Share the search with other processes that join GROUP, such as tasks of a job array")
        ->type_name("GROUP")
        ->check([](const std::string& name) -> std::string {
          return name.empty() ? "'' is not the name of a group (is a variable unset?)" : "";
        });
    app.add_flag("--array", is_array, "Submit the search as a job array of Slurm, whose tasks share it")
        ->excludes(app.get_option("--join"));
    app.add_option("OPTIONS", sbatch_options, "With --array, after --: options of sbatch, one word each");
    app.add_flag(
        "--dry-run", dry_run,
        "Check the file, print trials, rungs and cost (with --array: and the sbatch command), and start nothing");
    app.add_flag("--describe", describes, "Explain how the searcher decides, and start nothing");
    app.add_option("--tensorboard", tensorboard,
                   "Also write TensorBoard events to this folder: hyperparameters and results of each trial, and in "
                   "'trial-N/training' those of its training")
        ->type_name("FOLDER")
        ->excludes(app.get_option("--join"))
        ->excludes(app.get_option("--array"));
    app.add_option("--report", report,
                   "Write the page 'search.html' of the search in this folder, also while it runs, and start nothing")
        ->type_name("FOLDER")
        ->excludes(space_file);
    app.footer(
        "Examples:\n  search space.yaml --dry-run\n  search space.yaml --output runs/search\n"
        "  search --array space.yaml --output runs/search -- --time=2:00:00\n  search --report runs/search\n"
        "  mpirun -n 8 search space.yaml\n"
        "  search experiment.yaml --program train_cifar --arguments \"--data data\"");
  }
};

// Epochs trained so far, or steps of a custom training loop, over all trials.
double trained_epochs(TrialCommands& commands, const Space& space, const std::map<std::int64_t, TrialRecord>& trials) {
  double epochs = 0;
  for (const auto& [number, trial] : trials) {
    if (trial.steps == 0) continue;
    const TrialLength length = commands.length(trial.settings, space.searcher.max_length);
    epochs += static_cast<double>(trial.steps) / static_cast<double>(length.steps_per_epoch);
  }
  return epochs;
}

// The code of all trials if it is the same, else 1.
Failure common_failure(const std::map<std::int64_t, TrialRecord>& trials) {
  const int code = trials.begin()->second.code;
  const bool is_same = std::ranges::all_of(trials, [&](const auto& trial) { return trial.second.code == code; });
  return is_same ? failure_of_code(code) : Failure::other;
}

void require_not_stopped(bool has_ended) {
  require(has_ended, Failure::stopped_early, "the search was stopped. The same command continues it.");
}

// One screen with its title.
constexpr std::size_t shown_results = 20;

// The best trial's model becomes best.h5. False if a signal stops a repetition of the trial.
bool keep_best(SearchRun& search, std::int64_t number) {
  const SearchFolder& folder = search.folder();
  if (is_absent(folder.model(number)) && !search.repeat(number)) return false;
  folder.keep_best_model(number, search.trials().at(number).steps);
  return true;
}

void conclude(SearchRun& search, TrialCommands& commands, const Space& space, std::vector<std::string> launch,
              const SharedSearch* shared) {
  const std::map<std::int64_t, TrialRecord>& trials = search.trials();
  log::forwarded(results_table(space, trials, shown_results));
  const std::optional<std::int64_t> number = best_trial(space, trials);
  require(!trials.empty(), Failure::usage, "the searcher's program has proposed no trial.");
  require(number.has_value(), common_failure(trials),
          "no trial has a result, and failed trials are not repeated. Remove the cause, and choose another --output. "
          "Trial 1: {}",
          trials.begin()->second.reason);
  if (!space.has_custom_loop()) require_not_stopped(keep_best(search, *number));  // it writes no model file
  std::unique_ptr<JournalLock> lock = shared ? shared->lock_journal() : nullptr;  // others remove them, too
  const RemovedCheckpoints removed = remove_checkpoints(space, search.folder(), trials);
  lock.reset();
  if (removed.files > 0) {
    log::info("removed {} of ended trials, {} MiB.", counted(removed.files, "checkpoint"), removed.bytes >> 20);
  }
  const TrialRecord& best = trials.at(*number);
  TrialLength length = commands.length(best.settings, space.searcher.max_length);
  length.steps = best.steps;
  std::ranges::copy(commands.words(best.settings, length, "OUTPUT", 0), std::back_inserter(launch));
  log::info("{}, {:.1f} {} in total.", counted(trials.size(), "trial"), trained_epochs(commands, space, trials),
            cost_unit(space));
  log::info("best: trial {}, {} {} after {} steps. {}: '{}'", *number, metric_name(space.metric),
            metric_text(space, *best.metric), best.steps, space.has_custom_loop() ? "Its output" : "Model",
            (space.has_custom_loop() ? search.folder().trial(*number) : search.folder().best_model()).string());
  log::info("its command: {}", shell_command(launch));
}

// srun would take them for requests of each step.
void forget_requests_of_the_job() {
  for (const char* name : {"SLURM_GPUS", "SLURM_GPUS_PER_NODE", "SLURM_GPUS_PER_TASK", "SLURM_GPUS_PER_SOCKET",
                           "SLURM_GRES", "SLURM_TRES_PER_TASK", "SLURM_TRES_BIND"}) {
    ::unsetenv(name);  // NOLINT(concurrency-mt-unsafe): no thread yet
  }
}

// The search's results do not depend on it.
void try_write_page(const std::filesystem::path& folder) try { write_search_page(folder); } catch (const Error& error) {
  log::warning("the search's page is not written: {} Call search --report {}.", error.what(), folder.string());
}

int show_plan(const SearchOptions& options, TrialCommands& commands, const SearchFile& file) {
  const Space& space = file.space;
  const TrialLength whole = commands.length(trial_settings(space, 1), space.searcher.max_length);
  const double epochs = static_cast<double>(whole.steps) / static_cast<double>(whole.steps_per_epoch);
  const std::string translated = translation_text(file.translation);
  if (options.dry_run && !translated.empty()) log::plain(translated + "\n");
  if (options.dry_run) log::plain(plan_text(space, static_cast<double>(space.searcher.max_length) / epochs));
  if (options.describes) log::plain(description_text(space));
  return 0;
}

std::vector<std::string> sbatch_command(const SearchOptions& options, const Space& space,
                                        const std::filesystem::path& folder) {
  std::vector<std::string> arguments = {options.space.string(), "--output", folder.string()};
  if (options.command.program) arguments.push_back("--program=" + *options.command.program);
  if (options.command.arguments) arguments.push_back("--arguments=" + *options.command.arguments);
  if (options.launcher != TrialLauncher::automatic) {
    arguments.insert(arguments.end(), {"--launcher", std::string(choice_name(trial_launchers, options.launcher))});
  }
  if (options.oversubscribes) arguments.emplace_back("--oversubscribe");
  return array_command(space, job_scripts_folder(), options.sbatch_options, arguments);
}

int submit_array(const std::vector<std::string>& command) {
  BlockedSignals signals;
  return run_sbatch(command, "", nullptr, signals);
}

int run_search(const SearchOptions& options, const RankPlaces* ranks) {
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond `ulimit -f` fails with an error instead
  if (!options.report.empty()) {
    write_search_page(options.report);
    log::plain((options.report / "search.html").string());
    return 0;
  }
  require(!options.space.empty(), Failure::usage, "SPACE is missing. Name a search file, or use --report FOLDER.");
  require(options.is_array || options.sbatch_options.empty(), Failure::usage,
          "'{}' has no effect without --array, which passes it to sbatch. Add --array, or leave it out.",
          fmt::join(options.sbatch_options, " "));
  require(this_job().launcher == Launcher::none || ranks != nullptr, Failure::usage,
          "search starts the ranks of its trials itself, but {} has started it. Call it without {}, or with mpirun.",
          launcher_name(this_job().launcher), launcher_name(this_job().launcher));
  forget_requests_of_the_job();
  const SearchFile file = read_search_file(options.space, options.command);
  const Space& space = file.space;
  for (const std::string& note : file.translation.notes) log::info(note);
  for (const std::string& warning : file.translation.warnings) log::warning(warning);
  for (const std::string& warning : space.warnings) log::warning(warning);
  const bool is_shared = options.is_array || !options.group.empty();
  require(!is_shared || space.searcher.kind != SearcherKind::custom, Failure::usage,
          "a custom searcher's program decides for one process. Leave out --array and --join: trials run at the same "
          "time in one job, too.");
  TrialCommands commands(space, run_to_end);
  const std::filesystem::path folder = options.output.empty() ? options.space.stem() : options.output;
  if (options.is_array) {
    const std::vector<std::string> command = sbatch_command(options, space, folder);
    if (!options.dry_run) return submit_array(command);
    show_plan(options, commands, file);
    log::plain(shell_command(command));
    return 0;
  }
  const TrialPlaces places = trial_places(
      space, options.launcher, this_job(), run_to_end, [] { return visible_gpus().size(); },
      options.oversubscribes ? Oversubscribe::yes : Oversubscribe::no, ranks);
  if (options.dry_run || options.describes) return show_plan(options, commands, file);
  SignalQueue signals;  // before the lock's thread starts
  std::optional<FolderLock> lock;
  std::optional<SharedSearch> shared;
  if (options.group.empty()) {
    lock.emplace(folder, "--output");
    require_no_other_group(folder, "");
    remove_partial_files(folder);  // of a call that was killed
  } else {
    shared.emplace(folder, options.group);
  }
  std::optional<TrialEvents> events;
  if (!options.tensorboard.empty()) events.emplace(space, folder, options.tensorboard);
  SearchRun search(space, commands, places, signals, folder,
                   {lock ? &*lock : nullptr, shared ? &*shared : nullptr, events ? &*events : nullptr});
  if (search.is_continued() && search.is_open()) log::forwarded(results_table(space, search.trials(), shown_results));
  if (search.is_open()) {
    log::info("trains up to {} at the same time, in '{}'. Their output: trial-N.log. Results follow.",
              counted(places.at_once, "trial"), folder.string());
  }
  const bool has_ended = search.run();
  try_write_page(folder);
  require_not_stopped(has_ended);
  conclude(search, commands, space, places.launch, shared ? &*shared : nullptr);
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  std::optional<RankPlaces> ranks;
  if (this_job().launcher == Launcher::mpirun) {
    ranks = take_rank_places(argc, argv);
    if (!ranks) return 0;
  }
  return run_outside_ranks<SearchOptions>(argc, argv, [&](const SearchOptions& options) {
    return with_exit_report([&] { return run_search(options, ranks ? &*ranks : nullptr); });
  });
} catch (const Error& error) {  // of MPI's start
  log::error(error.what());
  return error.exit_code();
}
