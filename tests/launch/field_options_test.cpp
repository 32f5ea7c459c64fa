#include "launch/field_options.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "job/job_environment.hpp"
#include "recipe/fields.hpp"
#include "runtime/plan_file.hpp"
#include "support/field_examples.hpp"
#include "support/messages.hpp"

namespace lockstep::field_options_test {

Settings program_settings() {
  Settings settings;
  settings.recipe.model = "resnet20";
  settings.recipe.batch.global_batch = {128, ChosenBy::program};
  return settings;
}

class OptionsTest : public testing::Test {
 protected:
  OptionsTest() {
    app_.option_defaults()->always_capture_default();  // as every program does
    declare_training(app_, settings_, valid_);
  }

  // CLI11's words, or nothing. The settings are the program's with these arguments alone.
  std::string parse(const std::string& arguments, const std::string& first = "--data d ") {
    CLI::App app;
    settings_ = program_settings();
    declare_training(app, settings_, valid_);
    try {
      app.parse(first + arguments);
    } catch (const CLI::ParseError& error) {
      return error.what();
    }
    return "";
  }

  CLI::App app_;
  Settings settings_ = program_settings();
  std::optional<ValidSettings> valid_;
  Recipe& recipe_ = settings_.recipe;
  RunOptions& run_ = settings_.run;
};

TEST_F(OptionsTest, without_options_the_recipe_is_the_programs) {
  EXPECT_EQ(parse(""), "");
  EXPECT_EQ(recipe_.model, "resnet20");
  EXPECT_EQ(recipe_.batch.global_batch->value, 128);
  EXPECT_EQ(recipe_.batch.global_batch->by, ChosenBy::program);
  EXPECT_EQ(recipe_.batch.batch_per_rank, std::nullopt);
  EXPECT_EQ(recipe_.images.augmentation, std::nullopt);
  EXPECT_EQ(run_.data, "d");
}

TEST_F(OptionsTest, every_field_has_an_option_that_reaches_it) {
  for (const Field& field : training_fields()) {
    const std::string name = "--" + field.name;
    const std::string& text = field_examples().at(field.name);
    CLI::App app;
    Settings settings = settings_;
    settings.recipe.images.side = 224;
    declare_training(app, settings, valid_);
    EXPECT_NE(app.get_option_no_throw(name), nullptr) << name;
    std::string words = field.name == "data" ? "" : "--data d ";
    if (!field.needs.empty()) words += "--" + field.needs + (field.needs == "ema" ? " 0.9 " : " f ");
    if (!field.chooser.empty()) words += "--" + field.chooser + " " + field.readers.back() + " ";
    if (field.name == "new-head") words += "--init-from f ";  // or a model from a file
    if (field.name == "fresh-weights") words += "--model f.onnx ";
    if (field.name == "trainers") words += "--output o ";
    if (field.name != "lr" && field.name != "trainer-of") words += "--lr 0.3 ";
    if (field.name == "local-shares") words += "--local-steps 4 ";
    app.parse(words + name + (field.form == Field::Form::flag ? "" : " " + text));
    EXPECT_EQ(field.texts(settings), std::vector<std::string>{text}) << name;
    if (const std::string off = off_option(field); !off.empty()) {
      app.parse(words + "--" + off);
      EXPECT_TRUE(field.texts(settings).empty()) << off;
    }
  }
}

TEST_F(OptionsTest, the_data_must_be_named_and_nothing_else) {
  try {
    app_.parse("--epochs 2");
    ADD_FAILURE() << "without --data";
  } catch (const CLI::ParseError& error) {
    expect_message(error.what(), {"--data"});
  }
}

TEST_F(OptionsTest, a_trainer_needs_no_data_and_states_nothing_that_its_server_decides) {
  EXPECT_EQ(parse("--trainer-of runs/a --threads 2 --hang-timeout 60", ""), "");
  EXPECT_EQ(run_.trainer_of, "runs/a");
  for (const char* const option : {"--lr 0.1", "--recipe rn50-mlperf", "--output o", "--epochs 3"}) {
    const std::string message = parse(std::string("--trainer-of runs/a ") + option, "");
    expect_message(message, {"--trainer-of", std::string_view(option).substr(0, std::string_view(option).find(' '))});
  }
}

TEST_F(OptionsTest, kernel_choices_are_kept_where_the_user_keeps_caches) {
  EXPECT_EQ(run_.device.plan_folder, default_plan_folder(this_job()));
}

TEST_F(OptionsTest, no_option_is_outside_the_table) {
  for (const CLI::Option* option : app_.get_options()) {
    const std::string name = option->get_lnames().front();
    const bool is_field = std::ranges::count(training_fields(), name, &Field::name) == 1;
    EXPECT_TRUE(is_field || name == "help" || name == "help-all" || name == "recipe" || name == "print-recipe") << name;
  }
}

TEST_F(OptionsTest, what_is_stated_reaches_its_fields) {
  struct Row {
    const char* arguments;
    const char* fields;  // of the recipe and the run, as JSON
  };
  constexpr Row rows[] = {
      {"--schedule step --milestones 1 2.5", R"({"milestones": [1, 2.5]})"},
      {"--schedule step --milestones 1,2.5 4", R"({"milestones": [1, 2.5, 4]})"},
      {"--tag a=1,b=2", R"({"tag": ["a=1,b=2"]})"},
      {"--learning-rate 0.7", R"({"lr": 0.7})"},
      {"--image-size 192 --image-size-ramp 160:5:7 --test-image-size 256",
       R"({"image-size-ramp": "160:5:7", "test-image-size": 256})"},
      {"--recipe rn50-ffcv-16 --image-size-ramp none", R"({"image-size-ramp": "none"})"},
      {"--batch-per-rank 32", R"({"batch-per-rank": 32, "global-batch": null})"},
      {"--epochs 1e5 --report-every 1.5e3", R"({"epochs": 100000, "report-every": 1500})"},
      {"--seed 18446744073709551615", R"({"seed": 18446744073709551615})"},
      {"--seed 010", R"({"seed": 10})"},  // it became eight
      {"--checkpoints c --checkpoint-every 500,10min --keep-latest 3 --keep-best 0 --resume never",
       R"({"checkpoints": "c", "checkpoint-every": "500,10min", "keep-latest": 3, "keep-best": 0, "resume": "never"})"},
      {"--init-from m.h5 --new-head --time-limit 1.5h",
       R"({"init-from": "m.h5", "new-head": true, "time-limit": "5400s"})"},

      // Stated options win over a recipe, wherever they stand.
      {"--epochs 3 --recipe rn50-mlperf --momentum 0.8",
       R"({"model": "resnet50", "optimizer": "lars", "epochs": 3, "momentum": 0.8, "global-batch": 3200})"},
      {"--recipe rn50-mlperf --batch-per-rank 32", R"({"batch-per-rank": 32, "global-batch": null})"},
      {"--recipe torchvision --max-steps 500", R"({"epochs": null})"},
      {"--no-whiten --recipe cifar10-94 --no-nesterov --decay-norm",
       R"({"whiten": false, "nesterov": false, "no-decay-norm": false, "dirac-init": true})"},
      {"--recipe cifar10-94 --ema-every 3 --no-lookahead", R"({"ema": 0.774, "ema-every": 3, "lookahead": false})"},
      {"--optimizer adamw --lr 0.001 --no-nesterov --no-lookahead", R"({"nesterov": false, "lookahead": false})"},
      {"--recipe torchvision --max-steps 500 --epochs 4", R"({"epochs": 4})"},

      // The learning rate is this optimizer's own.
      {"--optimizer sgd", R"({"optimizer": "sgd"})"},
      {"--recipe rn50-mlperf --optimizer lars", R"({"optimizer": "lars"})"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.arguments);
    EXPECT_EQ(parse(row.arguments), "");
    nlohmann::json fields = json_of(settings_, Field::Part::recipe);
    fields.update(json_of(settings_, Field::Part::run));
    const nlohmann::json expected = nlohmann::json::parse(row.fields);
    for (const auto& [name, value] : expected.items()) EXPECT_EQ(fields.at(name), value) << name;
  }
}

TEST_F(OptionsTest, options_of_an_optimizer_reach_it) {
  EXPECT_EQ(parse("--optimizer adamw --lr 0.001 --beta1 0.8 --beta2 0.95 --epsilon 1e-6 --weight-decay 0.01 "
                  "--no-decay-norm"),
            "");
  const OptimizerOptions& adamw = recipe_.optimizer;
  EXPECT_EQ(adamw.kind, OptimizerKind::adamw);
  EXPECT_EQ(adamw.beta1, 0.8F);
  EXPECT_EQ(adamw.beta2, 0.95F);
  EXPECT_EQ(adamw.epsilon, 1e-6F);
  EXPECT_EQ(adamw.weight_decay, 0.01F);
  EXPECT_EQ(adamw.decay_scope, DecayScope::weights_only);
}

TEST_F(OptionsTest, options_of_lars_reach_it) {
  EXPECT_EQ(parse("--optimizer lars --lr 5 --momentum 0.8 --nesterov --trust 0.02 --weight-decay 0.01"), "");
  const OptimizerOptions& lars = recipe_.optimizer;
  EXPECT_EQ(lars.kind, OptimizerKind::lars);
  EXPECT_EQ(lars.momentum, 0.8F);
  EXPECT_EQ(lars.momentum_kind, Momentum::nesterov);
  EXPECT_EQ(lars.trust_coefficient, 0.02F);
  EXPECT_EQ(lars.weight_decay, 0.01F);
}

TEST_F(OptionsTest, options_of_muon_reach_it) {
  EXPECT_EQ(parse("--optimizer muon --lr 0.24 --muon-momentum 0.95 --ns-steps 5 --momentum 0.85 --nesterov "
                  "--weight-decay 0.01 --no-decay-norm"),
            "");
  const OptimizerOptions& muon = recipe_.optimizer;
  EXPECT_EQ(muon.kind, OptimizerKind::muon);
  EXPECT_EQ(muon.muon_momentum, 0.95F);
  EXPECT_EQ(muon.ns_steps, 5);
  EXPECT_EQ(muon.momentum, 0.85F);
  EXPECT_EQ(muon.momentum_kind, Momentum::nesterov);
  EXPECT_EQ(muon.weight_decay, 0.01F);
  EXPECT_EQ(muon.decay_scope, DecayScope::weights_only);
}

// No data are named, and none are asked for.
TEST_F(OptionsTest, the_recipe_is_printed_as_a_checkpoint_keeps_it) {
  try {
    app_.parse("--recipe torchvision --print-recipe --epochs 3 --seed 5");
    ADD_FAILURE() << "it goes on";
  } catch (const CLI::Success& printed) {
    EXPECT_EQ(printed.get_exit_code(), 0);
    const nlohmann::json recipe = nlohmann::json::parse(printed.what());
    EXPECT_EQ(recipe, json_of(settings_, Field::Part::recipe));
    EXPECT_EQ(recipe["epochs"], 3);
    EXPECT_EQ(recipe["seed"], 5);
    EXPECT_EQ(recipe["optimizer"], "sgd");
    EXPECT_EQ(recipe["milestones"], (std::vector<double>{30, 60}));
  }
}

// As ValidSettings completes it.
TEST_F(OptionsTest, the_printed_recipe_has_the_virtual_ranks_of_trainers) {
  try {
    app_.parse("--sync ps --trainers 3 --output o --print-recipe");
    ADD_FAILURE() << "it goes on";
  } catch (const CLI::Success& printed) {
    EXPECT_EQ(nlohmann::json::parse(printed.what())["virtual-ranks"], 3);
  }
}

// A recipe was printed that no training would have taken.
TEST_F(OptionsTest, what_no_training_takes_is_refused_and_not_printed_either) {
  struct Refusal {
    const char* arguments;
    std::string subject;  // that the message names
  };
  const std::vector<Refusal> rows = {
      {"--model banana", "banana"},
      {"--model renset18", "Did you mean resnet18?"},
      {"--model lenet --zero-init-gamma", "--zero-init-gamma"},
      {"--image-size 128 --image-size-ramp 160:5:7", "--image-size-ramp"},
      {"--image-size-ramp 160:7:5", "--image-size-ramp"},
      {"--epochs 3 --warmup 3", "--warmup"},
      {"--schedule step --milestones 3 2", ""},
      {"--global-batch 64 --virtual-ranks 6", "--global-batch"},
      {"--batch-per-rank 32 --global-batch 64", "--global-batch"},
      {"--new-head", "--new-head"},
      {"--fresh-weights", "--fresh-weights"},
      {"--model net.onnx --init-from m.h5 --fresh-weights", "--fresh-weights"},
      {"--epoks 3", "--epoks"},

      // Somebody who states what nothing reads believes in a training that there is not.
      {"--optimizer adamw --lr 0.001 --momentum 0.8", "--momentum"},
      {"--optimizer lars --lr 5 --no-decay-norm", "--no-decay-norm"},
      {"--recipe rn50-mlperf --beta1 0.8", "--beta1"},
      {"--beta2 0.9", "--beta2"},
      {"--lookahead", "without --ema"},
      {"--ema-every 3", "--ema-every"},
      {"--whiten --no-whiten", "--no-whiten says the opposite"},
      {"--shuffle-window 64", "--shuffle-window"},
      {"--milestones 3", "--milestones"},

      // With the default, which is SGD's, AdamW would learn nothing.
      {"--optimizer adamw", "--optimizer"},
      {"--optimizer lars", "--optimizer"},
      {"--optimizer muon", "--optimizer"},
      {"--optimizer muon --lr 0.24 --trust 0.1", "--trust"},
      {"--optimizer adamw --lr 0.001 --ns-steps 5", "--ns-steps"},
      {"--recipe rn50-mlperf --optimizer adamw", "--optimizer"},

      // The range was said to end at 17976931348623157081452742373170435...
      {"--momentum nan", "--momentum"},
      {"--lr 0", "--lr"},
      {"--lr-factor -2", "--lr-factor"},
      {"--bucket-mib 1025", "--bucket-mib"},
      {"--batch-per-rank 0", "--batch-per-rank"},
      {"--label-smoothing 1", "--label-smoothing"},
      {"--milestones 1 two", "--milestones"},
      {"--cutout 0", "--cutout"},
      {"--mixup 0", "--mixup"},
      {"--clip-value 0", "--clip-value"},
      {"--epochs 1.5", "--epochs"},
      {"--keep-latest 0", "--keep-latest"},
      // 2^64 and -1 became 2^64 - 1.
      {"--seed 18446744073709551616", "--seed"},
      {"--seed -1", "--seed"},

      {"--schedule linear", "--schedule"},
      {"--optimizer adam", "--optimizer"},
      {"--precision fp8", "--precision"},
      {"--reduce ring", "--reduce"},
      {"--instruction-set avx", "--instruction-set"},
      {"--convolutions fft", "--convolutions"},
      {"--checkpoint-every often", "--checkpoint-every"},
      {"--time-limit 90", "--time-limit"},
      {"--time-limit nan", "--time-limit"},
      {"--time-limit 1e400h", "--time-limit"},
  };
  for (const Refusal& row : rows) {
    SCOPED_TRACE(row.arguments);
    expect_message(parse(row.arguments), {row.subject});
    expect_message(parse(row.arguments, "--print-recipe "), {row.subject});
  }
  expect_message(parse("--recipe rn50-mlpref"), {"--recipe", "'rn50-mlpref'", "rn50-mlperf", "rn50-ffcv-16"});
}

// The later one was in summary.json too, and a reader took either.
TEST_F(OptionsTest, a_key_of_a_tag_is_given_once) {
  EXPECT_EQ(parse("--tag a=1 ab=1 --tag b=a=1"), "");
  expect_message(parse("--tag a=1 b=2 --tag a=3"), {"--tag", "'a=1'", "'a=3'"});
}

// nan passed CLI11's checks of ranges: with --hang-timeout nan no rank was ever late.
TEST_F(OptionsTest, what_is_no_finite_number_is_refused_everywhere) {
  for (const std::string option : {"--momentum", "--weight-decay", "--label-smoothing", "--lr", "--lr-factor",
                                   "--warmup", "--milestones", "--hang-timeout", "--epochs", "--seed", "--threads"}) {
    for (const std::string text : {"nan", "inf", "-inf", "1e400", "0x10", "1_000", "1,000", "12abc", "+1", "-1"}) {
      if (option == "--milestones" && text == "1,000") continue;  // two epochs
      const std::string words = parse(option + " " + text);
      EXPECT_TRUE(words.starts_with(option + ": '" + text + "' ")) << option << ' ' << text << ": " << words;
    }
  }
}

TEST_F(OptionsTest, spaces_and_no_text_are_no_number) {
  for (const std::string text : {"", " ", "1 ", " 1"}) {
    std::vector<std::string> reversed = {text, "--epochs", "d", "--data"};
    try {
      app_.parse(reversed);
      FAIL() << "'" << text << "' is taken";
    } catch (const CLI::ParseError& error) {
      expect_message(error.what(), {"--epochs", text});
    }
  }
}

// `--init-from "$UNSET"` trained from scratch.
TEST_F(OptionsTest, an_empty_name_of_a_file_or_folder_is_refused) {
  for (const std::string option : {"--init-from", "--data", "--output", "--checkpoints"}) {
    CLI::App app;
    declare_training(app, settings_, valid_);
    std::vector<std::string> reversed = {"", option};
    try {
      app.parse(reversed);
      FAIL() << option << " takes an empty name";
    } catch (const CLI::ParseError& error) {
      expect_message(error.what(), {option});
    }
  }
}

}  // namespace lockstep::field_options_test
