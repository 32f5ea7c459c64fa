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

namespace lockstep {
namespace {

class OptionsTest : public testing::Test {
 protected:
  OptionsTest() {
    settings_.recipe.model = "resnet20";
    settings_.recipe.batch.global_batch = {128, ChosenBy::program};
    app_.option_defaults()->always_capture_default();  // as every program does
    declare_training(app_, settings_);
  }

  // CLI11's words, or nothing.
  std::string parse(const std::string& arguments) {
    try {
      app_.parse("--data d " + arguments);
    } catch (const CLI::ParseError& error) {
      return error.what();
    }
    return "";
  }

  CLI::App app_;
  Settings settings_;
  Recipe& recipe_ = settings_.recipe;
  RunPlan& run_ = settings_.run;
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
    declare_training(app, settings);
    EXPECT_NE(app.get_option_no_throw(name), nullptr) << name;
    std::string words = field.name == "data" ? "" : "--data d ";
    if (!field.needs.empty()) words += "--" + field.needs + (field.needs == "ema" ? " 0.9 " : " f ");
    if (!field.chooser.empty()) words += "--" + field.chooser + " " + field.readers.back() + " ";
    if (field.name != "lr") words += "--lr 0.3 ";
    app.parse(words + name + (field.form == Field::Form::flag ? "" : " " + text));
    EXPECT_EQ(field.texts(settings), std::vector<std::string>{text}) << name;
  }
}

TEST_F(OptionsTest, the_data_must_be_named_and_nothing_else) {
  try {
    app_.parse("--epochs 2");
    ADD_FAILURE() << "without --data";
  } catch (const CLI::ParseError& error) {
    EXPECT_STREQ(error.what(), "--data is required");
  }
}

TEST_F(OptionsTest, kernel_choices_are_kept_where_the_user_keeps_caches) {
  EXPECT_EQ(run_.device.plan_folder, default_plan_folder(this_job()));
}

TEST_F(OptionsTest, no_option_is_outside_the_table) {
  for (const CLI::Option* option : app_.get_options()) {
    const std::string name = option->get_lnames().front();
    const bool is_field = std::ranges::count(training_fields(), name, &Field::name) == 1;
    EXPECT_TRUE(is_field || name == "help" || name == "recipe" || name == "print-recipe") << name;
  }
}

TEST_F(OptionsTest, a_list_takes_the_place_of_the_default) {
  EXPECT_EQ(parse("--schedule step --milestones 1 2.5"), "");
  EXPECT_EQ(recipe_.learning_rate.milestones, (std::vector<double>{1, 2.5}));
}

TEST_F(OptionsTest, a_ramp_is_stated_or_none) {
  EXPECT_EQ(parse("--image-size 192 --image-size-ramp 160:5:7 --test-image-size 256"), "");
  EXPECT_EQ(recipe_.images.ramp, (SizeRamp{160, 5, 7}));
  EXPECT_EQ(recipe_.images.test_side, 256);
  EXPECT_EQ(parse("--image-size-ramp none"), "");
  EXPECT_EQ(recipe_.images.ramp, std::nullopt);
  EXPECT_EQ(parse("--image-size-ramp 160:7:5"),
            "--image-size-ramp: '160:7:5' is no ramp. Write FROM:START:END (160:65:76), with START no later than END, "
            "or none");
}

TEST_F(OptionsTest, the_rate_may_be_written_out) {
  EXPECT_EQ(parse("--learning-rate 0.7"), "");
  EXPECT_DOUBLE_EQ(recipe_.learning_rate.rate, 0.7);
}

TEST_F(OptionsTest, a_batch_per_rank_takes_the_place_of_the_global_batch) {
  EXPECT_EQ(parse("--batch-per-rank 32"), "");
  EXPECT_FALSE(recipe_.batch.global_batch.has_value());
  EXPECT_EQ(recipe_.batch.batch_per_rank, 32);
}

// Somebody who states what nothing reads believes in a training that there is not.
TEST_F(OptionsTest, what_the_chosen_optimizer_or_schedule_does_not_read_is_refused_by_name) {
  EXPECT_EQ(parse("--optimizer adamw --lr 0.001 --momentum 0.8"),
            "--momentum: --optimizer adamw does not read it (sgd and lars do). Leave it out");
  recipe_.optimizer = {};
  EXPECT_EQ(parse("--beta2 0.9"), "--beta2: --optimizer sgd does not read it (adamw does). Leave it out");
  EXPECT_EQ(parse("--shuffle-window 64"),
            "--shuffle-window: --shuffle full does not read it (blocks does). Leave it out");
  EXPECT_EQ(parse("--optimizer lars --lr 5 --no-decay-norm"),
            "--no-decay-norm: --optimizer lars does not read it (sgd and adamw do). Leave it out");
  recipe_.optimizer = {};
  EXPECT_EQ(parse("--milestones 3"), "--milestones: --schedule one-cycle does not read it (step does). Leave it out");
}

TEST_F(OptionsTest, options_of_an_optimizer_reach_it) {
  EXPECT_EQ(parse("--optimizer adamw --lr 0.001 --beta1 0.8 --beta2 0.95 --epsilon 1e-6 --weight-decay 0.01 "
                  "--no-decay-norm"),
            "");
  const auto adamw = std::get<AdamWOptions>(optimizer_options(recipe_.optimizer));
  EXPECT_EQ(adamw.beta1, 0.8F);
  EXPECT_EQ(adamw.beta2, 0.95F);
  EXPECT_EQ(adamw.epsilon, 1e-6F);
  EXPECT_EQ(adamw.weight_decay, 0.01F);
  EXPECT_EQ(adamw.decay_scope, DecayScope::weights_only);
}

TEST_F(OptionsTest, options_of_lars_reach_it) {
  EXPECT_EQ(parse("--optimizer lars --lr 5 --momentum 0.8 --nesterov --trust 0.02 --weight-decay 0.01"), "");
  const auto lars = std::get<LarsOptions>(optimizer_options(recipe_.optimizer));
  EXPECT_EQ(lars.momentum, 0.8F);
  EXPECT_EQ(lars.kind, Momentum::nesterov);
  EXPECT_EQ(lars.trust, 0.02F);
  EXPECT_EQ(lars.weight_decay, 0.01F);
}

TEST_F(OptionsTest, stated_options_win_over_a_recipe_wherever_they_stand) {
  EXPECT_EQ(parse("--epochs 3 --recipe rn50-mlperf --momentum 0.8"), "");
  EXPECT_EQ(recipe_.model, "resnet50");
  EXPECT_EQ(recipe_.optimizer.kind, OptimizerKind::lars);
  EXPECT_EQ(recipe_.epochs.value, 3);
  EXPECT_EQ(recipe_.optimizer.momentum, 0.8F);
  EXPECT_EQ(recipe_.batch.global_batch->value, 3200);
}

TEST_F(OptionsTest, a_batch_per_rank_takes_the_place_of_a_recipes_batch) {
  EXPECT_EQ(parse("--recipe rn50-mlperf --batch-per-rank 32"), "");
  EXPECT_FALSE(recipe_.batch.global_batch.has_value());
  EXPECT_EQ(recipe_.batch.batch_per_rank, 32);
}

TEST_F(OptionsTest, what_a_recipes_optimizer_does_not_read_is_refused_too) {
  EXPECT_EQ(parse("--recipe rn50-mlperf --beta1 0.8"),
            "--beta1: --optimizer lars does not read it (adamw does). Leave it out");
  const std::string words = parse("--recipe rn50-mlpref");
  EXPECT_TRUE(
      words.starts_with("--recipe: unknown recipe 'rn50-mlpref'. Did you mean rn50-mlperf? Known: rn50-ffcv-16, "))
      << words;
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
  EXPECT_EQ(parse("--print-recipe --beta1 0.8"),
            "--beta1: --optimizer sgd does not read it (adamw does). Leave it out");
}

// A recipe was printed that no training would have taken.
TEST_F(OptionsTest, what_a_training_refuses_is_not_printed_either) {
  for (const std::string print : {"", "--print-recipe "}) {
    const auto answer = [&](const std::string& arguments) {
      CLI::App app;
      Settings settings = settings_;
      declare_training(app, settings);
      try {
        app.parse((print.empty() ? "--data d " : print) + arguments);
      } catch (const CLI::ParseError& error) {
        return std::string(error.what());
      }
      return std::string();
    };
    EXPECT_EQ(answer("--model banana"),
              "unknown model 'banana' (--model). Known: convnet, lenet, resnet18, resnet20, resnet34, resnet50, "
              "resnet101.");
    EXPECT_EQ(answer("--model renset18").substr(0, 63),
              "unknown model 'renset18' (--model). Did you mean resnet18? Know");
    EXPECT_EQ(answer("--model lenet --zero-init-gamma"),
              "model 'lenet' has no residual blocks, whose last norms could begin with a scale of 0 "
              "(--zero-init-gamma). Leave out --zero-init-gamma.");
    EXPECT_EQ(answer("--image-size 128 --image-size-ramp 160:5:7"),
              "--image-size-ramp 160:5:7 begins with larger images than it ends with (--image-size 128). Begin with "
              "smaller ones, or without a ramp: --image-size-ramp none.");
    EXPECT_EQ(answer("--epochs 3 --warmup 3"),
              "--warmup 3 does not fit a training of --epochs 3. Shorten the warm-up or train longer.");
    EXPECT_EQ(answer("--schedule step --milestones 3 2"),
              "the milestones of a step schedule must rise. Put them in order and name each once.");
    EXPECT_EQ(answer("--global-batch 64 --virtual-ranks 6"),
              "--global-batch 64 does not divide into 6 equal parts (virtual ranks). Nearest that does: 60 or 66.");
    EXPECT_EQ(answer("--batch-per-rank 32 --global-batch 64"), "--global-batch excludes --batch-per-rank");
    EXPECT_EQ(answer("--epoks 3"), "The following arguments were not expected: 3 --epoks");
  }
}

TEST_F(OptionsTest, a_recipe_whose_end_is_stated_in_steps_has_no_epochs_unless_they_are_stated) {
  EXPECT_EQ(parse("--recipe torchvision --max-steps 500"), "");
  EXPECT_EQ(json_of(settings_, Field::Part::recipe)["epochs"], nullptr);
  EXPECT_EQ(parse("--recipe torchvision --max-steps 500 --epochs 4"), "");
  EXPECT_EQ(json_of(settings_, Field::Part::recipe)["epochs"], 4);
}

// With the default, which is SGD's, AdamW would learn nothing.
TEST_F(OptionsTest, another_optimizer_wants_a_rate_of_its_own) {
  EXPECT_EQ(parse("--optimizer adamw"), "--optimizer: it wants a learning rate of its own. State --lr (often 0.001)");
  EXPECT_EQ(parse("--optimizer lars"),
            "--optimizer: it wants a learning rate of its own. State --lr (often from 1 to 10)");
  EXPECT_EQ(parse("--optimizer sgd"), "");
  EXPECT_EQ(parse("--recipe rn50-mlperf --optimizer adamw"),
            "--optimizer: it wants a learning rate of its own. State --lr (often 0.001)");
  EXPECT_EQ(parse("--recipe rn50-mlperf --optimizer lars"), "");
}

TEST_F(OptionsTest, the_batch_is_stated_in_one_way_only) {
  EXPECT_EQ(parse("--batch-per-rank 32 --global-batch 64"), "--global-batch excludes --batch-per-rank");
}

// nan passed CLI11's checks of ranges: with --hang-timeout nan no rank was ever late.
TEST_F(OptionsTest, what_is_no_finite_number_is_refused_everywhere) {
  for (const std::string option : {"--momentum", "--weight-decay", "--label-smoothing", "--lr", "--lr-factor",
                                   "--warmup", "--milestones", "--hang-timeout", "--epochs", "--seed", "--threads"}) {
    for (const std::string text : {"nan", "inf", "-inf", "1e400", "0x10", "1_000", "1,000", "12abc", "+1", "-1"}) {
      const std::string words = parse(option + " " + text);
      EXPECT_TRUE(words.starts_with(option + ": '" + text + "' is no ")) << option << ' ' << text << ": " << words;
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
      EXPECT_EQ(error.what(), "--epochs: '" + text + "' is no whole number from 1 to 1000000");
    }
  }
}

// 2^64 and -1 became 2^64 - 1, 010 became eight.
TEST_F(OptionsTest, a_seed_is_what_was_written) {
  EXPECT_EQ(parse("--seed 18446744073709551616"),
            "--seed: '18446744073709551616' is no whole number from 0 to 18446744073709551615");
  EXPECT_EQ(parse("--seed -1"), "--seed: '-1' is no whole number from 0 to 18446744073709551615");
  EXPECT_EQ(parse("--seed 18446744073709551615"), "");
  EXPECT_EQ(recipe_.seed, 18446744073709551615U);
  EXPECT_EQ(parse("--seed 010"), "");
  EXPECT_EQ(recipe_.seed, 10U);
}

TEST_F(OptionsTest, a_whole_number_may_have_an_exponent) {
  EXPECT_EQ(parse("--epochs 1e5 --report-every 1.5e3"), "");
  EXPECT_EQ(recipe_.epochs.value, 100'000);
  EXPECT_EQ(run_.report_every, 1500);
  EXPECT_EQ(parse("--epochs 1.5"), "--epochs: '1.5' is no whole number from 1 to 1000000");
}

// The range was said to end at 17976931348623157081452742373170435...
TEST_F(OptionsTest, a_range_is_said_in_words) {
  EXPECT_EQ(parse("--momentum nan"), "--momentum: 'nan' is no number from 0 to 0.9999");
  EXPECT_EQ(parse("--lr 0"), "--lr: '0' is no number above 0 and up to 1000000000");
  EXPECT_EQ(parse("--lr-factor -2"), "--lr-factor: '-2' is no number above 0 and up to 1000000000");
  EXPECT_EQ(parse("--bucket-mib 1025"), "--bucket-mib: '1025' is no whole number from 0 to 1024");
  EXPECT_EQ(parse("--batch-per-rank 0"), "--batch-per-rank: '0' is no whole number from 1 to 2147483648");
  EXPECT_EQ(parse("--label-smoothing 1"), "--label-smoothing: '1' is no number from 0 to 0.999");
  EXPECT_EQ(parse("--milestones 1 two"), "--milestones: 'two' is no number from 0 to 1000000000");
  EXPECT_EQ(parse("--cutout 0"), "--cutout: '0' is no whole number from 1 to 4096");
  EXPECT_EQ(parse("--mixup 0"), "--mixup: '0' is no number above 0 and up to 100");
}

TEST_F(OptionsTest, an_unknown_value_names_the_known_ones) {
  EXPECT_EQ(parse("--schedule linear"),
            "--schedule: unknown value 'linear'. Known: constant, step, cosine, poly, one-cycle");
  EXPECT_EQ(parse("--optimizer adam"),
            "--optimizer: unknown value 'adam'. Did you mean adamw? Known: sgd, lars, adamw");
  EXPECT_EQ(parse("--precision fp8"), "--precision: unknown value 'fp8'. Known: fp32, bf16, fp16");
  EXPECT_EQ(parse("--reduce ring"), "--reduce: unknown value 'ring'. Known: auto, nccl, mpi, shared");
  EXPECT_EQ(parse("--instruction-set avx"),
            "--instruction-set: unknown value 'avx'. Did you mean avx2? Known: auto, amx_bf16, avx512_bf16, avx512, "
            "avx2, baseline");
  EXPECT_EQ(parse("--convolutions fft"), "--convolutions: unknown value 'fft'. Known: auto, direct");
}

TEST_F(OptionsTest, help_shows_defaults_and_units) {
  const std::string help = app_.help();
  const auto line_of = [&help](const std::string& start) {
    const std::size_t first = help.find(start);
    return first == std::string::npos ? "no " + start : help.substr(first, help.find('\n', first) - first);
  };
  // CLI11 2.1 writes "=128", newer ones "[128]".
  for (const auto& [start, shown] :
       {std::pair("--global-batch SAMPLES", "128"), std::pair("--schedule NAME", "one-cycle"),
        std::pair("--momentum SHARE", "0.9"), std::pair("--epochs EPOCHS", "1"), std::pair("--bucket-mib MIB", "4"),
        std::pair("--threads THREADS", "0"), std::pair("--augment NAME", "auto"), std::pair("--precision NAME", "fp32"),
        std::pair("--report-every STEPS", "50"), std::pair("--milestones EPOCHS", "[]")}) {
    const std::string line = line_of(start);
    EXPECT_TRUE(line.find(std::string("=") + shown) != std::string::npos ||
                line.find(std::string("[") + shown + "]") != std::string::npos)
        << line;
  }
}

TEST_F(OptionsTest, checkpoints_are_asked_for_in_steps_epochs_or_time) {
  EXPECT_EQ(parse("--checkpoints c --checkpoint-every 500,10min --keep-latest 3 --keep-best 0 --resume never "
                  "--init-from m.h5 --new-head --time-limit 1.5h"),
            "");
  const CheckpointPlan& plan = run_.checkpoints;
  EXPECT_EQ(plan.folder, "c");
  EXPECT_EQ(checkpoint_interval_text(plan.every), "500,10min");
  EXPECT_EQ(plan.keep.latest, 3);
  EXPECT_EQ(plan.keep.best, 0);
  EXPECT_EQ(plan.resume, "never");
  EXPECT_EQ(recipe_.init.file, "m.h5");
  EXPECT_EQ(recipe_.init.head, Head::fresh);
  EXPECT_EQ(run_.time_limit_seconds, 5400);
}

TEST_F(OptionsTest, what_is_no_interval_or_time_is_answered_with_examples) {
  EXPECT_EQ(
      parse("--checkpoint-every often"),
      "--checkpoint-every: 'often' is no interval. Write steps (500), epochs (2epochs) or a time (10min, 90s, 1h)");
  EXPECT_EQ(parse("--time-limit 90"), "--time-limit: '90' is no time. Write 90s, 10min or 1.5h");
  EXPECT_EQ(parse("--time-limit nan"), "--time-limit: 'nan' is no time. Write 90s, 10min or 1.5h");
  EXPECT_EQ(parse("--time-limit 1e400h"), "--time-limit: '1e400h' is no time. Write 90s, 10min or 1.5h");
  EXPECT_EQ(parse("--keep-latest 0"), "--keep-latest: '0' is no whole number from 1 to 1000000");
  EXPECT_EQ(parse("--new-head"), "--new-head requires --init-from");
}

}  // namespace
}  // namespace lockstep
