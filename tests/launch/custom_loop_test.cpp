#include "launch/custom_loop.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/messages.hpp"

namespace lockstep::custom_loop_test {

class CustomLoopTest : public testing::Test {
 protected:
  static constexpr std::array<std::string_view, 2> metrics{"x", "y"};
  static constexpr std::array<std::string_view, 1> may_change{"threads"};

  // Returns what parsing throws; empty if it does not.
  std::string parse(const std::string& words) {
    CLI::App app;
    const auto declare = [this](CLI::App& to) {
      add_number(to, "--increment-by", increment_by_, {1, 8}, "Number that each rank adds");
      add_number(to, "--threads", threads_, {1, 8}, "Threads");
      to.add_flag("--fast", is_fast_, "Do not wait");
    };
    app.set_help_flag("--help", "Print help");
    declare_custom_loop(app, declare, metrics, may_change, run_);
    try {
      app.parse(words);
    } catch (const CLI::Error& error) {
      return error.what();
    }
    return "";
  }

  std::int64_t increment_by_ = 1;
  std::int64_t threads_ = 2;
  bool is_fast_ = false;
  CustomRunOptions run_;
};

TEST_F(CustomLoopTest, a_run_gets_its_options_and_those_of_the_program) {
  EXPECT_EQ(parse("--output o --max-steps 1e3 --keep-latest 4 --resume never --time-limit 2min --increment-by 3 "
                  "--fast --threads 4"),
            "");
  EXPECT_EQ(run_.output, "o");
  EXPECT_EQ(run_.max_steps, 1000);
  EXPECT_EQ(run_.keep_latest, 4);
  EXPECT_EQ(run_.resume, "never");
  EXPECT_EQ(run_.time_limit_seconds, 120);
  EXPECT_EQ(run_.of_program, (nlohmann::json{{"increment-by", "3"}, {"fast", "true"}}));
  EXPECT_EQ(increment_by_, 3);
  EXPECT_EQ(parse("--output o --max-steps 7"), "");
  EXPECT_EQ(run_.of_program, (nlohmann::json{{"increment-by", "3"}, {"fast", ""}})) << "the default";
}

TEST_F(CustomLoopTest, its_recipe_needs_no_folder_and_names_its_metrics) {
  const nlohmann::json recipe = nlohmann::json::parse(parse("--print-recipe --increment-by 3"));
  EXPECT_EQ(recipe["metrics"], (nlohmann::json{"x", "y"}));
  EXPECT_EQ(recipe["options"], (nlohmann::json{{"increment-by", "3"}, {"threads", "2"}, {"fast", ""}}));
}

TEST_F(CustomLoopTest, what_a_run_needs_is_required) {
  expect_message(parse("--max-steps 3"), {"--output"});
  expect_message(parse("--output o"), {"--max-steps"});
  expect_message(parse("--print-recipe --increment-by 9"), {"--increment-by", "9"});
}

}  // namespace lockstep::custom_loop_test
