#include "files/checkpoint/training_state.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "support/messages.hpp"
#include "support/mutation.hpp"
#include "support/samples/small_checkpoint.hpp"

namespace lockstep::training_state_test {

using Json = nlohmann::json;
using ::testing::HasSubstr;

// The words with which the state is refused after `change`.
template <typename Change>
std::string refusal(Change change) {
  Json json = Json::parse(training_state_text(small_checkpoint().state));
  change(json);
  try {
    parse_training_state(json.dump());
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "accepted";
}

std::string quoted(const std::string& field) { return "'" + field + "'"; }

TEST(TrainingStateTest, comes_back_to_the_bit) {
  const TrainingState state = small_checkpoint().state;
  EXPECT_EQ(training_state_text(parse_training_state(training_state_text(state))), training_state_text(state));
  const TrainingState read = parse_training_state(training_state_text(state));
  EXPECT_EQ(read.progress.step, 12);
  EXPECT_EQ(read.progress.tested_step, 10);
  EXPECT_EQ(read.report.stretch.loss_sum, 2.0 / 3.0);
  EXPECT_EQ(read.report.stretch.correct, 17);
  EXPECT_EQ(read.report.test_loss, 1.0 / 3.0);
  EXPECT_EQ(read.loss_scale->scale, 32768);
  EXPECT_EQ(read.loss_scale->clean_steps, 7);
  EXPECT_EQ(read.recipe, state.recipe);
  EXPECT_EQ(read.origin.versions, state.origin.versions);
  EXPECT_EQ(read.kernel_plan, state.kernel_plan);
  EXPECT_EQ(read.scores, state.scores);
}

TEST(TrainingStateTest, the_accuracy_without_test_time_augmentation_comes_back) {
  TrainingState state = small_checkpoint().state;
  EXPECT_THAT(training_state_text(state), testing::Not(HasSubstr("plain_test")));
  for (const PlainTest& plain :
       {PlainTest{TestTimeAugmentation::flip, 0.5}, {TestTimeAugmentation::flip_shift, 1, 0.25}}) {
    state.report.plain_test = plain;
    EXPECT_EQ(parse_training_state(training_state_text(state)).report.plain_test, plain);
  }
  const auto with = [](const Json& plain) {
    return refusal([&](Json& json) { json["report"]["plain_test"] = plain; });
  };
  EXPECT_EQ(with({{"augmentation", "flip"}, {"accuracy", 0.5}}), "accepted");
  expect_message(with({{"augmentation", "turn"}, {"accuracy", 0.5}}), {"'augmentation'"});
  expect_message(with({{"augmentation", "flip"}}), {"'accuracy'"});
  expect_message(with("flip"), {"'augmentation'"});
}

TEST(TrainingStateTest, the_accuracy_of_a_validation_without_test_time_augmentation_comes_back) {
  TrainingState state = small_checkpoint().state;
  EXPECT_THAT(training_state_text(state), testing::Not(HasSubstr("plain_validation")));
  state.report.plain_validation = 0.25;
  EXPECT_EQ(parse_training_state(training_state_text(state)).report.plain_validation, 0.25);
  expect_message(refusal([](Json& json) { json["report"]["plain_validation"] = "0.25"; }), {"'plain_validation'"});
}

// One number in the form that earlier versions read.
TEST(TrainingStateTest, updates_of_the_ranks_come_back_as_one_number_or_as_many) {
  TrainingState state = small_checkpoint().state;
  EXPECT_THAT(training_state_text(state), testing::Not(HasSubstr("own_updates")));
  state.own_updates = {12};
  EXPECT_THAT(training_state_text(state), HasSubstr("\"own_updates\":12"));
  for (const std::vector<std::int64_t>& updates : {std::vector<std::int64_t>{12}, {8, 0, 16}}) {
    state.own_updates = updates;
    EXPECT_EQ(parse_training_state(training_state_text(state)).own_updates, updates);
  }
  for (const Json& wrong : {Json("8"), Json{8}, Json::array(), Json{8, -1}, Json{8, "8"}, Json{8, 0.5}}) {
    expect_message(refusal([&](Json& json) { json["own_updates"] = wrong; }), {"'own_updates'"});
  }
}

// A test loss that overflowed was written as null, and the checkpoint was then called damaged.
TEST(TrainingStateTest, a_loss_that_is_not_finite_comes_back_as_none) {
  TrainingState state = small_checkpoint().state;
  state.report.test_loss = std::numeric_limits<double>::infinity();
  state.report.stretch.loss_sum = std::numeric_limits<double>::quiet_NaN();
  const TrainingState read = parse_training_state(training_state_text(state));
  EXPECT_TRUE(std::isnan(read.report.test_loss));
  EXPECT_TRUE(std::isnan(read.report.stretch.loss_sum));
  EXPECT_EQ(read.report.score, state.report.score);
}

TEST(TrainingStateTest, text_that_is_not_utf8_is_kept_as_what_can_be_read) {
  TrainingState state = small_checkpoint().state;
  state.origin.device = "cpu caf\xE9";
  EXPECT_EQ(parse_training_state(training_state_text(state)).origin.device, "cpu caf\uFFFD");
}

TEST(TrainingStateTest, a_training_without_loss_scaling_says_so) {
  TrainingState state = small_checkpoint().state;
  state.loss_scale.reset();
  EXPECT_FALSE(parse_training_state(training_state_text(state)).loss_scale.has_value());
}

// The hash of a checkpoint keeps such damage from it; whoever means harm writes the hash too.
TEST(TrainingStateTest, no_damage_makes_reading_crash) {
  const std::string whole = training_state_text(small_checkpoint().state);
  for (std::uint64_t round = 0; round < mutation_rounds(5000); ++round) {
    try {
      const TrainingState state = parse_training_state(mutated(whole, round));
      EXPECT_GE(state.progress.step, state.progress.tested_step) << round;
      EXPECT_GE(state.origin.ranks, 1) << round;
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), HasSubstr("its state")) << round;
    }
  }
}

TEST(TrainingStateTest, every_missing_field_is_named) {
  const Json whole = Json::parse(training_state_text(small_checkpoint().state));
  for (const auto& [field, value] : whole.items()) {
    EXPECT_THAT(refusal([name = field](Json& json) { json.erase(name); }), HasSubstr(quoted(field)));
    if (!value.is_object() || field == "recipe") continue;
    for (const auto& [inner, ignored] : value.items()) {
      EXPECT_THAT(refusal([outer = field, name = inner](Json& json) { json[outer].erase(name); }),
                  HasSubstr(quoted(inner)));
    }
  }
}

TEST(TrainingStateTest, numbers_that_cannot_be_are_refused) {
  expect_message(refusal([](Json& json) { json["progress"]["step"] = -1; }), {"'step'"});
  expect_message(refusal([](Json& json) { json["progress"]["step"] = 1.5; }), {"'step'"});
  expect_message(refusal([](Json& json) { json["progress"]["samples"] = std::int64_t{1} << 60; }), {"'samples'"});
  expect_message(refusal([](Json& json) { json["progress"]["tested_step"] = 13; }), {"'tested_step'"});
  expect_message(refusal([](Json& json) { json["origin"]["ranks"] = 0; }), {"'ranks'"});
  for (const double scale : {0.0, 3.0, 0.5, 1e30, -2.0}) {
    expect_message(refusal([scale](Json& json) { json["loss_scale"]["scale"] = scale; }), {"'scale'"});
  }
}

TEST(TrainingStateTest, fields_of_another_type_are_refused) {
  expect_message(refusal([](Json& json) { json = Json::array(); }), {});
  expect_message(refusal([](Json& json) { json["progress"] = 3; }), {"'step'"});
  expect_message(refusal([](Json& json) { json["recipe"] = "lenet"; }), {"'recipe'"});
  expect_message(refusal([](Json& json) { json["scores"] = Json::object(); }), {"'scores'"});
  expect_message(refusal([](Json& json) { json["scores"] = Json::array({{{"step", 1}}}); }), {"'accuracy'"});
  expect_message(refusal([](Json& json) { json["origin"]["versions"]["HDF5"] = 1; }), {"'HDF5'"});
  expect_message(refusal([](Json& json) { json["report"]["seconds"] = "long"; }), {"'seconds'"});
}

}  // namespace lockstep::training_state_test
