// What is read of the files of a run, whole, damaged, and in the place of which something else stands.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <tuple>

#include "run/checkpoint_files.hpp"
#include "run/exit_report.hpp"
#include "run/metrics.hpp"
#include "run/run_file.hpp"
#include "run/training_status.hpp"
#include "support/mutation.hpp"
#include "support/special_files.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::run_files_test {

namespace fs = std::filesystem;
using Kind = MetricsLine::Kind;

constexpr const char* summary_text_of_a_run = R"({
 "state": "stopped" ,
 "started": "2026-11-22T07:20:00Z", "ended": null, "command_line": ["train_cifar", 7, "--lr", "0.1"],
 "interruptions": [{"state": "killed", "step": 75, "resumed": "2026-11-22T08:20:01Z", "ranks": 2, "device": "cpu: one",
                    "steps": 300},
                   {"state": "failed", "step": 80, "resumed": "2026-11-22T09:20:01Z"}, 7,
                   {"state": "killed", "step": "80", "resumed": "2026-11-22T09:20:01Z"},
                   {"state": "killed", "step": 80, "resumed": "then"}, {"state": "odd", "step": 80,
                    "resumed": "2026-11-22T09:20:01Z"}],
 "model": "lenet", "data": "digits", "device": "cpu: one", "precision": "fp32", "weights_hash": "0123",
 "step": 100, "steps": 400, "epochs": 4, "steps_per_epoch": 100, "ranks": 4, "global_batch": 128,
 "hosts": {"n1": [0, 1], "n2": [2, 3]}, "samples_per_second": 50.5, "test_accuracy": 0.5, "validation_accuracy": 0.25,
 "best_accuracy": 0.625, "best_step": 80, "best_split": "validation",
 "run": {"note": "mine", "tag": ["a=1", 2, "b"], "output": "runs/a", "checkpoints": "elsewhere"}
})";
constexpr const char* training_line =
    R"({"kind":"training","epoch":2,"step":200,"steps":400,"samples":6400,"samples_per_second":64.0,"loss":2.5,)"
    R"("accuracy":0.75,"learning_rate":0.1,"seconds":100})";
constexpr const char* test_line =
    R"({"kind":"test","epoch":2,"step":200,"loss":1.5,"accuracy":0.5,"top5":0.9,"ema_loss":1,"ema_accuracy":0.6})";
constexpr const char* exit_report =
    R"({"code": 71, "signal": 9, "rank": 3, "host": "n1", "bad_hosts": ["n2"], "step": 5, "sentence": "bad", "time": 1})";
constexpr const char* lock_line =
    R"({"host":"n2","job":"17","name_space":4026531836,"process":5,"restarts":1,"start":"9@b","token":"t"})";

class RunFilesTest : public testing::Test {
 protected:
  void write(const fs::path& name, const std::string& text) const {
    fs::create_directories((folder_.path() / name).parent_path());
    std::ofstream(folder_.path() / name, std::ios::binary) << text;
  }
  // NUMBER:BYTES:STEP of each line of metrics.jsonl; step 0 if it is damaged.
  std::string lines() const {
    std::string text;
    read_metrics(folder_.path(), [&](const NumberedLine& line) {
      text += fmt::format("{}:{}:{} ", line.number, std::min<std::size_t>(line.text.size(), 65'537),
                          line.content ? line.content->step : 0);
    });
    return text;
  }

  TemporaryFolder folder_;
  const WithinSeconds limit_{600};
};

TEST_F(RunFilesTest, a_summary_is_read_as_values) {
  EXPECT_FALSE(read_summary(folder_.path()));
  write("summary.json", summary_text_of_a_run);
  const Summary summary = read_summary(folder_.path()).value();
  EXPECT_EQ(summary.state, RunState::stopped);
  EXPECT_EQ(summary.started, 1795332000);
  EXPECT_EQ(summary.ended, std::nullopt);
  ASSERT_EQ(summary.interruptions.size(), 2U);
  const Interruption& first = summary.interruptions[0];
  EXPECT_EQ(std::tuple(name_of_end(first.end), first.step, first.resumed, first.ranks.value(), first.device,
                       first.steps.value()),
            std::tuple("killed", 75, 1795335601, 2, "cpu: one", 300));
  EXPECT_EQ(summary.interruptions[1].end, RunState::failed);
  EXPECT_EQ(summary.interruptions[1].ranks, std::nullopt);
  EXPECT_EQ(summary.interruptions[1].steps, std::nullopt);
  EXPECT_EQ(summary.command_line, (std::vector<std::string>{"train_cifar", "--lr", "0.1"}));
  EXPECT_EQ(std::tuple(summary.model, summary.data, summary.device, summary.precision, summary.weights_hash,
                       summary.best_split, summary.note),
            std::tuple("lenet", "digits", "cpu: one", "fp32", "0123", "validation", "mine"));
  EXPECT_EQ(
      std::tuple(summary.step.value(), summary.steps.value(), summary.epochs.value(), summary.steps_per_epoch.value(),
                 summary.ranks.value(), summary.nodes.value(), summary.global_batch.value(), summary.best_step.value()),
      std::tuple(100, 400, 4, 100, 4, 2, 128, 80));
  EXPECT_EQ(std::tuple(summary.samples_per_second.value(), summary.test_accuracy.value(),
                       summary.validation_accuracy.value(), summary.best_accuracy.value()),
            std::tuple(50.5, 0.5, 0.25, 0.625));
  EXPECT_EQ(summary.tags, (std::vector<std::string>{"a=1", "b"}));
  EXPECT_EQ(summary.output, "runs/a");
  EXPECT_EQ(summary.checkpoints, "elsewhere");
  EXPECT_EQ(summary.fields["hosts"].size(), 2U);
}

// Half a million brackets overflowed the stack.
TEST_F(RunFilesTest, what_is_no_object_is_no_summary) {
  constexpr std::size_t depth = 1'000'000;
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("\"done\""), std::string("{}x"),
        std::string(R"({"state": "done", "step": 1e999})"), std::string(summary_text_of_a_run).substr(0, 200),
        std::string(100, '\0'), R"({"a": )" + std::string(depth, '[') + std::string(depth, ']') + "}"}) {
    EXPECT_FALSE(parse_summary(text)) << text.substr(0, 60);
  }
}

TEST_F(RunFilesTest, a_damaged_field_counts_as_absent_and_leaves_the_others) {
  for (const char* value :
       {"null", "\"9\"", "[9]", "{}", "true", "-1", "9.0", "9007199254740993", "9223372036854775808", "1e300"}) {
    const Summary summary = parse_summary(fmt::format(R"({{"step": {}, "steps": 3}})", value)).value();
    EXPECT_EQ(summary.step, std::nullopt) << value;
    EXPECT_EQ(summary.steps, 3);
  }
  for (const char* value : {"null", "\"0.5\"", "-0.5", "1e16", "18446744073709551615"}) {
    EXPECT_EQ(parse_summary(fmt::format(R"({{"test_accuracy": {}}})", value))->test_accuracy, std::nullopt) << value;
  }
  for (const char* value : {"7", "\"odd\"", "\"\"", "[\"done\"]", "null"}) {
    EXPECT_EQ(parse_summary(fmt::format(R"({{"state": {}}})", value))->state, std::nullopt) << value;
  }
  for (const char* value : {"\"2026-11-22\"", "7", "\"20x6-11-22T07:20:00Z\"", "\"2026-13-22T07:20:00Z\"", "null",
                            "\"2026-11-22T07:20:00Zx\"", "\"99999-11-22T07:20:00Z\"", "\"2026-11-22 07:20:00Z\""}) {
    EXPECT_EQ(parse_summary(fmt::format(R"({{"started": {}}})", value))->started, std::nullopt) << value;
  }
  for (const char* value : {"7", "{\"a\": 1}", "\"killed\"", "[[]]", "null"}) {
    const Summary summary =
        parse_summary(fmt::format(R"({{"interruptions": {0}, "command_line": {0}, "hosts": 1, "run": {0}}})", value))
            .value();
    EXPECT_TRUE(summary.interruptions.empty() && summary.command_line.empty() && summary.note.empty()) << value;
    EXPECT_EQ(summary.nodes, std::nullopt);
  }
}

TEST_F(RunFilesTest, of_a_repeated_name_the_last_value_counts) {
  const Summary summary = parse_summary(R"({"state": "done", "step": 1, "state": "failed", "step": 2})").value();
  EXPECT_EQ(summary.state, RunState::failed);
  EXPECT_EQ(summary.step, 2);
  EXPECT_EQ(parse_exit_report(R"({"code": 2, "code": 3, "sentence": ""})")->code, 3);
}

TEST_F(RunFilesTest, a_line_of_metrics_is_read_as_values) {
  const MetricsLine line = parse_metrics_line(training_line).value();
  EXPECT_EQ(std::tuple(line.kind, line.epoch, line.step, line.steps.value(), line.samples.value()),
            std::tuple(Kind::training, 2, 200, 400, 6400));
  EXPECT_EQ(
      std::tuple(line.loss.value(), line.accuracy.value(), line.learning_rate.value(), line.samples_per_second.value()),
      std::tuple(2.5, 0.75, 0.1, 64));
  EXPECT_EQ(line.top5, std::nullopt);
  const MetricsLine test = parse_metrics_line(test_line).value();
  EXPECT_EQ(std::tuple(test.kind, test.top5.value(), test.ema_loss.value(), test.ema_accuracy.value()),
            std::tuple(Kind::test, 0.9, 1, 0.6));
  EXPECT_EQ(parse_metrics_line(R"({"kind":"validation","epoch":1,"step":1})")->kind, Kind::validation);
  EXPECT_EQ(parse_metrics_line(R"({"kind":"of a later version","epoch":1,"step":1})")->kind, Kind::other);
  for (const std::string& damaged :
       {std::string(), std::string("nonsense"), std::string("[]"), std::string(R"({"kind":"test","epoch":1})"),
        std::string(R"({"kind":"test","step":1})"), std::string(R"({"epoch":1,"step":1})"),
        std::string(R"({"kind":"test","epoch":0,"step":1})"), std::string(R"({"kind":"test","epoch":1,"step":1e999})"),
        std::string(R"({"kind":1,"epoch":1,"step":1})"), std::string(70000, ' ') + test_line,
        R"({"kind":"test","epoch":1,"step":1,"a":)" + std::string(100, '[') + std::string(100, ']') + "}"}) {
    EXPECT_FALSE(parse_metrics_line(damaged)) << damaged.substr(0, 60);
  }
}

TEST_F(RunFilesTest, every_line_of_metrics_that_has_its_end_is_read) {
  EXPECT_FALSE(read_metrics(folder_.path(), [](const NumberedLine&) { FAIL(); }));
  write("metrics.jsonl", "");
  EXPECT_TRUE(read_metrics(folder_.path(), [](const NumberedLine&) { FAIL(); }));
  const std::string line = R"({"kind":"test","epoch":1,"step":7})";
  write("metrics.jsonl", line + "\n\nrubbish\n" + line + "\n" + line);
  EXPECT_EQ(lines(), "1:34:7 2:0:0 3:7:0 4:34:7 ");
  // Lines across the pieces in which the file is read, and one that has none of its size in memory.
  const std::string many(3 << 20, 'x');
  write("metrics.jsonl", line + "\n" + many + "\n" + line + "\n");
  EXPECT_EQ(lines(), "1:34:7 2:65537:0 3:34:7 ");
}

TEST_F(RunFilesTest, a_hundred_megabytes_of_metrics_are_read_and_of_anything_else_are_not) {
  constexpr std::uintmax_t large = 100'000'000;
  const std::string line = R"({"kind":"test","epoch":1,"step":7})";
  write("metrics.jsonl", line + "\n");
  fs::resize_file(folder_.path() / "metrics.jsonl", large);
  std::ofstream(folder_.path() / "metrics.jsonl", std::ios::app) << "\n" << line << "\n";
  EXPECT_EQ(lines(), "1:34:7 2:65537:0 3:34:7 ");
  EXPECT_EQ(read_newest_metrics(folder_.path()).test->step, 7);
  for (const auto& [name, text] : {std::pair("summary.json", summary_text_of_a_run), std::pair("lock", lock_line),
                                   std::pair("failure.json", exit_report)}) {
    write(name, text);
    EXPECT_TRUE(read_run_file(folder_.path() / name, 1 << 20));
    fs::resize_file(folder_.path() / name, large);
  }
  EXPECT_FALSE(read_summary(folder_.path()));
  EXPECT_FALSE(read_exit_report(folder_.path() / "failure.json"));
  EXPECT_EQ(holder_of(folder_.path()).kind, FolderHolder::Kind::nobody);
}

TEST_F(RunFilesTest, the_newest_line_of_each_kind_is_found_at_the_end) {
  const std::string older = R"({"kind":"training","epoch":1,"step":100,"steps":400})";
  const std::string whole = older + "\n" + training_line + "\n" + test_line + "\n";
  write("metrics.jsonl", whole + "nonsense\n" + R"({"kind":"training","epoch":3,"step":300,"steps":400,"samples":96)");
  EXPECT_EQ(read_newest_metrics(folder_.path()).training->step, 200);
  EXPECT_EQ(read_newest_metrics(folder_.path()).test->step, 200);
  write("metrics.jsonl", whole + std::string(1 << 17, 'x'));
  EXPECT_FALSE(read_newest_metrics(folder_.path()).training) << "it lies before the end that is read";
}

TEST_F(RunFilesTest, exit_reports_are_read_with_care) {
  const ExitReport report = parse_exit_report(exit_report).value();
  EXPECT_EQ(std::tuple(report.code, report.signal, report.rank, report.host, report.sentence),
            std::tuple(71, 9, 3, "n1", "bad"));
  EXPECT_EQ(report.bad_hosts, (std::vector<std::string>{"n2"}));
  const ExitReport little = parse_exit_report(R"({"code": 1, "signal": null, "rank": -1, "sentence": ""})").value();
  EXPECT_EQ(little.signal, 0);
  EXPECT_EQ(little.error_line, "");
  EXPECT_EQ(parse_exit_report(R"({"code": 1, "sentence": "", "error_line": "cp: x"})")->error_line, "cp: x");
  EXPECT_EQ(little.rank, -1);
  for (const char* host : {"n1;reboot", "$(reboot)", "n[1-3]", "n[1]", "n1,n2", "", "n1 n2"}) {
    EXPECT_EQ(parse_exit_report(fmt::format(R"({{"code": 71, "host": "{}", "sentence": ""}})", host))->host, "")
        << host;
  }
  for (const char* text :
       {"", "{}", "[1]", "null", R"({"code": 0, "sentence": ""})", R"({"code": 256, "sentence": ""})",
        R"({"code": -1, "sentence": ""})", R"({"code": "1", "sentence": ""})", R"({"code": 1})",
        R"({"code": 1e99, "sentence": ""})", R"({"code": 1, "sentence": 3})", "{\"code\": 1"}) {
    EXPECT_FALSE(parse_exit_report(text)) << text;
  }
  EXPECT_FALSE(read_exit_report(folder_.path() / "nowhere"));
  write("failure.json", exit_report);
  EXPECT_EQ(read_exit_report(folder_.path() / "failure.json")->code, 71);
}

TEST_F(RunFilesTest, a_lock_says_who_holds_the_folder) {
  EXPECT_EQ(holder_of(folder_.path()).kind, FolderHolder::Kind::nobody);
  write("lock", std::string(lock_line) + "\n00000000000000000007\n");
  const FolderHolder holder = holder_of(folder_.path());
  EXPECT_EQ(holder.kind, FolderHolder::Kind::elsewhere);
  EXPECT_EQ(holder.process.job, "17");
  EXPECT_EQ(holder.process.restarts, 1);
  EXPECT_EQ(holder.process.process, 5);
  EXPECT_TRUE(holder.lock.ends_with("7\n")) << "it changes with each heartbeat";
  EXPECT_EQ(lock_holder_text(holder.process), lock_line);
  write("lock", lock_holder_text(this_lock_holder()));
  EXPECT_EQ(holder_of(folder_.path()).kind, FolderHolder::Kind::here);
  for (const char* damaged : {"", "{", "[]", "{}", R"({"job":"17"})", R"({"job":17,"restarts":1,"host":"n2","process":5,
       "start":"","name_space":1,"token":""})"}) {
    write("lock", damaged);
    EXPECT_EQ(holder_of(folder_.path()).kind, FolderHolder::Kind::nobody) << damaged;
  }
  LockHolder hostile;
  hostile.host = hostile.job = "n\x1b[2J";
  EXPECT_EQ(describe_lock_holder(hostile).find('\x1b'), std::string::npos);
}

TEST_F(RunFilesTest, checkpoints_are_found_by_their_names) {
  EXPECT_FALSE(newest_checkpoint(folder_.path() / "nowhere"));
  EXPECT_FALSE(newest_checkpoint(folder_.path()));
  EXPECT_FALSE(newest_checkpoint(""));
  for (const char* name : {"step-000000000040.h5", "step-000000000312.h5", "step-000000000099.h5", "step-many.h5",
                           "step-000000000999.h5.copy", "step-9999.h5", "step--00000000001.h5", "lock",
                           ".step-000000009999.h5.0123456789abcdef.lockstep-partial"}) {
    write(name, "");
  }
  fs::create_directories(folder_.path() / "step-000000000999.h5");
  EXPECT_EQ(checkpoints_in(folder_.path()).size(), 4U);
  EXPECT_EQ(checkpoints_in(folder_.path()).at(40).filename(), checkpoint_name(40));
  const NewestCheckpoint newest = newest_checkpoint(folder_.path()).value();
  EXPECT_EQ(newest.step, 312) << "a folder is no checkpoint to go on from";
  EXPECT_EQ(newest.path, folder_.path() / "step-000000000312.h5");
  EXPECT_NEAR(static_cast<double>(newest.written), static_cast<double>(std::time(nullptr)), 100);
}

// Opening a pipe waited for a writer that never came.
TEST_F(RunFilesTest, what_is_no_regular_file_is_not_read) {
  const auto expect_nothing = [&](const char* name, const char* there) {
    SCOPED_TRACE(fmt::format("{} is a {}", name, there));
    EXPECT_FALSE(read_run_file(folder_.path() / name, 1 << 20));
    const TrainingStatus status = training_status(folder_.path());
    EXPECT_EQ(status.summary.state, std::nullopt);
    EXPECT_EQ(status.step, std::nullopt);
    EXPECT_EQ(status.holder.kind, FolderHolder::Kind::nobody);
    EXPECT_EQ(status.checkpoint_step, std::nullopt);
  };
  const fs::path elsewhere = folder_.path() / "whole";
  for (const auto& [name, text] : {std::pair("summary.json", summary_text_of_a_run),
                                   std::pair("metrics.jsonl", "{\"kind\":\"training\",\"epoch\":1,\"step\":1}\n"),
                                   std::pair("lock", lock_line), std::pair("failure.json", exit_report)}) {
    for (const SpecialFile kind : all_special_files) {
      const SpecialFileAt there(kind, folder_.path() / name);
      expect_nothing(name, there.name());
    }
    write("whole", text);
    EXPECT_TRUE(read_run_file(elsewhere, 1 << 20));
    fs::create_symlink("whole", folder_.path() / name);
    expect_nothing(name, "link to a whole one");
    fs::remove(folder_.path() / name);
  }
}

void expect_in_range(const std::optional<std::int64_t>& count) {
  EXPECT_TRUE(!count || (*count >= 0 && *count <= std::int64_t{1} << 53)) << count.value_or(0);
}
void expect_in_range(const std::optional<double>& number) {
  EXPECT_TRUE(!number || (*number >= 0 && *number <= 1e15)) << number.value_or(0);
}

TEST_F(RunFilesTest, no_damage_gives_a_value_out_of_its_range) {
  const std::uint64_t rounds = mutation_rounds(1000);
  std::uint64_t read = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    if (const std::optional<Summary> summary = parse_summary(mutated(summary_text_of_a_run, round))) {
      ++read;
      for (const auto& count : {summary->step, summary->steps, summary->epochs, summary->steps_per_epoch,
                                summary->ranks, summary->global_batch, summary->nodes, summary->best_step}) {
        expect_in_range(count);
      }
      for (const auto& number : {summary->samples_per_second, summary->test_accuracy, summary->best_accuracy}) {
        expect_in_range(number);
      }
      EXPECT_LE(summary->interruptions.size(), 6U);
      for (const Interruption& one : summary->interruptions) {
        expect_in_range(one.ranks);
        expect_in_range(one.steps);
      }
      EXPECT_FALSE(checkpoint_folder_of(*summary, folder_.path()).empty());
    }
    if (const std::optional<MetricsLine> line = parse_metrics_line(mutated(training_line, round))) {
      EXPECT_TRUE(line->step >= 1 && line->epoch >= 1);
      for (const auto& count : {line->steps, line->samples}) expect_in_range(count);
      for (const auto& number : {line->loss, line->accuracy, line->learning_rate, line->samples_per_second}) {
        expect_in_range(number);
      }
    }
    if (const std::optional<ExitReport> report = parse_exit_report(mutated(exit_report, round))) {
      EXPECT_TRUE(report->code >= 1 && report->code <= 255 && report->signal >= 0 && report->rank >= -1);
      EXPECT_EQ(report->host.find_first_of(" ;$[]\n\x1b"), std::string::npos);
    }
    if (const std::optional<LockHolder> holder = parse_lock_holder(mutated(lock_line, round))) {
      EXPECT_GE(holder->process, 0);
      EXPECT_EQ(describe_lock_holder(*holder).find('\n'), std::string::npos);
    }
    if (testing::Test::HasFailure()) FAIL() << "round " << round;
  }
  EXPECT_GT(read, rounds / 50);
}

}  // namespace lockstep::run_files_test
