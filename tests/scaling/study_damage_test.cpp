// A study.json of unknown origin is refused in a sentence or told in words: never a crash, nor a figure that is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"
#include "made_up_study.hpp"
#include "scaling/findings.hpp"
#include "scaling/plan.hpp"
#include "scaling/study_file.hpp"
#include "scaling/study_page.hpp"
#include "scaling/study_table.hpp"
#include "support/mutation.hpp"

namespace lockstep::study_damage_test {

// One of its numbers is another value: JSON still, which damaged bytes seldom are.
std::string with_another_value(const std::string& text, std::uint64_t round) {
  std::vector<std::size_t> numbers;
  for (std::size_t at = 1; at < text.size(); ++at) {
    if (text[at - 1] == ' ' && text[at] >= '0' && text[at] <= '9') numbers.push_back(at);
  }
  constexpr std::array<std::string_view, 12> values = {
      "0", "-1", "1", "1e-9", "1e-300", "1e6", "1e300", "1e999", "9223372036854775807", "null", "\"x\"", "[[]]"};
  const auto draws = philox(12, 0, round);
  std::string changed = text;
  const std::size_t at = numbers[draws[0] % numbers.size()];
  const std::size_t end = text.find_first_not_of("0123456789.eE+-", at);
  return changed.replace(at, end - at, values.at(draws[1] % values.size()));
}

// All that programs print and write of a study.
std::string told(const Study& study) {
  std::string message = study_table(study) + study_sentences(study) + study_csv(study) + study_page(study);
  try {
    const StepModel model = model_of(study);
    PlanRequest request;
    request.grid = {8, 1};
    request.batch_per_rank = study.weak_batch;
    request.samples = 50'000;
    const std::vector<TrainingPlan> plans = {plan_training(study, model, request)};
    message += plans_table(plans) + plan_advice(plans.front());
  } catch (const Error& error) {
    EXPECT_EQ(error.failure(), Failure::usage) << error.what();
  }
  return message;
}

TEST(DamagedStudy, is_refused_or_told_in_figures) {
  Study study = made_up_study({.ranks = {1, 2, 3, 4}});
  add_varied(study, {.threads = 2}, 1.5);
  study.accuracy_epochs = 2;
  study.accuracies = {{64, {0.5, 0.6}, ""}, {128, {0.4}, "its training diverged"}};
  const std::string whole = study_text(study);
  const std::uint64_t rounds = mutation_rounds(600);
  std::uint64_t refused = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    try {
      const std::string text = round % 4 == 0 ? mutated(whole, round) : with_another_value(whole, round);
      const std::string message = told(parse_study(text, "damaged.json"));
      for (const std::string_view none : {"nan", "inf ", "inf,", "inf%", "inf<"}) {
        ASSERT_EQ(message.find(none), std::string::npos)
            << round << ": " << message.substr(message.find(none) - 60, 120);
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.failure(), Failure::bad_data) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, rounds / 4);
  EXPECT_LT(refused, rounds);
}

}  // namespace lockstep::study_damage_test
