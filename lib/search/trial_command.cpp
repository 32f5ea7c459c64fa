#include "search/trial_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/text/json_text.hpp"
#include "base/text/printable.hpp"
#include "dataset/shards/manifest.hpp"
#include "recipe/fields.hpp"
#include "search/space_reader.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr int not_started = 127;
constexpr int not_executable = 126;
constexpr std::array batch_options =
    std::to_array<std::string_view>({"global-batch", "batch-per-rank", "accumulate", "virtual-ranks", "recipe"});

bool states(const std::vector<std::string>& words, std::string_view option) {
  return std::ranges::find(words, option, option_of) != words.end();
}

std::string value_of(const std::vector<std::string>& words, std::string_view option) {
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (option_of(*word) != option) continue;
    if (const std::size_t place = word->find('='); place != std::string::npos) return word->substr(place + 1);
    if (std::next(word) != words.end()) return *std::next(word);
  }
  return "";
}

// A program of this build or installation, or as the user wrote it.
std::string found_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const fs::path beside = fs::read_symlink("/proc/self/exe").parent_path() / name;
  return is_absent(beside) ? name : beside.string();
}

// The last line of a refusal, without the prefix of the log.
std::string sentence_in(const std::vector<std::string>& lines) {
  if (lines.empty()) return "it printed nothing";
  const std::string& line = lines.back();
  const std::size_t end = line.starts_with("[rank ") ? line.find("]  ") : std::string::npos;
  std::string sentence = printable(end == std::string::npos ? line : line.substr(end + 3));
  if (sentence.ends_with('.')) sentence.pop_back();
  return sentence;
}

// The command that prints the recipe and does not train. The option comes first, because an option without a value
// would take it as one.
std::vector<std::string> recipe_question(std::vector<std::string> words) {
  words.insert(words.begin() + 1, "--print-recipe");
  return words;
}

}  // namespace

TrialCommands::TrialCommands(const Space& space, RunProgram run)
    : space_(space), run_(std::move(run)), program_(found_program(space.program)) {
  const SpaceReader reader(space.file);
  const fs::path data = value_of(space.arguments, "data");
  if (data.empty()) reader.refuse(space.lines.arguments, "the arguments have no --data FOLDER. Add it");
  check_options();
  samples_ = read_manifest(split_folder(data, Split::train)).samples();
  if (space.metric.split != Split::validation || !is_absent(split_folder(data, Split::validation))) return;
  reader.refuse(space.lines.metric, fmt::format("'{}' has no validation split, so no trial reports {}. Use a metric of "
                                                "the test split, or create the split with make_shards --validation",
                                                printable(data.string()), metric_name(space.metric)));
}

ProgramOutput TrialCommands::ask(const std::vector<std::string>& words) const {
  ProgramOutput output = run_(recipe_question(words));
  constexpr int signal_base = 128;
  require(output.code <= signal_base, Failure::other,
          "{} was ended by signal {} while it checked its options. Call search again.", printable(space_.program),
          output.code - signal_base);
  return output;
}

std::vector<std::string> TrialCommands::with(const std::vector<OptionWord>& settings) const {
  std::vector<std::string> words = {program_};
  std::ranges::copy(space_.arguments, std::back_inserter(words));
  std::ranges::copy(settings, std::back_inserter(words));
  return words;
}

void TrialCommands::check_options() {
  const SpaceReader reader(space_.file);
  std::size_t most = 1;
  std::vector<std::vector<OptionWord>> extremes;
  for (const Hyperparameter& parameter : space_.hyperparameters) {
    extremes.push_back(extreme_words(parameter));
    most = std::max(most, extremes.back().size());
  }
  constexpr std::size_t most_questions = 16;
  for (std::size_t question = 0; question < std::min(most, most_questions); ++question) {
    std::vector<OptionWord> settings;
    for (const auto& words : extremes) {
      const OptionWord& word = words[std::min(question, words.size() - 1)];
      if (!word.empty()) settings.push_back(word);
    }
    const ProgramOutput output = ask(with(settings));
    if (output.code == 0) continue;
    const std::string sentence = sentence_in(output.lines);
    if (output.code == not_started || output.code == not_executable) {
      reader.refuse(space_.lines.program, sentence + ". Name a program of Lockstep or a path");
    }
    int line = question == 0 ? space_.lines.arguments : space_.lines.program;
    for (const Hyperparameter& parameter : space_.hyperparameters) {
      if (sentence.find("--" + parameter.option) != std::string::npos) line = parameter.line;
    }
    reader.refuse(line, fmt::format("{} refuses its options: {}", printable(space_.program), sentence));
  }
}

BatchOptions TrialCommands::batch_of(const std::vector<OptionWord>& settings) {
  std::vector<OptionWord> relevant;
  std::ranges::copy_if(settings, std::back_inserter(relevant), [](const OptionWord& word) {
    return std::ranges::find(batch_options, option_of(word)) != batch_options.end();
  });
  if (const auto known = batches_.find(relevant); known != batches_.end()) return known->second;
  const std::vector<std::string> words = with(settings);
  const ProgramOutput output = ask(words);
  require(output.code == 0, Failure::usage, "{} refuses its options: {}.", printable(space_.program),
          sentence_in(output.lines));
  std::string text;
  for (const std::string& line : output.lines) {
    if (!text.empty() || line.starts_with('{')) text += line + "\n";
  }
  const nlohmann::json recipe = try_parse_json(text);
  Settings read;
  for (const Field& field : training_fields()) {
    const bool is_of_batch = std::ranges::find(batch_options, field.name) != batch_options.end();
    if (is_of_batch && recipe.is_object() && recipe.contains(field.name)) {
      set_from_json(field, read, recipe[field.name]);
    }
  }
  BatchOptions batch = read.recipe.batch;
  require(
      batch.global_batch || batch.batch_per_rank, Failure::usage,
      "'{}' does not print a recipe with a batch (--print-recipe). Only programs on run_training() can be searched.",
      printable(space_.program));
  const bool is_stated = states(words, "global-batch") || states(words, "batch-per-rank") || states(words, "recipe");
  if (!is_stated && batch.global_batch) batch.global_batch->by = ChosenBy::program;
  batches_.emplace(relevant, batch);
  return batch;
}

TrialLength TrialCommands::length(const std::vector<OptionWord>& settings, std::int64_t length) {
  const int ranks = static_cast<int>(space_.ranks_per_trial);
  BatchOptions batch = batch_of(settings);
  if (batch.global_batch && batch.global_batch->by == ChosenBy::program) {
    batch = fit_global_batch(batch, ranks, samples_);
  }
  const std::int64_t samples = loader_share(batch, 0, ranks).global_batch;
  require(samples <= samples_, Failure::usage,
          "a global batch of {} samples does not fit the training set of {} samples. Lower it.", samples, samples_);
  TrialLength result;
  result.steps_per_epoch = samples_ / samples;
  const auto steps_of = [&](std::int64_t count) {
    if (space_.unit == LengthUnit::epochs) return count * result.steps_per_epoch;
    return space_.unit == LengthUnit::batches ? count : std::max<std::int64_t>(count / samples, 1);
  };
  const std::int64_t all = steps_of(space_.searcher.max_length);
  result.epochs = (all + result.steps_per_epoch - 1) / result.steps_per_epoch;
  result.steps = steps_of(length);
  return result;
}

std::vector<std::string> TrialCommands::words(const std::vector<OptionWord>& settings, const TrialLength& length,
                                              const fs::path& output, int threads) const {
  std::vector<std::string> result = with(settings);
  result.push_back(fmt::format("--epochs={}", length.epochs));
  result.push_back(fmt::format("--max-steps={}", length.steps));
  result.push_back(fmt::format("--output={}", output.string()));
  if (threads > 0 && !states(result, "threads")) result.push_back(fmt::format("--threads={}", threads));
  const CheckpointOptions usual;
  const Retention& kept = space_.kept;
  const auto keep = [&](const char* option, std::int64_t count, std::int64_t otherwise) {
    if (count > otherwise && !states(result, option)) result.push_back(fmt::format("--{}={}", option, count));
  };
  keep("keep-latest", kept.trial_latest, usual.keep.latest);
  keep("keep-best", std::max(kept.trial_best, kept.search_best), usual.keep.best);
  return result;
}

}  // namespace lockstep
