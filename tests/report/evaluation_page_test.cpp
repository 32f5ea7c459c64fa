// What a page says of an evaluation: counts, the worst classes, which pictures are shown.
#include "report/evaluation_page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace lockstep::evaluation_page_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Labels and predictions of nine samples of four classes, of which the last has none.
constexpr std::array<std::int32_t, 9> labels{0, 0, 0, 0, 1, 1, 2, 2, 2};
Evaluation evaluation() {
  Evaluation result;
  result.classes = 4;
  result.samples = 9;
  result.in_top5 = 9;
  result.loss_sum = 9;
  result.predictions = {0, 1, 1, 2, 1, 1, 0, 2, 0};
  for (std::size_t i = 0; i < labels.size(); ++i) ++result.confusion[{labels.at(i), result.predictions[i]}];
  return result;
}

TEST(EvaluationPageTest, an_accuracy_with_test_time_augmentation_names_it_and_the_one_without) {
  Evaluation augmented = evaluation();
  const std::array<std::string, 4> names{"a", "b", "c", "d"};
  EXPECT_THAT(evaluation_html("Evaluation", augmented, names, {}), Not(HasSubstr("augmentation")));
  augmented.augmentation = TestTimeAugmentation::flip_shift;
  augmented.plain_correct = 3;
  EXPECT_THAT(evaluation_html("Evaluation", augmented, names, {}),
              HasSubstr("(flip-shift); top-1 without it: 33.33 %"));
}

TEST(EvaluationPageTest, pictures_are_taken_of_each_kind_of_mistake_in_turn) {
  EXPECT_THAT(select_misclassified(evaluation(), labels, 4), ElementsAre(1, 6, 3, 2));
  EXPECT_THAT(select_misclassified(evaluation(), labels, 2), ElementsAre(1, 6));
  EXPECT_THAT(select_misclassified(evaluation(), labels, 100), ElementsAre(1, 6, 3, 2, 8));
  EXPECT_TRUE(select_misclassified(evaluation(), labels, 0).empty());
}

TEST(EvaluationPageTest, a_section_has_matrix_tables_and_pictures_and_escapes_names) {
  const std::vector<std::string> classes{"<b>cat", "dog", "a very long name of a bird", "frog"};
  const std::vector<MisclassifiedImage> pictures{{0, 1, 7, {1, 2, 3}}};
  const std::string html = evaluation_html("<h>", evaluation(), classes, pictures);
  for (const char* const number : {"4 of 9 samples", "44.44 %", "100.00 %", "1.0000"}) {
    EXPECT_THAT(html, HasSubstr(number));
  }
  EXPECT_THAT(html, HasSubstr("<title>&lt;b&gt;cat predicted as dog: 2 of 4</title>"));
  EXPECT_THAT(html, HasSubstr("a very long na…</text>"));
  EXPECT_THAT(html,
              HasSubstr("<td>&lt;b&gt;cat</td><td>dog</td><td class=\"right\">2</td><td class=\"right\">50.0 %</td>"));
  EXPECT_THAT(html, HasSubstr("<img src=\"data:image/png;base64,AQID\" alt=\"sample 7\">"));
  EXPECT_THAT(html, Not(HasSubstr("<b>")));
  EXPECT_THAT(html, Not(HasSubstr("<h>")));
}

TEST(EvaluationPageTest, names_that_differ_are_shown_differently) {
  const std::vector<std::string> classes{"a\n", "a\\x0a", "dog", "frog"};
  EXPECT_THAT(evaluation_html("", evaluation(), classes, {}),
              HasSubstr("<title>a\\x0a predicted as a\\\\x0a: 2 of 4</title>"));
}

TEST(EvaluationPageTest, many_classes_have_no_matrix_and_a_flawless_model_no_mistakes) {
  Evaluation many;
  many.classes = 41;
  many.samples = 41;
  for (std::int64_t c = 0; c < 41; ++c) many.confusion[{c, c}] = 1;
  const std::string html = evaluation_html("Evaluation", many, std::vector<std::string>(41, "c"), {});
  EXPECT_THAT(html, HasSubstr(" 41 classes "));
  EXPECT_THAT(html, Not(HasSubstr("<td>c</td><td>c</td>")));
  EXPECT_THAT(html, Not(HasSubstr("<svg")));
}

}  // namespace lockstep::evaluation_page_test
