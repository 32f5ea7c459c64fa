#include "search/space/space.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "base/io/file.hpp"
#include "base/text/number.hpp"
#include "search/search_file.hpp"
#include "search/space/space_reader.hpp"
#include "support/messages.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::space_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view head =
    "program: train_cifar\n"
    "arguments: --data data/cifar10 --schedule cosine\n";
constexpr std::string_view random_searcher =
    "searcher: {name: random, metric: test-accuracy, max_length: {epochs: 8}, max_trials: 5}\n";
constexpr std::string_view grid_searcher = "searcher: {name: grid, metric: test-accuracy, max_length: {epochs: 8}}\n";

class SpaceTest : public testing::Test {
 protected:
  Space read(std::string_view text) const {
    write_file_atomically(folder_.path() / "space.yaml", text);
    return read_search_file(folder_.path() / "space.yaml").space;
  }
  Space read_parameters(std::string_view parameters, std::string_view searcher = random_searcher) const {
    return read(fmt::format("{}{}hyperparameters:\n{}", head, searcher, parameters));
  }
  void expect_refused(Subjects subjects, std::string_view text,
                      const std::source_location& where = std::source_location::current()) const {
    expect_error(
        Failure::usage, subjects, [&] { read(text); }, where);
  }
  void expect_parameters_refused(Subjects subjects, std::string_view parameters,
                                 std::string_view searcher = random_searcher,
                                 const std::source_location& where = std::source_location::current()) const {
    expect_error(
        Failure::usage, subjects, [&] { read_parameters(parameters, searcher); }, where);
  }

  TemporaryFolder folder_;
};

// The number behind "=" in the settings of a trial with one hyperparameter.
double number_of(const Space& space, std::int64_t trial) {
  const OptionWord word = trial_settings(space, trial).at(0);
  return parse_number<double>(word.substr(word.find('=') + 1), {-1e300, 1e300}).value();
}

TEST_F(SpaceTest, reads_all_fields) {
  const Space space = read(
      "name: all fields\n"
      "program: ./mine\n"
      "arguments: [--data, \"a folder\"]\n"
      "ranks_per_trial: 2\n"
      "max_restarts: 0\n"
      "seed: 7\n"
      "searcher:\n"
      "  name: adaptive_asha\n"
      "  metric: validation_loss\n"
      "  max_length: {records: 1e6}\n"
      "  max_trials: 16\n"
      "  max_concurrent_trials: 4\n"
      "  divisor: 2\n"
      "  max_rungs: 3\n"
      "  mode: conservative\n"
      "  stop_once: true\n"
      "hyperparameters:\n"
      "  schedule: {lr: {type: log, minval: -3, maxval: 0}}\n");
  EXPECT_EQ(space.program, "./mine");
  EXPECT_THAT(space.arguments, ElementsAre("--data", "a folder"));
  EXPECT_EQ(space.ranks_per_trial, 2);
  EXPECT_EQ(space.max_restarts, 0);
  EXPECT_EQ(space.seed, 7U);
  EXPECT_EQ(space.searcher.kind, SearcherKind::adaptive_asha);
  EXPECT_EQ(space.metric, (SearchMetric{Split::validation, TestMetric::loss}));
  EXPECT_TRUE(space.smaller_is_better);
  EXPECT_EQ(space.unit, LengthUnit::records);
  EXPECT_EQ(space.searcher.max_length, 1'000'000);
  EXPECT_EQ(space.searcher.max_trials, 16);
  EXPECT_EQ(space.searcher.max_concurrent_trials, 4);
  EXPECT_EQ(space.searcher.divisor, 2);
  EXPECT_EQ(space.searcher.max_rungs, 3);
  EXPECT_EQ(space.searcher.mode, BracketMode::conservative);
  EXPECT_EQ(space.searcher.promotion, Promotion::stop_once);
  EXPECT_EQ(space.hyperparameters.at(0).option, "lr");
  EXPECT_TRUE(space.warnings.empty());
}

TEST_F(SpaceTest, the_command_line_replaces_program_and_arguments) {
  const std::filesystem::path file = folder_.path() / "space.yaml";
  const std::string text = fmt::format("{}{}hyperparameters: {{lr: 0.1}}\n", head, random_searcher);
  write_file_atomically(file, text);
  const Space space = read_search_file(file, {"./mine", "--data  d --flip random"}).space;
  EXPECT_EQ(space.program, "./mine");
  EXPECT_THAT(space.arguments, ElementsAre("--data", "d", "--flip", "random"));
  EXPECT_EQ(space.content["program"], "./mine");
  write_file_atomically(file, text.substr(text.find("searcher")));
  EXPECT_THAT(read_search_file(file, {"null", ""}).space.arguments, testing::IsEmpty());
  expect_error(Failure::usage, {"'program'"}, [&] { read_search_file(file, {"", "--data d"}); });
  expect_error(Failure::usage, {"--output"}, [&] { read_search_file(file, {"mine", "--output r"}); });
  expect_error(Failure::usage, {"UTF-8"}, [&] { read_search_file(file, {"mine", "--data \xff"}); });
}

TEST_F(SpaceTest, the_metric_says_what_is_better_unless_the_file_does) {
  EXPECT_FALSE(read_parameters("  lr: 0.1\n").smaller_is_better);
  const Space space = read_parameters("  lr: 0.1\n",
                                      "searcher: {name: single, metric: test-loss, smaller_is_better: false, "
                                      "max_length: {epochs: 1}}\n");
  EXPECT_FALSE(space.smaller_is_better);
  ASSERT_EQ(space.warnings.size(), 1U);
  EXPECT_THAT(space.warnings[0], HasSubstr("line 3"));
}

TEST_F(SpaceTest, a_search_with_one_rung_is_told_to_judge_nothing_early) {
  const auto warnings = [&](std::string_view more) {
    return read_parameters("  lr: 0.1\n", fmt::format("searcher: {{name: asha, metric: test-loss, {}}}\n", more))
        .warnings;
  };
  EXPECT_THAT(warnings("max_length: {epochs: 4}, max_trials: 4"), IsEmpty());
  EXPECT_THAT(warnings("max_length: {epochs: 4}, max_trials: 3"), ElementsAre(HasSubstr("line 3")));
  EXPECT_THAT(warnings("max_length: {epochs: 3}, max_trials: 4"), ElementsAre(HasSubstr("'divisor' (4)")));
  EXPECT_THAT(warnings("max_length: {epochs: 4}, max_trials: 4, max_rungs: 1"), ElementsAre(HasSubstr("one rung")));
}

TEST_F(SpaceTest, rates_that_scale_with_a_searched_batch_are_told) {
  constexpr std::string_view rate = "  lr: {type: log, minval: -3, maxval: -1, base: 10}\n";
  const auto warnings = [&](std::string_view more) {
    return read_parameters(fmt::format("{}{}", rate, more)).warnings;
  };
  constexpr std::string_view batch = "  global_batch: {type: categorical, vals: [32, 64]}\n";
  EXPECT_THAT(warnings(batch), ElementsAre(HasSubstr("--lr-batch 0")));
  EXPECT_THAT(warnings("  global_batch: 64\n"), IsEmpty());
  EXPECT_THAT(warnings(fmt::format("{}  lr-batch: 0\n", batch)), IsEmpty());
  EXPECT_THAT(read_parameters(batch).warnings, IsEmpty());
}

TEST_F(SpaceTest, batches_of_varying_size_are_told) {
  constexpr std::string_view batches =
      "searcher: {name: random, metric: test_accuracy, max_trials: 2, max_length: {batches: 40}}\n";
  constexpr std::string_view records =
      "searcher: {name: random, metric: test_accuracy, max_trials: 2, max_length: {records: 4000}}\n";
  constexpr std::string_view steps = "  sync: local\n  local_steps: {type: categorical, vals: [4, 16]}\n";
  EXPECT_THAT(read_parameters(steps, batches).warnings, ElementsAre(HasSubstr("--local-steps")));
  EXPECT_THAT(read_parameters(steps, records).warnings, IsEmpty());
  EXPECT_THAT(read_parameters("  local_steps: 4\n  sync: local\n", batches).warnings, IsEmpty());
}

TEST_F(SpaceTest, a_program_of_ones_own_has_metrics_of_its_own) {
  const Space space = read(
      "program: ./count_up\n"
      "searcher: {name: single, metric: x_2, smaller_is_better: true, max_length: {batches: 100}}\n"
      "hyperparameters: {}\n");
  EXPECT_TRUE(space.has_custom_loop());
  EXPECT_EQ(metric_name(space.metric), "x_2");
  EXPECT_TRUE(space.smaller_is_better);
  EXPECT_TRUE(space.arguments.empty());
  EXPECT_FALSE(read_parameters("  lr: 0.1\n").has_custom_loop());
  expect_parameters_refused(
      {"line 3", "'a b'"}, "  lr: 0.1\n",
      "searcher: {name: single, metric: a b, smaller_is_better: true, max_length: {batches: 1}}\n");
}

TEST(LengthTextTest, one_is_singular) {
  EXPECT_EQ(length_text(1, LengthUnit::epochs), "1 epoch");
  EXPECT_EQ(length_text(1, LengthUnit::batches), "1 batch");
  EXPECT_EQ(length_text(24, LengthUnit::batches), "24 batches");
  EXPECT_EQ(length_text(0, LengthUnit::records), "0 records");
}

TEST_F(SpaceTest, constants_become_words) {
  const Space space = read_parameters(
      "  lr: 0.1\n"
      "  weight_decay: {type: const, val: 5e-4}\n"
      "  nesterov: true\n"
      "  no-decay-norm: false\n"
      "  ema: null\n"
      "  model: 'true'\n");
  EXPECT_THAT(trial_settings(space, 1), ElementsAre("--lr=0.1", "--weight-decay=5e-4", "--nesterov", "--model=true"));
}

TEST_F(SpaceTest, draws_are_in_range_and_repeat) {
  const Space integers = read_parameters("  warmup: {type: int, minval: -1, maxval: 2}\n");
  const Space powers = read_parameters("  lr: {type: log, minval: -3, maxval: -1, base: 10}\n");
  std::set<double> drawn;
  double logarithms = 0;
  for (std::int64_t trial = 1; trial <= 400; ++trial) {
    drawn.insert(number_of(integers, trial));
    EXPECT_EQ(number_of(powers, trial), number_of(powers, trial));
    logarithms += std::log10(number_of(powers, trial));
    EXPECT_GE(number_of(powers, trial), 1e-3);
    EXPECT_LE(number_of(powers, trial), 1e-1);
  }
  EXPECT_EQ(drawn, (std::set<double>{-1, 0, 1, 2}));
  EXPECT_NEAR(logarithms / 400, -2, 0.15);  // the deviation of the mean is 0.03
}

TEST_F(SpaceTest, a_seed_gives_other_draws) {
  const std::string parameters = "  lr: {type: double, minval: 0, maxval: 1}\n";
  const Space first = read_parameters(parameters);
  const Space second = read_parameters(parameters + "seed: 1\n");
  EXPECT_NE(trial_settings(first, 1), trial_settings(second, 1));
  EXPECT_NE(trial_settings(first, 1), trial_settings(first, 2));
}

TEST_F(SpaceTest, a_grid_has_all_combinations) {
  const Space space = read_parameters(
      "  model: {type: categorical, vals: [lenet, convnet]}\n"
      "  lr: {type: log, minval: -2, maxval: 0, base: 10, count: 3}\n"
      "  warmup: {type: int, minval: 1, maxval: 2, count: 9}\n",
      grid_searcher);
  EXPECT_EQ(space.searcher.max_trials, 12);
  EXPECT_THAT(trial_settings(space, 1), ElementsAre("--model=lenet", "--lr=0.01", "--warmup=1"));
  EXPECT_THAT(trial_settings(space, 2), ElementsAre("--model=lenet", "--lr=0.01", "--warmup=2"));
  EXPECT_THAT(trial_settings(space, 3), ElementsAre("--model=lenet", "--lr=0.1", "--warmup=1"));
  EXPECT_THAT(trial_settings(space, 12), ElementsAre("--model=convnet", "--lr=1", "--warmup=2"));
}

TEST_F(SpaceTest, a_grid_of_integers_needs_no_count_and_one_point_is_the_middle) {
  EXPECT_EQ(read_parameters("  seed: {type: int, minval: 1, maxval: 8}\n", grid_searcher).searcher.max_trials, 8);
  const Space space = read_parameters("  lr: {type: double, minval: 0.1, maxval: 0.3, count: 1}\n", grid_searcher);
  EXPECT_DOUBLE_EQ(number_of(space, 1), 0.2);
}

TEST_F(SpaceTest, refuses_wrong_fields) {
  expect_refused({"line 3", "'trials'"}, std::string(head) + "trials: 3\n");
  expect_refused({"'searcher'"}, std::string(head) + "hyperparameters: {lr: 0.1}\n");
  expect_refused({"'hyperparameters'"}, fmt::format("program: train_cifar\n{}", random_searcher));
  expect_refused({"line 1", "map"}, "just text\n");
  expect_parameters_refused({"line 3", "'max_trial'", "max_trials"}, "  lr: 0.1\n",
                            "searcher: {name: single, metric: test-loss, max_length: {epochs: 1}, max_trial: 5}\n");
  expect_parameters_refused({"line 3", "'divisor'", "'single'"}, "  lr: 0.1\n",
                            "searcher: {name: single, metric: test-loss, max_length: {epochs: 1}, divisor: 4}\n");
  expect_parameters_refused({"line 3", "'hyperband'"}, "  lr: 0.1\n",
                            "searcher: {name: hyperband, metric: test-loss, max_length: {epochs: 1}}\n");
  expect_parameters_refused({"line 3", "'perplexity'", "smaller_is_better"}, "  lr: 0.1\n",
                            "searcher: {name: single, metric: perplexity, max_length: {epochs: 1}}\n");
  expect_parameters_refused({"line 3", "unit"}, "  lr: 0.1\n",
                            "searcher: {name: single, metric: test-loss, max_length: 100}\n");
  expect_parameters_refused({"line 3", "'epochs'", "'0'"}, "  lr: 0.1\n",
                            "searcher: {name: single, metric: test-loss, max_length: {epochs: 0}}\n");
  expect_parameters_refused({"line 3", "'smaller_is_better'"}, "  lr: 0.1\n",
                            "searcher: {name: single, metric: test-loss, max_length: {epochs: 1}, "
                            "smaller_is_better: perhaps}\n");
}

TEST_F(SpaceTest, names_everything_that_is_wrong_by_line) {
  SpaceReader reader("space.yaml");
  const YamlValue root = parse_yaml(
      "program: train_cifar\n"
      "trials: 3\n"
      "searcher:\n"
      "  name: hyperband\n"
      "  metric: perplexity\n"
      "  max_length: 100\n"
      "hyperparameters:\n"
      "  lr: {type: log, minval: 0, maxval: -3}\n"
      "  momentum: {type: double, minval: 0.1, maxvall: 0.9}\n"
      "max_restarts: often\n",
      "space.yaml");
  read_space(root, reader);
  expect_error(Failure::usage, {"line 10", "'max_restarts'", "'often'"}, [&] { reader.throw_refusals(); });
  EXPECT_THAT(reader.refusals(),
              ElementsAre(HasSubstr("line 2: unknown field 'trials'"), HasSubstr("line 4: "), HasSubstr("line 5: "),
                          HasSubstr("line 6: "), HasSubstr("line 8: "), HasSubstr("line 9: unknown field 'maxvall'"),
                          HasSubstr("line 9: "), HasSubstr("line 10: ")));
}

TEST_F(SpaceTest, a_custom_searcher_has_a_command) {
  const Space space = read_parameters("  lr: 0.1\n",
                                      "searcher: {name: custom, metric: test-loss, max_length: {epochs: 1}, "
                                      "max_trials: 5, command: [python3, a b.py], answer_seconds: 0.5}\n");
  EXPECT_EQ(space.searcher.kind, SearcherKind::custom);
  EXPECT_THAT(space.command, ElementsAre("python3", "a b.py"));
  EXPECT_EQ(space.answer_seconds, 0.5);
  expect_parameters_refused({"line 3", "'command'", "list"}, "  lr: 0.1\n",
                            "searcher: {name: custom, metric: test-loss, max_length: {epochs: 1}, max_trials: 5, "
                            "command: python3 propose.py}\n");
  expect_parameters_refused({"line 3", "'command'", "'random'"}, "  lr: 0.1\n",
                            "searcher: {name: random, metric: test-loss, max_length: {epochs: 1}, max_trials: 5, "
                            "command: [python3]}\n");
}

TEST_F(SpaceTest, the_content_is_a_space_again) {
  const Space space = read_parameters("  warmup: {type: int, minval: 0, maxval: 2}\n  lr: 0.1\n");
  const Space again = space_of(space.content, "search.jsonl");
  EXPECT_EQ(again.content, space.content);
  EXPECT_EQ(again.hyperparameters.at(1).option, "warmup");
  EXPECT_EQ(again.hyperparameters.at(1).most, 2);
  EXPECT_EQ(again.searcher.max_trials, 5);
  expect_error(Failure::usage, {"search.jsonl"}, [] { space_of("no map", "search.jsonl"); });
}

TEST_F(SpaceTest, refuses_options_of_its_own) {
  expect_refused({"line 2", "--output"}, "program: train_cifar\narguments: --data d --output=r\n");
  expect_parameters_refused({"line 5", "--epochs"}, "  epochs: {type: int, minval: 1, maxval: 9}\n");
  expect_parameters_refused({"line 5", "--schedule", "'arguments'"}, "  schedule: step\n");
  expect_parameters_refused({"line 6", "'batch_per_rank'"}, "  batch-per-rank: 8\n  a: {batch_per_rank: 16}\n");
  expect_parameters_refused({"line 5", "'lr rm'"}, "  lr rm: 1\n");
}

TEST_F(SpaceTest, refuses_ranges_that_are_empty_or_have_no_logarithm) {
  expect_parameters_refused({"line 5", "'maxval'"}, "  lr: {type: double, minval: 1, maxval: 1}\n");
  expect_parameters_refused({"line 5", "'maxval'"}, "  lr: {type: int, minval: 5, maxval: 1}\n");
  expect_parameters_refused({"line 5", "'base'"}, "  lr: {type: log, minval: -3, maxval: 0, base: 0}\n");
  expect_parameters_refused({"line 5", "10^-400"}, "  lr: {type: log, minval: -400, maxval: 0}\n");
  expect_parameters_refused({"line 5", "'base'"}, "  lr: {type: log, minval: -3, maxval: 0, base: 1}\n");
  expect_parameters_refused({"line 5", "'minval'"}, "  lr: {type: double, maxval: 1}\n");
  expect_parameters_refused({"line 5", "'minval'", "nan"}, "  lr: {type: double, minval: nan, maxval: 1}\n");
  expect_parameters_refused({"line 5", "'uniform'"}, "  lr: {type: uniform, minval: 0, maxval: 1}\n");
  expect_parameters_refused({"line 5", "'vals'"}, "  lr: {type: categorical, vals: []}\n");
  expect_parameters_refused({"line 5", "list"}, "  milestones: {type: categorical, vals: [[1, 2]]}\n");
  expect_parameters_refused({"line 5", "'val'"}, "  lr: {type: const}\n");
  expect_parameters_refused({"line 5", "'lr'", "vals:"}, "  lr: [0.1, 0.2]\n");  // the words of one value were wanted
}

// As in Determined, the ends are exponents. Values in their place gave learning rates from 1 to 1.26.
TEST_F(SpaceTest, refuses_values_in_place_of_exponents) {
  expect_parameters_refused({"line 5", "'lr'", "-3", "-1"}, "  lr: {type: log, minval: 0.001, maxval: 0.1}\n");
  expect_parameters_refused({"line 5", "-9.96578", "-3.32193"},
                            "  lr: {type: log, minval: 0.001, maxval: 0.1, base: 2}\n");
  expect_parameters_refused({"line 5", "-4", "0"}, "  lr: {type: log, minval: 1e-4, maxval: 1}\n");
  expect_parameters_refused({"line 5"}, "  lr: {type: log, minval: 0.01, maxval: 10}\n");
  for (const char* ends : {"minval: -3, maxval: -1", "minval: -1, maxval: 0.5", "minval: 0, maxval: 1",
                           "minval: 1, maxval: 3", "minval: 0.5, maxval: 2.5"}) {
    read_parameters(fmt::format("  lr: {{type: log, {}}}\n", ends));
  }
}

TEST_F(SpaceTest, reads_which_checkpoints_are_kept) {
  const Space space = read(fmt::format("{}{}hyperparameters: {{lr: 1}}\nsave_experiment_best: 2\nsave_trial_best: 0\n",
                                       head, random_searcher));
  EXPECT_EQ(space.kept.search_best, 2);
  EXPECT_EQ(space.kept.trial_best, 0);
  EXPECT_EQ(space.kept.trial_latest, 1);
}

TEST_F(SpaceTest, refuses_grids_that_nobody_finishes) {
  expect_parameters_refused({"line 3", "100000"},
                            "  lr: {type: double, minval: 0, maxval: 1, count: 1000}\n"
                            "  momentum: {type: double, minval: 0, maxval: 1, count: 1000}\n"
                            "  weight-decay: {type: double, minval: 0, maxval: 1, count: 1000}\n",
                            grid_searcher);
  expect_parameters_refused({"line 5", "'count'", "'lr'"}, "  lr: {type: double, minval: 0, maxval: 1}\n",
                            grid_searcher);
  expect_parameters_refused({"line 3"}, "  seed: {type: int, minval: -9007199254740992, maxval: 9007199254740992}\n",
                            grid_searcher);
}

TEST_F(SpaceTest, refuses_yaml_bombs) {
  std::string text = "a: &a [x, x, x, x, x, x, x, x, x, x]\n";
  for (char name = 'b'; name < 'j'; ++name) {
    text +=
        fmt::format("{}: &{} [*{}, *{}, *{}, *{}, *{}, *{}, *{}, *{}]\n", name, name, char(name - 1), char(name - 1),
                    char(name - 1), char(name - 1), char(name - 1), char(name - 1), char(name - 1), char(name - 1));
  }
  expect_refused({"values"}, text);
  expect_refused({"nested"}, std::string(100, '['));
  expect_refused({"262144"}, std::string(1 << 20, ' '));
  expect_refused({"line 2", "YAML"}, "program: train_cifar\n  arguments: [\n");
}

}  // namespace lockstep::space_test
