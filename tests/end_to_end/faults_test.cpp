// What happens to a training at work: ranks stopped and killed, shards changed and removed under it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/io/file.hpp"
#include "support/program.hpp"
#include "support/samples/small_data_set.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::faults_test {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::MatchesRegex;

class FaultsTest : public testing::Test {
 protected:
  FaultsTest() {
    for (const char* split : {"train", "test"}) write_small_data_set(data() / split, {32, 32, 3}, 200, 50);
  }

  fs::path data() const { return folder_.path() / "data"; }
  fs::path output() const { return folder_.path() / "run"; }
  fs::path shard() const { return data() / "train" / "shard-2.h5"; }
  nlohmann::json read(const char* name) const { return nlohmann::json::parse(read_file(output() / name, 1 << 20)); }
  std::string sentence() const { return read("failure.json")["sentence"]; }

  std::vector<std::string> training(int epochs, const std::vector<std::string>& more) const {
    std::vector<std::string> words = {built_program("train_cifar"),
                                      "--data",
                                      data(),
                                      "--model",
                                      "lenet",
                                      "--epochs",
                                      std::to_string(epochs),
                                      "--output",
                                      output(),
                                      "--threads",
                                      "1",
                                      "--global-batch",
                                      "60",
                                      "--report-every",
                                      "5",
                                      "--augment",
                                      "none"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  // A training without end, to which `fault` is done once it is at work.
  ProgramResult disturb(int ranks, const std::vector<std::string>& options, const std::function<void()>& fault) const {
    std::jthread hand([&](const std::stop_token& stop) {
      const auto is_at_work = [&] {
        std::error_code none;
        return fs::file_size(output() / "metrics.jsonl", none) > 0 && !none;
      };
      while (!is_at_work() && !stop.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (!stop.stop_requested()) fault();
    });
    ProgramResult result = run_program(under_mpirun(ranks, training(1'000'000, options)));
    EXPECT_FALSE(result.timed_out);
    return result;
  }

  // To the rank that was started last.
  void send(const std::string& signal) const {
    EXPECT_EQ(run_program({"pkill", "-" + signal, "--newest", "-f", output().string()}).exit_code, 0);
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(FaultsTest, a_stopped_rank_ends_the_training_with_76_and_its_name) {
  const ProgramResult result = disturb(3, {"--hang-timeout", "2"}, [&] { send("STOP"); });
  EXPECT_EQ(result.exit_code, 76) << result.errors;
  EXPECT_THAT(sentence(), MatchesRegex("rank [0-2] on .* has been stopped for [2-6]\\.[0-9] s while .* \\(ranks? .*"));
}

TEST_F(FaultsTest, a_killed_rank_is_named) {
  const ProgramResult result = disturb(3, {}, [&] { send("KILL"); });
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(sentence(), MatchesRegex("rank [0-2] on .* was killed .*"));
}

TEST_F(FaultsTest, ranks_that_are_asked_say_where_they_are_and_go_on) {
  const ProgramResult result = disturb(2, {}, [&] {
    send("USR2");
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    EXPECT_FALSE(fs::exists(output() / "failure.json"));
    send("KILL");
  });
  EXPECT_THAT(result.errors, HasSubstr("]  is "));
}

TEST_F(FaultsTest, a_shard_that_changes_during_the_training_ends_it_with_65) {
  const ProgramResult result = disturb(2, {}, [&] {
    std::fstream file(shard(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(fs::file_size(shard()) / 2));
    file.write("changed", 7);
  });
  EXPECT_EQ(result.exit_code, 65) << result.errors;
  EXPECT_THAT(sentence(), MatchesRegex(".*'" + shard().string() + "'.* 0 of 1 .* epoch [0-9]+ .*"));
}

TEST_F(FaultsTest, a_shard_that_is_removed_or_cut_during_the_training_ends_it_with_65) {
  const ProgramResult removed = disturb(2, {}, [&] { fs::remove(shard()); });
  EXPECT_EQ(removed.exit_code, 65) << removed.errors;
  EXPECT_THAT(sentence(), HasSubstr("'" + shard().string() + "'"));
  write_small_data_set(data() / "train", {32, 32, 3}, 200, 50);
  fs::remove_all(output());
  disturb(2, {}, [&] { fs::resize_file(shard(), 5000); });
  EXPECT_EQ(read("failure.json")["code"], 65);
  EXPECT_THAT(sentence(), HasSubstr(shard().string()));
}

TEST_F(FaultsTest, audits_and_watching_change_nothing_of_what_is_learned) {
  ASSERT_EQ(run_program(under_mpirun(2, training(2, {"--audit-every", "0", "--hang-timeout", "0"}))).exit_code, 0);
  const std::string hash = read("summary.json")["weights_hash"];
  const ProgramResult watched =
      run_program(under_mpirun(2, training(2, {"--audit-every", "1", "--hang-timeout", "20"})));
  ASSERT_EQ(watched.exit_code, 0) << watched.errors;
  EXPECT_EQ(read("summary.json")["weights_hash"], hash);
}

}  // namespace lockstep::faults_test
