#include "search/determined/experiment_file.hpp"

#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "base/io/file.hpp"
#include "search/determined/experiment_fields.hpp"
#include "search/space/recorded_space.hpp"
#include "search/space/space.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"
#include "support/mutation.hpp"

namespace lockstep::experiment_file_test {

using testing::ElementsAre;
using testing::HasSubstr;

const StatedCommand command{"train_cifar", "--data data/cifar10 --model resnet20"};

// What a file means here.
struct Reading {
  Space space;
  Translation translation;
  std::vector<std::string> refusals;  // if there are some, the space is incomplete
};

Reading read(const std::string& text, const StatedCommand& stated = command) {
  SpaceReader reader("experiment.yaml");
  const YamlValue root = parse_yaml(text, "experiment.yaml", space_files);
  EXPECT_TRUE(is_experiment_file(root)) << text;
  Reading reading;
  reading.translation = translate_experiment(root, stated, reader);
  reading.space = read_space(reading.translation.search_file, reader);
  reading.refusals = reader.refusals();
  return reading;
}

// The same for a file without refusals.
Reading accepted(const std::string& text, const StatedCommand& stated = command) {
  Reading reading = read(text, stated);
  EXPECT_TRUE(reading.refusals.empty()) << fmt::format("{}", fmt::join(reading.refusals, "\n"));
  return reading;
}

std::string arguments_of(const Reading& reading) { return fmt::format("{}", fmt::join(reading.space.arguments, " ")); }

constexpr const char* searcher = "searcher: {name: single, metric: val_loss, max_length: {epochs: 8}}\n";

std::string with(const std::string& fields) { return fmt::format("entrypoint: e\n{}{}", searcher, fields); }

// After the examples that Determined publishes. Their models have hyperparameters of their own, which are refused; the
// rest of each file is accepted once these are removed.
constexpr const char* cifar10_adaptive =
    "name: cifar10_pytorch_adaptive_search\n"
    "hyperparameters:\n"
    "  learning_rate: {type: log, minval: -5.0, maxval: 1.0, base: 10.0}\n"
    "  global_batch_size: {type: int, minval: 16, maxval: 64}\n"
    "records_per_epoch: 50000\n"
    "searcher:\n"
    "  name: adaptive_asha\n"
    "  metric: validation_error\n"
    "  max_length: {epochs: 32}\n"
    "  max_trials: 16\n"
    "min_validation_period: {epochs: 1}\n"
    "entrypoint: model_def:CIFARTrial\n";
constexpr const char* mnist_const =
    "name: mnist_pytorch_const\n"
    "data: {url: https://example.org/mnist.tar.gz}\n"
    "hyperparameters:\n"
    "  learning_rate: 1.0\n"
    "  global_batch_size: 64\n"
    "  n_filters1: 32\n"
    "  dropout1: 0.25\n"
    "records_per_epoch: 50_000\n"
    "searcher:\n"
    "  name: single\n"
    "  metric: validation_loss\n"
    "  max_length: {epochs: 1}\n"
    "  smaller_is_better: true\n"
    "entrypoint: model_def:MNistTrial\n";
constexpr const char* mnist_distributed =
    "name: mnist_pytorch_distributed\n"
    "hyperparameters: {learning_rate: 1.0, global_batch_size: 512}\n"
    "searcher: {name: single, metric: accuracy, max_length: {batches: 937}, smaller_is_better: false}\n"
    "resources: {slots_per_trial: 8}\n"
    "entrypoint: python3 -m determined.launch.torch_distributed python3 train.py\n";
constexpr const char* tutorial_search =
    "name: core-api-stage-3\n"
    "entrypoint: python3 3_hpsearch.py\n"
    "hyperparameters:\n"
    "  increment_by: {type: int, minval: 1, maxval: 8}\n"
    "searcher:\n"
    "  name: adaptive_asha\n"
    "  metric: x\n"
    "  max_length: 100\n"
    "  max_trials: 10\n"
    "max_restarts: 0\n";
constexpr const char* tutorial_distributed =
    "name: core-api-stage-4\n"
    "entrypoint: python3 4_distributed.py launcher\n"
    "resources: {slots_per_trial: 8}\n"
    "hyperparameters: {increment_by: 1}\n"
    "searcher: {name: single, metric: x, time_metric: batches, max_time: 100}\n"
    "max_restarts: 0\n";

TEST(ExperimentFileTest, the_adaptive_search_of_cifar10_is_accepted) {
  const Reading reading = accepted(cifar10_adaptive);
  const Space& space = reading.space;
  EXPECT_EQ(space.program, "train_cifar");
  EXPECT_EQ(arguments_of(reading), "--data data/cifar10 --model resnet20 --lr-batch 0");
  EXPECT_EQ(space.searcher.kind, SearcherKind::adaptive_asha);
  EXPECT_EQ(space.searcher.max_length, 32);
  EXPECT_EQ(space.searcher.max_trials, 16);
  EXPECT_EQ(space.searcher.max_concurrent_trials, 16);
  EXPECT_EQ(space.max_restarts, 5);
  EXPECT_EQ(space.hyperparameters.at(0).option, "lr");
  EXPECT_EQ(space.hyperparameters.at(0).line, 3);
  EXPECT_EQ(space.hyperparameters.at(1).option, "global-batch");
  EXPECT_EQ(space.hyperparameters.at(1).most, 64);
  // the smallest error is the largest accuracy
  EXPECT_EQ(space.metric, (SearchMetric{Split::validation, TestMetric::accuracy}));
  EXPECT_FALSE(space.smaller_is_better);
  EXPECT_TRUE(space.warnings.empty());
  EXPECT_THAT(reading.translation.warnings, ElementsAre(HasSubstr("line 5: 'records_per_epoch'")));
  EXPECT_THAT(reading.translation.notes, ElementsAre(HasSubstr("'entrypoint'"), HasSubstr("--lr-batch 0")));
  EXPECT_EQ(translation_text(reading.translation),
            "in Determined                      here\n"
            "hyperparameters.learning_rate      --lr\n"
            "hyperparameters.learning_rate      --lr-batch 0\n"
            "hyperparameters.global_batch_size  --global-batch\n"
            "searcher.metric: validation_error  validation-accuracy, larger is better\n"
            "entrypoint                         --program train_cifar");
}

TEST(ExperimentFileTest, published_examples_are_accepted_or_refused_for_the_right_reasons) {
  const auto lines_refused = [](const std::string& text) { return read(text).refusals; };
  EXPECT_THAT(lines_refused(mnist_const), ElementsAre(HasSubstr("line 6: no training has an option --n-filters1"),
                                                      HasSubstr("line 7: no training has an option --dropout1")));
  const Space distributed = accepted(mnist_distributed).space;
  EXPECT_EQ(distributed.ranks_per_trial, 8);
  EXPECT_EQ(distributed.lines.ranks, 4);
  EXPECT_EQ(distributed.unit, LengthUnit::batches);
  EXPECT_EQ(distributed.metric, (SearchMetric{Split::validation, TestMetric::accuracy}));
  EXPECT_FALSE(distributed.smaller_is_better);
  EXPECT_THAT(read(mnist_const, {}).refusals, testing::Contains(HasSubstr("line 14: 'entrypoint'")));
}

// A metric that no training reports is that of a program with a loop of its own, which counts steps.
TEST(ExperimentFileTest, the_core_api_tutorial_is_accepted_for_a_program_of_ones_own) {
  const Reading search = accepted(tutorial_search, {"./count_up", std::nullopt});
  EXPECT_EQ(search.space.metric.name, "x");
  EXPECT_TRUE(search.space.smaller_is_better);
  EXPECT_EQ(search.space.unit, LengthUnit::batches);
  EXPECT_EQ(search.space.searcher.max_length, 100);
  EXPECT_EQ(search.space.hyperparameters.at(0).option, "increment-by");
  EXPECT_EQ(search.space.max_restarts, 0);
  const Reading distributed = accepted(tutorial_distributed, {"./count_up", std::nullopt});
  EXPECT_EQ(distributed.space.ranks_per_trial, 8);
  EXPECT_EQ(distributed.space.searcher.max_length, 100);
}

TEST(ExperimentFileTest, fields_become_those_of_a_search_file) {
  const struct {
    std::string there;
    std::string path;
    std::string here;
  } cases[] = {
      {"description: text", "/description", "text"},
      {"max_restarts: 0", "/max_restarts", "0"},
      {"reproducibility: {experiment_seed: 1234}", "/seed", "1234"},
      {"resources: {slots_per_trial: 4}", "/ranks_per_trial", "4"},
      {"checkpoint_storage: {save_experiment_best: 2}", "/save_experiment_best", "2"},
      {"checkpoint_storage: {save_trial_best: 3, save_trial_latest: 4}", "/save_trial_latest", "4"},
      {"optimizations: {mixed_precision: O2}", "/arguments", "--precision fp16"},
      {"optimizations: {mixed_precision: O0}", "/arguments", "--precision fp32"},
      {"optimizations: {aggregation_frequency: 1}", "/arguments", ""},
      {"optimizations: {aggregation_frequency: 4}", "/arguments", "--accumulate 4"},
      {"optimizations: {aggregation_frequency: 4}\nhyperparameters: {global_batch_size: 32}",
       "/hyperparameters/global-batch", "128"},
      {"optimizations: {aggregation_frequency: 4}\nhyperparameters: {a: {global_batch_size: {type: const, val: 8}}}",
       "/hyperparameters/a/global-batch", "32"},
      {"min_checkpoint_period: {batches: 100}", "/arguments", "--checkpoint-every 100"},
      {"min_checkpoint_period: {epochs: 2}", "/arguments", "--checkpoint-every 2epochs"},
      {"min_checkpoint_period: {batches: 0}", "/arguments", ""},
      {"resources: {slots_per_trial: 0}", "/arguments", "--device cpu"},
      {"resources: {slots_per_trial: 0}", "/ranks_per_trial", "1"},
      {"hyperparameters: {lr: 0.1}", "/arguments", "--lr-batch 0"},
      {"hyperparameters: {a: {learning-rate: 0.1}}", "/arguments", "--lr-batch 0"},
      {"hyperparameters: {lr: 0.1, lr_batch: 256}", "/arguments", ""},
      {"hyperparameters: {warmup_epochs: 5}", "/hyperparameters/warmup", "5"},
      {"hyperparameters: {weight_decay: 1e-4}", "/hyperparameters/weight-decay", "1e-4"},
  };
  for (const auto& one : cases) {
    const Reading reading = accepted(with(one.there), {"train_cifar", ""});
    EXPECT_EQ(reading.space.content.value(nlohmann::json::json_pointer(one.path), ""), one.here) << one.there;
  }
}

TEST(ExperimentFileTest, lengths_have_all_forms) {
  const auto read_searcher = [](const std::string& fields, const std::string& more = "") {
    return accepted(fmt::format("entrypoint: e\nsearcher: {{name: single, metric: loss, {}}}\n{}", fields, more)).space;
  };
  EXPECT_EQ(read_searcher("max_length: {records: 50}").unit, LengthUnit::records);
  EXPECT_EQ(read_searcher("time_metric: batches, max_time: 937").unit, LengthUnit::batches);
  EXPECT_EQ(read_searcher("time_metric: epochs, max_time: 32").searcher.max_length, 32);
  const std::string aggregated = "optimizations: {aggregation_frequency: 4}\n";
  EXPECT_EQ(read_searcher("max_length: {batches: 100}", aggregated).searcher.max_length, 25);
  EXPECT_EQ(read_searcher("time_metric: batches, max_time: 100", aggregated).searcher.max_length, 25);
  EXPECT_EQ(read_searcher("max_length: {epochs: 100}", aggregated).searcher.max_length, 100);
  EXPECT_EQ(read_searcher("max_length: {epochs: 1}, max_concurrent_trials: 0").searcher.max_concurrent_trials,
            most_trials);
}

TEST(ExperimentFileTest, the_command_line_counts_more_than_the_file) {
  const Reading reading =
      accepted(with("optimizations: {mixed_precision: O2}\nhyperparameters: {learning_rate: 0.1}\n"),
               {"train_cifar", "--data d --precision=bf16 --lr-batch 256"});
  EXPECT_EQ(arguments_of(reading), "--data d --precision=bf16 --lr-batch 256");
  EXPECT_THAT(translation_text(reading.translation), HasSubstr("--precision, as --arguments says"));
}

TEST(ExperimentFileTest, another_command_is_another_search) {
  const auto content = [](const StatedCommand& stated) { return accepted(mnist_distributed, stated).space.content; };
  const nlohmann::json recorded = content(command);
  EXPECT_EQ(difference_in_spaces(recorded, content(command)), "");
  EXPECT_EQ(difference_in_spaces(recorded, content({"train_imagenet", command.arguments})), "program");
  EXPECT_EQ(difference_in_spaces(recorded, content({"train_cifar", "--data d"})), "arguments");
  EXPECT_EQ(space_of(recorded, "search.jsonl").ranks_per_trial, 8);
}

// Determined's default is true, also for an accuracy.
TEST(ExperimentFileTest, what_is_better_is_as_in_determined) {
  const auto read_metric = [](const std::string& fields) {
    return read(fmt::format("entrypoint: e\nsearcher: {{name: single, max_length: {{epochs: 1}}, {}}}\n", fields));
  };
  for (const auto& [name, metric] : experiment_metrics) {
    const bool is_accuracy = !metric.is_loss && !metric.is_error;
    const Reading unstated = read_metric(fmt::format("metric: {}", name));
    ASSERT_EQ(unstated.refusals.size(), is_accuracy ? 1U : 0U) << name;
    const Reading larger = read_metric(fmt::format("metric: {}, smaller_is_better: false", name));
    EXPECT_TRUE(larger.refusals.empty()) << name;
    EXPECT_EQ(larger.space.smaller_is_better, metric.is_error) << name;
    EXPECT_EQ(larger.space.warnings.size(), is_accuracy ? 0U : 1U) << name;
    EXPECT_EQ(metric_name(larger.space.metric), metric.here);
    EXPECT_EQ(read_metric(fmt::format("metric: {}, smaller_is_better: true", name)).space.smaller_is_better,
              !metric.is_error);
  }
  expect_message(read_metric("metric: val-accuracy").refusals.at(0),
                 {"line 2", "val_accuracy", "smaller_is_better: false"});
}

TEST(ExperimentFileTest, complete_files_that_determined_prints_say_nothing_more) {
  const Reading reading = accepted(
      "bind_mounts: []\ncheckpoint_storage: {save_trial_best: 1}\ndata: {}\ndebug: false\ndescription: null\n"
      "entrypoint: e\nenvironment: {}\nintegrations: null\nlabels: []\nlog_policies: []\n"
      "min_checkpoint_period: {batches: 0}\nmin_validation_period: {batches: 0}\n"
      "optimizations: {aggregation_frequency: 1, gradient_compression: false}\npbs: {}\n"
      "perform_initial_validation: false\nresources: {slots_per_trial: 1, devices: []}\n"
      "searcher: {name: single, metric: loss, smaller_is_better: true, max_length: {epochs: 1}, source_trial_id: "
      "null,\n"
      "  source_checkpoint_uuid: null}\n");
  EXPECT_TRUE(reading.translation.warnings.empty()) << reading.translation.warnings[0];
  EXPECT_EQ(arguments_of(reading), *command.arguments);
}

TEST(ExperimentFileTest, a_field_without_effect_is_named_once_with_what_takes_its_place) {
  for (const ExperimentField& field : experiment_fields()) {
    if (field.treatment != ExperimentTreatment::ignored) continue;
    std::string yaml = "3";
    std::string path(field.there);
    if (const std::size_t point = path.find('.'); point != std::string::npos) {
      yaml = fmt::format("{{{}: 3}}", path.substr(point + 1));
      path.resize(point);
    }
    const Reading reading = accepted(with(fmt::format("{}: {}\n", path, yaml)));
    ASSERT_EQ(reading.translation.warnings.size(), 1U) << field.there;
    EXPECT_THAT(
        reading.translation.warnings[0],
        testing::AllOf(HasSubstr("line 3"), HasSubstr(fmt::format("'{}'", field.there)), HasSubstr(field.here)));
  }
  const Reading reading = accepted(with("checkpoint_storage: {type: s3, bucket: b, secret_key: swordfish}\n"));
  expect_message(reading.translation.warnings.at(0), {"type", "bucket", "secret_key"});
  EXPECT_THAT(reading.translation.warnings[0], testing::Not(HasSubstr("swordfish")));
}

TEST(ExperimentFileTest, what_has_no_counterpart_is_refused) {
  const auto searcher_with = [](const std::string& fields) {
    return fmt::format("entrypoint: e\nsearcher: {{name: single, metric: loss, {}}}\n", fields);
  };
  const auto expect_refused = [](Subjects subjects, const std::string& text,
                                 const std::source_location& where = std::source_location::current()) {
    const std::vector<std::string> refusals = read(text).refusals;
    ASSERT_EQ(refusals.size(), 1U) << text << fmt::format("{}", fmt::join(refusals, "\n"));
    expect_message(refusals[0], subjects, where);
  };
  expect_refused({"line 2", "source_trial_id", "--init-from"},
                 searcher_with("max_length: {epochs: 1}, source_trial_id: 3"));
  expect_refused({"line 2", "source_checkpoint_uuid", "--init-from"},
                 searcher_with("max_length: {epochs: 1}, source_checkpoint_uuid: a-b"));
  expect_refused({"line 2", "bracket_rungs"}, searcher_with("max_length: {epochs: 1}, bracket_rungs: [1]"));
  expect_refused({"line 2", "'max_length'"}, searcher_with("max_length: 100"));
  expect_refused({"line 2", "max_time", "max_length"}, searcher_with("max_length: {epochs: 1}, max_time: 3"));
  expect_refused({"line 2", "max_time", "time_metric"}, searcher_with("max_time: 3"));
  expect_refused({"line 2", "'steps'", "batches"}, searcher_with("max_time: 3, time_metric: steps"));
  expect_refused({"line 2", "'max_trails'", "max_trials"}, searcher_with("max_length: {epochs: 1}, max_trails: 3"));
  expect_refused({"line 2", "'searcher'", "map"}, "entrypoint: e\nsearcher: single\n");
  expect_refused({"line 3", "'resources'", "map"}, with("resources: 3\n"));
  expect_refused({"line 3", "slots_per_trial", "'x'"}, with("resources: {slots_per_trial: x}\n"));
  expect_refused({"line 3", "'enviroment'", "environment"}, with("enviroment: {}\n"));
  expect_refused({"line 3", "'searcher.name'"}, with("searcher.name: grid\n"));
  expect_refused({"line 3", "O3", "O2"}, with("optimizations: {mixed_precision: O3}\n"));
  expect_refused({"line 3", "aggregation_frequency", "'0'"}, with("optimizations: {aggregation_frequency: 0}\n"));
  expect_refused({"line 3", "average_aggregated_gradients"},
                 with("optimizations: {aggregation_frequency: 2, average_aggregated_gradients: false}\n"));
  expect_refused({"line 4", "global_batch_size"}, with("optimizations: {aggregation_frequency: 2}\n"
                                                       "hyperparameters: {global_batch_size: {type: int, minval: 1, "
                                                       "maxval: 8}}\n"));
  expect_refused({"line 2", "100", "3"},
                 searcher_with("max_length: {batches: 100}") + "optimizations: {aggregation_frequency: 3}\n");
  expect_refused({"line 3", "min_checkpoint_period"}, with("min_checkpoint_period: {records: 9}\n"));
  expect_refused({"line 3", "--learning-rat", "learning-rate"}, with("hyperparameters: {learning_rat: 0.1}\n"));
  expect_refused({"line 3", "'lr'", "twice"}, with("hyperparameters: {learning_rate: 0.1, lr: 0.1}\n"));
  expect_refused({"line 3", "--epochs"}, with("hyperparameters: {epochs: 3}\n"));
  expect_refused({"line 3", "--model", "'arguments'"}, with("hyperparameters: {model: lenet}\n"));
}

TEST(ExperimentFileTest, files_of_our_own_are_no_experiments) {
  const auto is_one = [](const std::string& text) { return is_experiment_file(parse_yaml(text, "a.yaml")); };
  EXPECT_FALSE(is_one("name: a\ndescription: b\nmax_restarts: 3\nsearcher: {}\nhyperparameters: {}\n"));
  EXPECT_FALSE(is_one("program: train_cifar\nlabels: [a]\n"));
  EXPECT_FALSE(is_one("- entrypoint\n"));
  EXPECT_TRUE(is_one("entrypoint: null\n"));
  EXPECT_TRUE(is_one("resources: {}\n"));
}

// A row of the section Determined has both names.
TEST(ExperimentFileTest, the_documentation_names_each_translated_field) {
  const std::string document = read_start(LOCKSTEP_DOCUMENTS "/coming_from.md", 1 << 20);
  const std::size_t start = document.find("## Determined");
  const std::string section = document.substr(start, document.find("\n## ", start + 1) - start);
  for (const ExperimentField& field : experiment_fields()) {
    const bool is_translated = field.treatment == ExperimentTreatment::moved ||
                               field.treatment == ExperimentTreatment::option ||
                               field.treatment == ExperimentTreatment::read;
    if (!is_translated || field.there == field.here) continue;
    const auto last_name = [](std::string_view path) { return path.substr(path.rfind('.') + 1); };
    bool is_named = false;
    std::istringstream lines(section);
    for (std::string line; std::getline(lines, line);) {
      is_named |= line.find(last_name(field.there)) != std::string::npos &&
                  line.find(last_name(field.here)) != std::string::npos;
    }
    EXPECT_TRUE(is_named) << field.there << " -> " << field.here;
  }
}

// Values of all kinds at every field.
TEST(ExperimentFileTest, wrong_values_are_refused_in_sentences) {
  const char* const values[] = {
      "text",      "-1",          "1e300",        "99999999999999999999", "nan",  "[]",   "[[1], {a: 2}]",
      "{}",        "{type: log}", "{epochs: -3}", "{type: {type: int}}",  "null", "true", "''",
      R"("\e[2J")"};
  for (const ExperimentField& field : experiment_fields()) {
    for (const char* const value : values) {
      std::string path(field.there);
      const std::size_t point = path.find('.');
      if (point != std::string::npos) path.replace(point, 1, ": {");
      const std::string text = fmt::format("{}: [a]\n{}: {}{}\n", field.there == "labels" ? "project" : "labels", path,
                                           value, point == std::string::npos ? "" : "}");
      const Reading reading = read(text);
      ASSERT_FALSE(reading.refusals.empty()) << text;  // a searcher with all fields is missing
      for (const std::string& refusal : reading.refusals) {
        EXPECT_THAT(refusal, testing::StartsWith("'experiment.yaml', line ")) << text;
        EXPECT_THAT(refusal, testing::EndsWith(".")) << text;
        EXPECT_THAT(refusal, testing::Not(HasSubstr("\x1b"))) << text;
      }
    }
  }
}

TEST(ExperimentFileTest, no_damage_ends_in_anything_but_a_refusal) {
  std::uint64_t refused = 0;
  const std::uint64_t rounds = mutation_rounds(500);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::string text = mutated(round % 2 == 0 ? cifar10_adaptive : mnist_distributed, round);
    SpaceReader reader("experiment.yaml");
    try {
      const YamlValue root = parse_yaml(text, "experiment.yaml", space_files);
      const bool is_one = is_experiment_file(root);
      read_space(is_one ? translate_experiment(root, command, reader).search_file : root, reader);
      refused += reader.refusals().empty() ? 0 : 1;
    } catch (const Error& error) {
      EXPECT_EQ(error.failure(), Failure::usage) << round << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, rounds / 4);
}

}  // namespace lockstep::experiment_file_test
