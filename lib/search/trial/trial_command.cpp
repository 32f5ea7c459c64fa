#include "search/trial/trial_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/text/json_text.hpp"
#include "base/text/printable.hpp"
#include "dataset/shards/manifest.hpp"
#include "recipe/fields.hpp"
#include "run/run_file.hpp"
#include "search/space/space_reader.hpp"
#include "search/trial/trial_result.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr int not_started = 127;
constexpr int not_executable = 126;
constexpr std::array batch_options = std::to_array<std::string_view>(
    {"global-batch", "batch-per-rank", "accumulate", "virtual-ranks", "local-steps", "recipe"});

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

// If it cannot be started.
std::string advice_on(const std::string& program, int code) {
  if (code == not_executable) return "Make it executable: chmod +x";
  if (program.find('/') == std::string::npos && !is_absent(program)) {
    return fmt::format("The file of this name here is './{}'", printable(program));
  }
  return program.find(' ') == std::string::npos ? "Name a program of Lockstep or a path"
                                                : "Name one executable file. Its options belong in 'arguments'";
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

// The JSON that ends the output of a program, after other lines. It is_discarded() if there is none.
nlohmann::json json_in(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    if (!text.empty() || line.starts_with('{')) text += line + "\n";
  }
  return try_parse_json(text);
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
  const nlohmann::json answer = check_options();
  const bool is_custom_loop = answer.is_object() && answer.contains("metrics");
  is_custom_loop || space.has_custom_loop() ? check_custom_loop(answer) : check_data();
}

void TrialCommands::check_custom_loop(const nlohmann::json& answer) const {
  const SpaceReader reader(space_.file);
  const std::vector<std::string> reported = texts_in(answer, "metrics");
  const std::string name = metric_name(space_.metric);
  if (!answer.is_object()) {
    reader.refuse(
        space_.lines.program,
        fmt::format("{} --print-recipe has printed no JSON object. A program with its own training loop prints its "
                    "metrics, such as {{\"metrics\": [\"{}\"]}}, and ends",
                    printable(space_.program), name));
  }
  if (!answer.contains("metrics")) {
    reader.refuse(space_.lines.metric, fmt::format("{} is a training, which does not report the metric '{}'. Known: {}",
                                                   printable(space_.program), name, training_metrics()));
  }
  if (!space_.has_custom_loop() || std::ranges::find(reported, name) == reported.end()) {
    reader.refuse(space_.lines.metric,
                  fmt::format("{} does not report {} '{}'. It reports: {}", printable(space_.program),
                              space_.has_custom_loop() ? "the metric" : "the metric of trainings", name,
                              printable(fmt::format("{}", fmt::join(reported, ", ")))));
  }
  if (space_.unit != LengthUnit::batches) {
    reader.refuse(space_.lines.length,
                  fmt::format("{} has a training loop of its own, which only counts steps. Write {{batches: 100}}",
                              printable(space_.program)));
  }
}

void TrialCommands::check_data() {
  const SpaceReader reader(space_.file);
  const fs::path data = value_of(space_.arguments, "data");
  if (data.empty()) reader.refuse(space_.lines.arguments, "the arguments have no --data FOLDER. Add it");
  samples_ = read_manifest(split_folder(data, Split::train)).samples();
  if (space_.metric.split != Split::validation || !is_absent(split_folder(data, Split::validation))) return;
  reader.refuse(space_.lines.metric,
                fmt::format("'{}' has no validation split, so no trial reports {}. Use a metric of the test split, or "
                            "create the split with make_shards --validation",
                            printable(data.string()), metric_name(space_.metric)));
}

ProgramOutput TrialCommands::ask(const std::vector<std::string>& words) const {
  ProgramOutput output = run_(recipe_question(words));
  constexpr int signal_base = 128;
  constexpr int most_signals = 64;
  const bool is_signal = output.code > signal_base && output.code <= signal_base + most_signals;
  require(!is_signal, Failure::other, "{} was ended by signal {} while it checked its options. Call search again.",
          printable(space_.program), output.code - signal_base);
  return output;
}

std::vector<std::string> TrialCommands::with(const std::vector<OptionWord>& settings) const {
  std::vector<std::string> words = {program_};
  std::ranges::copy(space_.arguments, std::back_inserter(words));
  std::ranges::copy(settings, std::back_inserter(words));
  return words;
}

// Returns an answer of the program.
nlohmann::json TrialCommands::check_options() {
  const SpaceReader reader(space_.file);
  std::size_t most = 1;
  std::vector<std::vector<OptionWord>> extremes;
  for (const Hyperparameter& parameter : space_.hyperparameters) {
    extremes.push_back(extreme_words(parameter));
    most = std::max(most, extremes.back().size());
  }
  constexpr std::size_t most_questions = 16;
  nlohmann::json answer;
  for (std::size_t question = 0; question < std::min(most, most_questions); ++question) {
    std::vector<OptionWord> settings;
    for (const auto& words : extremes) {
      const OptionWord& word = words[std::min(question, words.size() - 1)];
      if (!word.empty()) settings.push_back(word);
    }
    const ProgramOutput output = ask(with(settings));
    if (output.code == 0) {
      answer = json_in(output.lines);
      continue;
    }
    const std::string sentence = sentence_in(output.lines);
    if (output.code == not_started || output.code == not_executable) {
      reader.refuse(space_.lines.program, sentence + ". " + advice_on(space_.program, output.code));
    }
    if (output.code == static_cast<int>(Failure::other)) {
      reader.refuse(space_.lines.program,
                    fmt::format("{} --print-recipe has failed: {}", printable(space_.program), sentence));
    }
    int line = question == 0 ? space_.lines.arguments : space_.lines.program;
    for (const Hyperparameter& parameter : space_.hyperparameters) {
      if (sentence.find("--" + parameter.option) != std::string::npos) line = parameter.line;
    }
    reader.refuse(line, fmt::format("{} refuses its options: {}", printable(space_.program), sentence));
  }
  return answer;
}

BatchOptions TrialCommands::batch_of(const std::vector<OptionWord>& settings) {
  std::vector<OptionWord> relevant;
  std::ranges::copy_if(settings, std::back_inserter(relevant), [](const OptionWord& word) {
    return std::ranges::find(batch_options, option_of(word)) != batch_options.end();
  });
  if (const auto known = batches_.find(relevant); known != batches_.end()) return known->second;
  const std::vector<std::string> words = with(settings);
  const ProgramOutput output = ask(words);
  const Failure failure = failure_of_code(output.code);
  require(output.code == 0 || failure != Failure::usage, Failure::usage, "{} refuses its options: {}.",
          printable(space_.program), sentence_in(output.lines));
  require(output.code == 0, failure,
          "{} --print-recipe has failed with code {}: {}. Remove the cause, and the same command continues the search.",
          printable(space_.program), output.code, sentence_in(output.lines));
  const nlohmann::json recipe = json_in(output.lines);
  Settings read;
  for (const Field& field : training_fields()) {
    const bool is_of_batch = std::ranges::find(batch_options, field.name) != batch_options.end();
    if (is_of_batch && recipe.is_object() && recipe.contains(field.name)) {
      set_from_json(field, read, recipe[field.name]);
    }
  }
  BatchOptions batch = read.recipe.batch;
  require(batch.global_batch || batch.batch_per_rank, Failure::usage,
          "'{}' prints neither a recipe with a batch nor its metrics (--print-recipe). apps/search.md says what a "
          "program of your own must print.",
          printable(space_.program));
  const bool is_stated = states(words, "global-batch") || states(words, "batch-per-rank") || states(words, "recipe");
  if (!is_stated && batch.global_batch) batch.global_batch->by = ChosenBy::program;
  batches_.emplace(relevant, batch);
  return batch;
}

TrialLength TrialCommands::length(const std::vector<OptionWord>& settings, std::int64_t length) {
  if (space_.has_custom_loop()) return {1, space_.searcher.max_length, length};
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
  if (!space_.has_custom_loop()) result.push_back(fmt::format("--epochs={}", length.epochs));
  result.push_back(fmt::format("--max-steps={}", length.steps));
  result.push_back(fmt::format("--output={}", output.string()));
  if (threads > 0 && !space_.has_custom_loop() && !states(result, "threads"))
    result.push_back(fmt::format("--threads={}", threads));
  const CheckpointOptions usual;
  const Retention& kept = space_.kept;
  const auto keep = [&](const char* option, std::int64_t count, std::int64_t otherwise) {
    if (count > otherwise && !states(result, option)) result.push_back(fmt::format("--{}={}", option, count));
  };
  keep("keep-latest", kept.trial_latest, usual.keep.latest);
  if (space_.has_custom_loop()) return result;  // which knows no better checkpoint
  keep("keep-best", std::max(kept.trial_best, kept.search_best), usual.keep.best);
  return result;
}

}  // namespace lockstep
