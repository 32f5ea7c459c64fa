#include "device/cuda/conv/engine_choice.hpp"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::cuda::engine_choice_test {

TEST(EngineChoiceTest, text_gives_the_choice_back) {
  for (const EngineChoice& choice : {EngineChoice{0, {}}, EngineChoice{31, {{2, 1}}},
                                     EngineChoice{1025, {{2, 1}, {5, 300}, {0, 0}}}, EngineChoice{0, {{1023, -1}}}}) {
    EXPECT_EQ(EngineChoice::parse(choice.text()), choice) << choice.text();
  }
  EXPECT_EQ((EngineChoice{31, {{2, 1}, {5, 3}}}).text(), "engine 31 knobs 2:1 5:3");
}

TEST(EngineChoiceTest, other_text_is_refused) {
  std::string many = "engine 1 knobs";
  for (int knob = 0; knob < 65; ++knob) many += " 1:1";
  for (const std::string& text :
       {std::string(), std::string("engine"), std::string("engine "), std::string("engine x"), std::string("engine -1"),
        std::string("engine 99999999999999999999"), std::string("engine 1 "), std::string("engine 1 knobs"),
        std::string("engine 1 knobs 2"), std::string("engine 1 knobs 2:"), std::string("engine 1 knobs 2:3 "),
        std::string("engine 1 knobs -2:3"), std::string("engine 1 knobs 1024:1"),
        std::string("engine 1 knobs 2:99999999999999999999"), std::string("engine 1 knobs 2:3;"), many}) {
    EXPECT_EQ(EngineChoice::parse(text), std::nullopt) << text;
  }
}

}  // namespace lockstep::cuda::engine_choice_test
