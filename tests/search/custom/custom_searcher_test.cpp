// Conversations with real programs: shell scripts that answer line by line.
#include "search/custom/custom_searcher.hpp"

#include <gmock/gmock.h>
#include <poll.h>

#include "base/io/file.hpp"
#include "base/text/json_text.hpp"
#include "support/messages.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::custom_searcher_test {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

class CustomSearcherTest : public testing::Test {
 protected:
  CustomSearcherTest() {
    space_.searcher = {SearcherKind::custom, 3};
    space_.searcher.max_length = 8;
    space_.hyperparameters = {{"lr", 1, Hyperparameter::Kind::real, {}, 0, 1}};
  }

  CustomSearcher searcher(const std::string& script) {
    space_.command = {"sh", "-c", script};
    return {space_, folder_.path()};
  }

  // Waits for an answer, and follows it.
  static std::vector<Order> answered(CustomSearcher& searcher, bool is_busy = true) {
    for (;;) {
      const auto line = searcher.next_answer(true, is_busy);
      if (line) return searcher.follow(*line);
      pollfd wait{searcher.handle(), POLLIN, 0};
      ::poll(&wait, 1, 50);
    }
  }

  TemporaryFolder folder_;
  Space space_;
};

constexpr const char* proposes = R"(read begin; read ask; echo '{"settings": {"lr": 0.5}, "length": 2}'; )";

TEST_F(CustomSearcherTest, trials_are_proposed_continued_and_stopped) {
  CustomSearcher one = searcher(std::string(proposes) +
                                R"(read ask; echo "$ask" >&2; echo '{"length": 8}'; read ask; echo '"stop"';
                                   read ask; echo '"done"'; read done; echo "$done" >&2)");
  EXPECT_TRUE(one.is_open());
  const std::vector<Order> first = answered(one);
  EXPECT_THAT(first, ElementsAre(Order{1, 0, 2}));
  EXPECT_THAT(one.settings_of(1), ElementsAre("--lr=0.5"));
  one.report(first[0], 0.25);
  const std::vector<Order> second = answered(one);
  EXPECT_THAT(second, ElementsAre(Order{1, 1, 8}));
  one.report(second[0], std::nullopt);  // has failed
  EXPECT_THAT(answered(one), ElementsAre());
  EXPECT_THAT(answered(one), ElementsAre());
  EXPECT_FALSE(one.is_open());
  one.finish();
  const std::string log = read_file(folder_.path() / "searcher.log", 1000);
  EXPECT_THAT(log, HasSubstr(R"({"ask":"report","length":2,"metric":0.25,"trial":1})"));
  EXPECT_THAT(log, HasSubstr(R"({"ask":"done"})"));
}

TEST_F(CustomSearcherTest, a_continued_search_replays_answers_and_asks_about_the_rest) {
  CustomSearcher one = searcher(R"(read begin; echo "$begin" >&2; read ask; echo "$ask" >&2; echo '"stop"')");
  const json proposal = {{"ask", "propose"}, {"trial", 1}, {"answer", {{"settings", {{"lr", 0.5}}}, {"length", 2}}}};
  EXPECT_THAT(one.follow(proposal), ElementsAre(Order{1, 0, 2}));
  one.report({1, 0, 2}, 0.25);
  EXPECT_THAT(one.follow({{"ask", "report"}, {"trial", 1}, {"answer", {{"length", 4}}}}), ElementsAre(Order{1, 1, 4}));
  one.report({1, 1, 4}, 0.125);
  EXPECT_EQ(one.handle(), -1);  // nobody was asked
  EXPECT_THAT(answered(one), ElementsAre());
  const std::string log = read_file(folder_.path() / "searcher.log", 2000);
  EXPECT_THAT(log,
              HasSubstr(R"("results":[{"length":2,"metric":0.25}],"settings":{"lr":0.5},"stopped":false,"trial":1)"));
  EXPECT_THAT(log, HasSubstr(R"({"ask":"report","length":4,"metric":0.125,"trial":1})"));
}

TEST_F(CustomSearcherTest, wait_asks_again_after_the_next_result) {
  CustomSearcher one = searcher(std::string(proposes) + R"(read ask; echo '"wait"'; read ask; echo '"stop"';
                                read ask; echo '"wait"'; exec sleep 100)");
  const std::vector<Order> first = answered(one);
  for (int turn = 0; turn < 100 && one.next_answer(true, true) == std::nullopt; ++turn) ::poll(nullptr, 0, 5);
  one.report(first[0], 0.5);
  EXPECT_THAT(answered(one), ElementsAre());
  expect_error(Failure::usage, {"wait", "'sh -c"}, [&] { answered(one, false); });
}

TEST_F(CustomSearcherTest, a_program_that_fails_is_named) {
  const auto expect_failure = [&](Failure failure, Subjects subjects, const std::string& script) {
    CustomSearcher one = searcher(script);
    expect_error(failure, subjects, [&] { answered(one); });
  };
  expect_failure(Failure::other, {"'sh -c", "code 3", "searcher.log"}, "read begin; exit 3");
  expect_failure(Failure::usage, {"'sh -c", "nonsense"}, "echo nonsense; exec sleep 100");
  expect_failure(Failure::usage, {"'sh -c", "'lr'", "7"}, R"(echo '{"settings": {"lr": 7}}'; exec sleep 100)");
  expect_failure(Failure::usage, {"'sh -c", "'length'", "8"},
                 R"(echo '{"settings": {"lr": 1}, "length": 9}'; exec sleep 100)");
  expect_failure(Failure::usage, {"'sh -c", "\"stop\""}, R"(echo '"stop"'; exec sleep 100)");
  space_.answer_seconds = 0.2;
  expect_failure(Failure::other, {"'sh -c", "0.2 seconds"}, "exec sleep 100");
  space_.command = {"no-such-program"};
  CustomSearcher absent(space_, folder_.path());
  expect_error(Failure::other, {"'no-such-program'", "127"}, [&] { answered(absent); });
}

TEST_F(CustomSearcherTest, a_trial_of_full_length_can_only_stop) {
  CustomSearcher one = searcher(R"(read begin; read ask; echo '{"settings": {"lr": 0.5}}'; read ask;
                                echo '{"length": 8}'; exec sleep 100)");
  one.report(answered(one)[0], 0.5);
  expect_error(Failure::usage, {"full length", "\"stop\""}, [&] { answered(one); });
}

TEST_F(CustomSearcherTest, a_failed_trial_cannot_continue) {
  CustomSearcher one = searcher(std::string(proposes) + R"(read ask; echo '{"length": 4}'; exec sleep 100)");
  one.report(answered(one)[0], std::nullopt);
  expect_error(Failure::usage, {"failed", "trial 1"}, [&] { answered(one); });
}

}  // namespace lockstep::custom_searcher_test
