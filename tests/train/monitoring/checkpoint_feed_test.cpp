#include "train/monitoring/checkpoint_feed.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/io/file.hpp"
#include "files/folder/folder_lock.hpp"
#include "support/messages.hpp"
#include "support/no_room.hpp"
#include "support/special_files.hpp"
#include "support/temporary_folder.hpp"
#include "train/monitoring/evaluation_list.hpp"

namespace lockstep::checkpoint_feed_test {

namespace fs = std::filesystem;
using Kind = CheckpointFeed::Look::Kind;
using testing::HasSubstr;

class CheckpointFeedTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((folder.path() / name).parent_path());
    write_file_atomically(folder.path() / name, text);
  }
  void say(const std::string& state) const { write("summary.json", R"({"state": ")" + state + "\"}"); }

  TemporaryFolder folder;
};

TEST_F(CheckpointFeedTest, each_is_given_once_oldest_first_and_the_end_comes_last) {
  CheckpointFeed feed(folder.path());
  EXPECT_EQ(feed.look().kind, Kind::nothing_yet) << "the training has not begun";
  auto lock = std::make_unique<FolderLock>(folder.path(), "--output");
  say("running");
  write("checkpoints/step-000000000002.h5", "two");
  write("checkpoints/step-000000000001.h5", "one");
  EXPECT_EQ(feed.look().image, "one");
  EXPECT_EQ(feed.look().image, "two");
  EXPECT_EQ(feed.look().kind, Kind::nothing_yet);
  write("checkpoints/step-000000000002.h5", "another");
  EXPECT_EQ(feed.look().image, "another") << "a new training writes other files under the same names";
  say("done");
  EXPECT_EQ(feed.look().kind, Kind::nothing_yet) << "who holds the folder may yet write";
  write("checkpoints/step-000000000003.h5", "three");
  lock.reset();
  EXPECT_EQ(feed.look().image, "three");
  const CheckpointFeed::Look end = feed.look();
  EXPECT_EQ(end.kind, Kind::training_over);
  EXPECT_EQ(end.message, "done");
}

TEST_F(CheckpointFeedTest, a_killed_training_is_over) {
  say("running");
  const CheckpointFeed::Look end = CheckpointFeed(folder.path()).look();
  EXPECT_EQ(end.kind, Kind::training_over);
  EXPECT_THAT(end.message, HasSubstr("killed"));
}

TEST_F(CheckpointFeedTest, a_holder_elsewhere_lives_as_long_as_its_lock_changes) {
  LockHolder holder = this_lock_holder();
  holder.host = "another-node";
  const std::string line = lock_holder_text(holder);
  say("running");
  CheckpointFeed feed(folder.path(), std::chrono::milliseconds(200));
  for (int beat = 0; beat < 5; ++beat) {
    write("lock", line + "\n" + std::to_string(beat) + "\n");
    EXPECT_EQ(feed.look().kind, Kind::nothing_yet);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(feed.look().kind, Kind::training_over);
}

Evaluation four_samples() {
  Evaluation evaluation;
  evaluation.classes = 1;
  evaluation.samples = 4;
  evaluation.confusion[{0, 0}] = 4;
  return evaluation;
}

TEST_F(CheckpointFeedTest, the_list_remembers_weights) {
  const fs::path file = EvaluationList::file_of(folder.path() / "r20/", "test");
  EXPECT_EQ(file, folder.path() / "r20.evaluations.test.jsonl");
  {
    EvaluationList list(file);
    EXPECT_FALSE(list.has({.step = 2, .weights_hash = "b"}));
    list.add({.step = 2, .weights_hash = "b"}, 1, four_samples());
    Evaluation evaluation = four_samples();
    evaluation.augmentation = TestTimeAugmentation::flip;
    evaluation.plain_correct = 3;
    list.add({.step = 3, .weights_hash = "c", .augmentation = TestTimeAugmentation::flip}, 1, evaluation);
  }
  EvaluationList again(file);
  EXPECT_TRUE(again.has({.step = 2, .weights_hash = "b"}));
  EXPECT_FALSE(again.has({.step = 3, .weights_hash = "b"}));
  EXPECT_FALSE(again.has({.step = 2, .weights_hash = "c"}));
  EXPECT_THAT(read_file(file, 1 << 12), HasSubstr("{\"accuracy\":1.0,"));
  EXPECT_THAT(read_file(file, 1 << 12), HasSubstr("\"plain_accuracy\":0.75,"));
  EXPECT_THAT(read_file(file, 1 << 12), HasSubstr("\"test_augment\":\"flip\","));
}

// Evaluations of other data, or with other options, were skipped.
TEST_F(CheckpointFeedTest, the_list_remembers_data_and_options) {
  const fs::path file = EvaluationList::file_of(folder.path() / "r20", "test");
  EvaluationInputs inputs{.step = 1, .weights_hash = "a", .data_hash = "d"};
  EvaluationList(file).add(inputs, 1, four_samples());
  const EvaluationList list(file);
  EXPECT_TRUE(list.has(inputs));
  const auto expect_other = [&](const auto& change) {
    EvaluationInputs other = inputs;
    change(other);
    EXPECT_FALSE(list.has(other));
  };
  expect_other([](EvaluationInputs& other) { other.data_hash = "other"; });
  expect_other([](EvaluationInputs& other) { other.augmentation = TestTimeAugmentation::flip; });
  expect_other([](EvaluationInputs& other) { other.rules.shorter_side = 40; });
  expect_other([](EvaluationInputs& other) { other.rules.decoding = Decoding::exact; });
  expect_other([](EvaluationInputs& other) { other.precision = DType::bf16; });
  expect_other([](EvaluationInputs& other) { other.tf32 = true; });
}

TEST_F(CheckpointFeedTest, lines_of_earlier_versions_stay_and_do_not_count) {
  const fs::path file = EvaluationList::file_of(folder.path() / "r20", "test");
  const std::string line = "{\"step\":1,\"weights_hash\":\"a\",\"more\":2}\n";
  write("r20.evaluations.test.jsonl", line);
  EvaluationList list(file);
  EXPECT_FALSE(list.has({.step = 1, .weights_hash = "a"}));
  list.add({.step = 1, .weights_hash = "a"}, 1, four_samples());
  EXPECT_TRUE(list.has({.step = 1, .weights_hash = "a"}));
  EXPECT_THAT(read_file(file, 1 << 12), testing::StartsWith(line));
}

// Each process wrote the whole file, without the lines of the other.
TEST_F(CheckpointFeedTest, two_processes_keep_each_others_lines) {
  const fs::path file = EvaluationList::file_of(folder.path() / "r20", "test");
  EvaluationList one(file);
  EvaluationList other(file);
  one.add({.step = 1, .weights_hash = "a"}, 1, four_samples());
  other.add({.step = 2, .weights_hash = "b"}, 1, four_samples());
  one.add({.step = 3, .weights_hash = "c"}, 1, four_samples());
  const EvaluationList list(file);
  EXPECT_TRUE(list.has({.step = 1, .weights_hash = "a"}));
  EXPECT_TRUE(list.has({.step = 2, .weights_hash = "b"}));
  EXPECT_TRUE(list.has({.step = 3, .weights_hash = "c"}));
}

// A full disk ended the program.
TEST_F(CheckpointFeedTest, a_line_for_which_there_is_no_space_is_written_with_the_next_one) {
  const fs::path file = EvaluationList::file_of(folder.path() / "r20", "test");
  EvaluationList list(file);
  list.add({.step = 1, .weights_hash = std::string(10'000, 'a')}, 1, four_samples());
  testing::internal::CaptureStderr();
  {
    const NoRoomBeyond limit(fs::file_size(file) + 3);
    list.add({.step = 2, .weights_hash = "b"}, 1, four_samples());
    expect_error(Failure::other, {file.string()}, [&] { list.finish(); });
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("'" + file.string() + "'"));
  list.add({.step = 3, .weights_hash = "c"}, 1, four_samples());
  list.finish();
  const EvaluationList again(file);
  EXPECT_TRUE(again.has({.step = 2, .weights_hash = "b"}));
  EXPECT_TRUE(again.has({.step = 3, .weights_hash = "c"}));
}

TEST_F(CheckpointFeedTest, a_list_whose_last_newline_is_missing_is_continued) {
  const fs::path file = EvaluationList::file_of(folder.path() / "r20", "test");
  write("r20.evaluations.test.jsonl", R"({"step":1,"weights_hash":"a"})");
  EvaluationList(file).add({.step = 2, .weights_hash = "b"}, 1, four_samples());
  EXPECT_TRUE(EvaluationList(file).has({.step = 2, .weights_hash = "b"}));
}

// With `--follow .`, the list was a hidden file in the training's folder.
TEST_F(CheckpointFeedTest, the_list_of_the_working_directory_is_beside_it) {
  const fs::path here = fs::current_path();
  EXPECT_EQ(EvaluationList::file_of(".", "test"), here.string() + ".evaluations.test.jsonl");
}

// Another program's file of that name was replaced.
TEST_F(CheckpointFeedTest, a_file_that_is_no_list_is_refused_and_stays) {
  const fs::path file = EvaluationList::file_of(folder.path() / "r20", "test");
  for (const std::string text :
       {"notes\n", "{\"step\":1}\n", "{\"step\":1,\"weights_hash\":\"a\"}\n[1]\n", "\n", "{\"st"}) {
    write("r20.evaluations.test.jsonl", text);
    expect_message(error_sentence([&] { EvaluationList{file}; }, Failure::usage), {file.string()});
    EXPECT_EQ(read_file(file, 1 << 12), text);
  }
}

}  // namespace lockstep::checkpoint_feed_test
