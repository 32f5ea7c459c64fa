#include "base/text/nearest_name.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::nearest_name_test {

const std::vector<std::string> names = {"epochs", "ema", "ema-every", "batch-per-rank", "lr", "momentum", "output"};

TEST(NearestNameTest, a_slip_of_the_fingers_is_understood) {
  EXPECT_EQ(nearest_name("epoch", names), "epochs");       // left out
  EXPECT_EQ(nearest_name("outputt", names), "output");     // put in
  EXPECT_EQ(nearest_name("nomentum", names), "momentum");  // replaced
  EXPECT_EQ(nearest_name("otuput", names), "output");      // exchanged: one edit, not two
  EXPECT_EQ(nearest_name("mea", names), "ema");
  EXPECT_EQ(nearest_name("lt", names), "lr");
  EXPECT_EQ(nearest_name("batch-per-gpu", names), "batch-per-rank");
  EXPECT_EQ(nearest_name("epochs", names), "epochs");
}

TEST(NearestNameTest, another_word_is_no_misspelling) {
  const std::vector<std::string> others = {"", "x", "xy", "abc", "workers", "exp", "sgd", std::string(5000, 'e')};
  for (const std::string& word : others) {
    EXPECT_EQ(nearest_name(word, names), "") << word;
  }
  EXPECT_EQ(nearest_name("epoch", {}), "");
  const std::vector<std::string> rate = {"learning-rate"};
  EXPECT_EQ(nearest_name("learning-rates", rate), "learning-rate");
  EXPECT_EQ(nearest_name("learning-rate-decay", rate), "");
}

TEST(NearestNameTest, of_equally_near_ones_the_first) {
  const std::vector<std::string> two = {"fp32", "fp16"};
  EXPECT_EQ(nearest_name("fp36", two), "fp32");
}

TEST(NearestNameTest, words_are_there_only_with_a_name) {
  EXPECT_NE(did_you_mean("epoch", names).find(" epochs"), std::string::npos);
  EXPECT_EQ(did_you_mean("workers", names), "");
}

}  // namespace lockstep::nearest_name_test
