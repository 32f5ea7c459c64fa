// What is read of a training's folder, and what is refused.
#include "report/run_record.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.hpp"
#include "base/text/utf8.hpp"
#include "report/training_page.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"
#include "support/mutation.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::run_record_test {

namespace fs = std::filesystem;

constexpr const char* summary_file = R"({"state":"stopped",
 "steps": 20, "epochs": 2, "step": 10, "model": "lenet", "data": "cifar10", "hosts": {"n1": [0, 1]}, "lr": 0.1234567,
 "test_accuracy": null, "recipe": {"lr": 0.1}, "command_line": ["train_cifar", "--lr", "0.1"],
 "interruptions": [{"state": "killed", "step": 5, "resumed": "2026-11-22T07:20:00Z", "ranks": 2, "device": "cpu"},
                   {"step": "five"}, 7]})";
constexpr const char* metrics_file =
    R"({"kind":"training","epoch":1,"step":5,"loss":2.5,"accuracy":null,"learning_rate":0.1}
{"kind":"slowest rank","epoch":1,"step":5,"rank":1}
{"kind":"training","epoch":1,"step":10,"loss":2.0,"accuracy":0.5}
{"kind":"test","epoch":1,"step":10,"loss":1.5,"accuracy":0.6,"top5":0.9}
{"kind":"validation","epoch":1,"step":10,"loss":1.25,"accuracy":0.7}
{"kind":"trainer","epoch":1,"step":3,"trainer":0,"host":"n1","process":"4711","change":"joined","trainers":1}
{"kind":"trainer","epoch":1,"step":7,"trainer":0,"host":"n1","change":"left","reason":"leaves: it rains","trainers":0}
{"kind":"trainer","epoch":1,"step":8,"trainer":[1],"host":5}
{"kind":"of a later version","epoch":1,"step":10}
)";

class RunRecordTest : public testing::Test {
 protected:
  RunRecordTest() {
    write("summary.json", summary_file);
    write("metrics.jsonl", metrics_file);
  }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_.path() / name, std::ios::binary) << text;
  }
  std::string refusal(Failure failure) {
    return message_of(failure, [&] { read_run(folder_.path()); });
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  TemporaryFolder folder_;
};

TEST_F(RunRecordTest, lines_are_sorted_by_kind_and_counted_in_epochs) {
  const RunRecord run = read_run(folder_.path());
  EXPECT_TRUE(run.state.starts_with("stopped")) << run.state;
  ASSERT_EQ(run.training.size(), 2U);
  ASSERT_EQ(run.tests.size(), 1U);
  ASSERT_EQ(run.validations.size(), 1U);
  ASSERT_EQ(run.trainers.size(), 3U);
  EXPECT_EQ(run.trainers[0].step, 3);
  EXPECT_EQ(run.trainers[0].number + run.trainers[0].process + run.trainers[0].host, "04711n1");
  EXPECT_EQ(run.trainers[0].change, "joined");
  EXPECT_EQ(run.trainers[1].change, "leaves: it rains");
  EXPECT_EQ(run.trainers[1].trainers, 0);
  EXPECT_EQ(run.trainers[2].change, "");
  EXPECT_DOUBLE_EQ(run.steps_per_epoch, 10);
  EXPECT_EQ(run.training[0].loss, 2.5);
  EXPECT_EQ(run.text("hosts"), "n1: 0 1");
  EXPECT_EQ(run.text("lr"), "0.123457");
  EXPECT_EQ(run.text("command_line"), "train_cifar --lr 0.1");
  EXPECT_EQ(run.text("test_accuracy"), "");
  EXPECT_EQ(run.text("not there"), "");
}

// Its metrics may be negative, and of any name.
TEST_F(RunRecordTest, metrics_of_a_training_loop_of_its_own_are_kept_by_name) {
  write("summary.json", R"({"state":"done","steps":4,"epochs":1,"model":"count_up","validation_metrics":{"x":-8.5},
    "recipe":{"options":{"rate":0.5}}})");
  write("metrics.jsonl", R"({"kind":"training","epoch":1,"step":2,"steps":4,"x":-1.5,"loss":3,"name":"text"}
{"kind":"validation","epoch":1,"step":2,"x":-4,"seconds":7}
{"kind":"validation","epoch":1,"step":4,"x":-8.5,"y":null}
)");
  const RunRecord run = read_run(folder_.path());
  ASSERT_EQ(run.own_metrics.size(), 2U);
  EXPECT_EQ(run.own_metrics.at("loss").training.size(), 1U);
  EXPECT_EQ(run.own_metrics.at("x").training.at(0).y, -1.5);
  ASSERT_EQ(run.own_metrics.at("x").validation.size(), 2U);
  EXPECT_EQ(run.own_metrics.at("x").validation[1].x, 4);
  EXPECT_EQ(run.own_metrics.at("x").validation[1].y, -8.5);
  const std::vector<Plot> plots = plots_of(std::span(&run, 1));
  ASSERT_EQ(plots.size(), 2U);
  EXPECT_EQ(plots[1].title, "x");
  EXPECT_EQ(plots[1].series.size(), 2U);
  const std::string page = training_html(std::span(&run, 1), "");
  EXPECT_NE(page.find("Training of count_up<"), std::string::npos) << page;
  EXPECT_NE(page.find("x: -8.5"), std::string::npos);
}

TEST_F(RunRecordTest, dense_curves_of_own_metrics_keep_their_last_point) {
  write("summary.json", R"({"state":"done","steps":1003,"epochs":1,"validation_metrics":{}})");
  std::string lines;
  for (int step = 1; step <= 1003; ++step) {
    lines += fmt::format("{{\"kind\":\"validation\",\"epoch\":1,\"step\":{},\"x\":{}}}\n", step, step);
  }
  write("metrics.jsonl", lines);
  const RunRecord run = read_run(folder_.path());
  const std::vector<Plot> plots = plots_of(std::span(&run, 1));
  EXPECT_LE(plots.at(0).series.at(0).points.size(), 250U);
  EXPECT_EQ(plots[0].series[0].points.back().x, 1003);
}

// "step 0 of 20", 0 samples/s and 0:00: those of the summary, which is written at tests.
TEST_F(RunRecordTest, a_running_or_killed_training_has_the_numbers_of_its_metrics) {
  constexpr const char* start = R"({"state":"running","steps":20,"epochs":2,"step":0,"samples_per_second":0,
    "training_seconds":0,"test_accuracy":null})";
  write("summary.json", start);
  write("metrics.jsonl", "");
  const RunRecord before = read_run(folder_.path());
  const std::string empty = training_html(std::span(&before, 1), "");
  for (const char* row : {"<td>step</td>", "<td>samples per second</td>", "<td>training time</td>"}) {
    EXPECT_EQ(empty.find(row), std::string::npos) << row;
  }
  write("metrics.jsonl",
        R"({"kind":"training","epoch":1,"step":5,"steps":20,"samples":320,"samples_per_second":64.4,"seconds":75}
{"kind":"test","epoch":1,"step":5,"accuracy":0.625,"seconds":80}
)");
  const RunRecord run = read_run(folder_.path());
  const std::string page = training_html(std::span(&run, 1), "");
  for (const char* row : {"<td>step</td><td>5 of 20</td>", "<td>samples per second</td><td>64</td>",
                          "<td>training time</td><td>1:20</td>", "<td>test accuracy (top-1)</td><td>62.50 %</td>"}) {
    EXPECT_NE(page.find(row), std::string::npos) << row << "\n" << page;
  }
}

// 150 of 468 steps were drawn as a whole epoch.
TEST_F(RunRecordTest, an_epoch_has_its_steps_where_a_number_of_steps_ends_the_training) {
  write("summary.json", R"({"state":"done","steps":10,"epochs":1,"steps_per_epoch":40})");
  const RunRecord run = read_run(folder_.path());
  EXPECT_DOUBLE_EQ(run.steps_per_epoch, 40);
}

// A training that runs, or was killed as it wrote.
TEST_F(RunRecordTest, a_line_without_its_end_is_left_out) {
  write("metrics.jsonl", std::string(metrics_file) + R"({"kind":"training","epoch":1,"st)");
  EXPECT_EQ(read_run(folder_.path()).training.size(), 2U);
  write("metrics.jsonl", "");
  EXPECT_TRUE(read_run(folder_.path()).training.empty());
}

TEST_F(RunRecordTest, a_folder_without_a_training_is_named) {
  fs::remove(folder_.path() / "metrics.jsonl");
  expect_message(refusal(Failure::usage), {path("metrics.jsonl")});
  fs::remove(folder_.path() / "summary.json");
  expect_message(refusal(Failure::usage), {folder_.path().string()});
}

TEST_F(RunRecordTest, a_damaged_summary_is_named) {
  for (const char* text : {"", "{", "[]", R"({"state":7})", R"({"state":"odd"})", R"("done")"}) {
    write("summary.json", text);
    expect_message(refusal(Failure::bad_data), {path("summary.json")});
  }
  for (const char* steps : {"0", "-1", "1e300", "1.5", "\"9\"", "1"}) {
    write("summary.json", fmt::format(R"({{"state":"done","steps":{},"epochs":2}})", steps));
    expect_message(refusal(Failure::bad_data), {path("summary.json")});
  }
}

TEST_F(RunRecordTest, a_damaged_line_is_told_by_its_number) {
  for (const char* line : {"nonsense", "", R"({"kind":"training","epoch":1})"}) {
    write("metrics.jsonl", std::string(metrics_file) + line + "\n" + metrics_file);
    SCOPED_TRACE(line);
    expect_message(refusal(Failure::bad_data), {fmt::format("line 10 of '{}'", path("metrics.jsonl"))});
  }
}

// And a page is text, whatever it was made from.
TEST_F(RunRecordTest, no_damage_does_more_than_be_refused_or_make_a_page) {
  const std::uint64_t rounds = mutation_rounds(500);
  std::uint64_t pages = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const bool of_summary = round % 2 == 0;
    write("summary.json", of_summary ? mutated(summary_file, round) : summary_file);
    write("metrics.jsonl", of_summary ? metrics_file : mutated(metrics_file, round));
    try {
      const std::vector<RunRecord> runs{read_run(folder_.path())};
      const std::string html = training_html(runs, "");
      ++pages;
      for (std::string_view left = html; !left.empty(); left.remove_prefix(first_character(left).bytes)) {
        const std::optional<char32_t> code = first_character(left).code;
        ASSERT_TRUE(code && (*code >= ' ' || *code == '\n')) << round;
      }
    } catch (const Error& error) {
      EXPECT_TRUE(error.failure() == Failure::bad_data || error.failure() == Failure::usage) << error.what();
    }
  }
  EXPECT_GT(pages, rounds / 20);
}

}  // namespace lockstep::run_record_test
