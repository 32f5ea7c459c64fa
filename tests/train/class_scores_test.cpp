#include "train/evaluation/class_scores.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "train/evaluation/evaluation_json.hpp"

namespace lockstep::class_scores_test {

// Nine samples of four classes, of which the last has none.
Evaluation evaluation() {
  Evaluation result;
  result.classes = 4;
  result.samples = 9;
  result.confusion = {{{0, 0}, 1}, {{0, 1}, 2}, {{0, 2}, 1}, {{1, 1}, 2}, {{2, 0}, 2}, {{2, 2}, 1}};
  return result;
}

TEST(ClassScoresTest, an_evaluation_counts_by_label_and_prediction) {
  EXPECT_EQ(evaluation().count(0, 1), 2);
  EXPECT_EQ(evaluation().count(1, 0), 0);
  EXPECT_EQ(evaluation().label_count(0), 4);
  EXPECT_EQ(evaluation().label_count(2), 3);
  EXPECT_EQ(evaluation().label_count(3), 0);
  EXPECT_EQ(evaluation().correct(), 4);
}

TEST(ClassScoresTest, mistakes_are_sorted_by_how_frequent_they_are) {
  const std::vector<Confusion> confusions = confusions_of(evaluation());
  ASSERT_EQ(confusions.size(), 3U);
  EXPECT_EQ(confusions[0].label, 0);
  EXPECT_EQ(confusions[0].prediction, 1);
  EXPECT_EQ(confusions[0].samples, 2);
  EXPECT_EQ(confusions[1].label, 2);
  EXPECT_EQ(confusions[2].samples, 1);
}

TEST(ClassScoresTest, the_worst_classes_come_first_and_one_without_samples_not_at_all) {
  const std::vector<ClassScore> scores = worst_classes(evaluation());
  ASSERT_EQ(scores.size(), 3U);
  EXPECT_EQ(scores[0].label, 0);  // 1 of 4
  EXPECT_EQ(scores[1].label, 2);  // 1 of 3
  EXPECT_EQ(scores[2].label, 1);
  EXPECT_EQ(scores[2].samples, 2);
  EXPECT_EQ(scores[2].correct, 2);
  EXPECT_EQ(scores[2].predicted, 4);
}

TEST(ClassScoresTest, as_json_rows_have_every_class_or_of_very_many_classes_those_that_occur) {
  EXPECT_EQ(confusion_json(evaluation()).dump(), "[[1,2,1,0],[0,2,0,0],[2,0,1,0],[0,0,0,0]]");
  Evaluation many = evaluation();
  many.classes = 100'000;
  const nlohmann::json rows = confusion_json(many);
  ASSERT_EQ(rows.size(), 100'000U);
  EXPECT_EQ(rows[2].dump(), R"({"0":2,"2":1})");
  EXPECT_EQ(rows[3].dump(), "{}");
  EXPECT_EQ(worst_classes(many).size(), 3U);
}

}  // namespace lockstep::class_scores_test
