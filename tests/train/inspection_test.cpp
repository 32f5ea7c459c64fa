#include "train/inspection.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "run/training_status.hpp"
#include "support/messages.hpp"
#include "support/samples/small_checkpoint.hpp"
#include "support/samples/small_data_set.hpp"
#include "support/temporary_folder.hpp"
#include "train/evaluation/evaluation.hpp"
#include "train/evaluation/evaluation_text.hpp"

namespace lockstep::inspection_test {

namespace fs = std::filesystem;

const std::string hostile = "cat\x1b[2J\n[rank 0]\r\u202Egod";
const std::string shown = R"(cat\x1b[2J\x0a[rank 0]\x0d\u202egod)";

// Lines are our own, and everything else can be printed.
void expect_shown(const std::string& text, std::ptrdiff_t lines) {
  EXPECT_NE(text.find(shown), std::string::npos) << text;
  EXPECT_EQ(std::ranges::count(text, '\n'), lines) << text;
  EXPECT_TRUE(std::ranges::none_of(text, [](char c) { return c != '\n' && static_cast<unsigned char>(c) < 0x20; }));
  EXPECT_EQ(text.find("\u202E"), std::string::npos);
}

TEST(InspectionTest, a_training_that_has_not_done_a_step_is_called_one) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "checkpoints");
  EXPECT_TRUE(describe_file(folder.path()).starts_with("training that "));
}

TEST(InspectionTest, the_folder_of_a_training_lists_its_checkpoints_with_what_is_known_of_them) {
  const TemporaryFolder folder;
  fs::create_directories(folder.path() / "checkpoints");
  for (const int step : {7, 10, 20, 25}) {
    write_file_atomically(folder.path() / "checkpoints" / fmt::format("step-{:012}.h5", step), "weights");
  }
  write_file_atomically(folder.path() / "summary.json", R"({"state":"done","best_step":10})");
  write_file_atomically(folder.path() / "metrics.jsonl", R"({"kind":"training","epoch":1,"step":5,"accuracy":0.9}
{"kind":"test","epoch":1,"step":10,"accuracy":0.625}
no JSON
{"kind":"test","epoch":2,"step":20,"accuracy":0.5}
{"kind":"validation","epoch":2,"step":20,"accuracy":0.375}
{"kind":"training","epoch":3,"step":2)");
  const std::string text = describe_file(folder.path());
  EXPECT_TRUE(
      text.ends_with("\n\n  checkpoints"
                     "\n  step         7  epoch    1"
                     "\n  step        10  epoch    1  test  62.50 %  best"
                     "\n  step        20  epoch    2  test  50.00 %  validation  37.50 %"
                     "\n  step        25  newest"))
      << text;
}

// It advised make_shards. A running training has a lock there.
TEST(InspectionTest, of_a_folder_of_checkpoints_the_newest_is_named) {
  const TemporaryFolder folder;
  for (const char* file : {"step-000000000010.h5", "step-000000000020.h5", "lock"}) {
    write_file_atomically(folder.path() / file, std::string_view("weights"));
  }
  expect_error(Failure::usage, {folder.path().string() + "'", "step-000000000020.h5"},
               [&] { describe_file(folder.path()); });
}

TEST(InspectionTest, figures_of_the_EMA_are_called_so) {
  const TemporaryFolder folder;
  fs::create_directories(folder.path() / "checkpoints");
  write_file_atomically(folder.path() / "checkpoints" / "step-000000000010.h5", std::string_view("weights"));
  const auto described = [&](const std::string& summary, const std::string& metrics) {
    write_file_atomically(folder.path() / "summary.json", summary);
    write_file_atomically(folder.path() / "metrics.jsonl", metrics);
    return describe_file(folder.path());
  };
  const std::string summary =
      R"({"state":"done","recipe":{"ema":0.9},"test_accuracy":0.5,"ema_test_accuracy":0.625,
          "validation_accuracy":0.75,"best_accuracy":0.75,"best_step":10})";
  const std::string alone = described(summary, "");
  EXPECT_NE(alone.find("\n  test       50.00 %, EMA 62.50 %\n  validation EMA 75.00 %\n  best       EMA 75.00 % after"),
            std::string::npos)
      << alone;
  const std::string with_metrics =
      described(summary, R"({"kind":"test","epoch":1,"step":10,"accuracy":0.25,"ema_accuracy":0.375}
{"kind":"validation","epoch":1,"step":10,"accuracy":0.5,"ema_accuracy":0.875}
)");
  for (const char* line :
       {"\n  test       25.00 %, EMA 37.50 %\n  validation 50.00 %, EMA 87.50 %\n",
        "epoch    1  test  25.00 %, EMA  37.50 %  validation  50.00 %, EMA  87.50 %  best  newest"}) {
    EXPECT_NE(with_metrics.find(line), std::string::npos) << line << with_metrics;
  }
}

// Escape sequences in the names of classes reached the terminal.
TEST(InspectionTest, names_in_a_file_neither_steer_the_terminal_nor_make_lines) {
  const TemporaryFolder folder;
  write_small_data_set(folder.path(), {2, 2, 3}, 5, 5);
  Manifest manifest = read_manifest(folder.path());
  const std::string plain = describe_file(folder.path());
  const std::string plain_shard = describe_file(folder.path() / "shard-0.h5");
  manifest.name = manifest.source = manifest.classes[3] = hostile;
  write_manifest(folder.path(), manifest);
  expect_shown(describe_file(folder.path()), std::ranges::count(plain, '\n'));
  expect_shown(describe_file(folder.path() / "shard-0.h5"), std::ranges::count(plain_shard, '\n'));

  Checkpoint checkpoint = small_checkpoint();
  const fs::path path = folder.path() / "checkpoint.h5";
  write_file_atomically(path, std::span<const std::byte>(checkpoint_image(checkpoint)));
  const std::string before = describe_file(path);
  checkpoint.model.model = checkpoint.model.classes[0] = checkpoint.model.entries[0].name = hostile;
  checkpoint.optimizer.at("velocity")[0].name = checkpoint.state.origin.device = hostile;
  write_file_atomically(path, std::span<const std::byte>(checkpoint_image(checkpoint)));
  expect_shown(describe_file(path), std::ranges::count(before, '\n'));
}

TEST(InspectionTest, a_data_set_is_described_split_by_split_and_drawn_from_training) {
  const TemporaryFolder folder;
  for (const char* const split : {"train", "test"}) {
    fs::create_directories(folder.path() / split);
    write_small_data_set(folder.path() / split, {2, 2, 3}, 5, 5);
  }
  const std::string text = describe_file(folder.path());
  EXPECT_TRUE(text.starts_with("train: data set 'small' (format 1)\n")) << text;
  EXPECT_NE(text.find("\n\ntest: data set 'small' (format 1)\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("validation"), std::string::npos);
  EXPECT_EQ(drawn_split(folder.path()), folder.path() / "train");
  EXPECT_EQ(drawn_split(folder.path() / "test"), folder.path() / "test");
}

TEST(InspectionTest, a_shard_says_what_it_holds_without_its_folder_unless_an_earlier_version_wrote_it) {
  const TemporaryFolder folder;
  write_small_data_set(folder.path(), {2, 2, 3}, 5, 5);
  fs::remove(folder.path() / "manifest.json");
  expect_error(Failure::usage, {}, [&] { describe_file(folder.path() / "shard-0.h5"); });
  const fs::path path = folder.path() / "alone.h5";
  const std::vector<std::string> classes = {"cat", "dog"};
  PictureSamples samples;
  samples.add(small_pixels(0, 12), {2, 2}, 1);
  const ShardFacts facts{"mine",           "test",   SampleKind::picture, SampleStore::pictures, {2, 2, 3},
                         {0.5F, 0.25F, 0}, {1, 1, 1}};
  write_file_atomically(path, std::span<const std::byte>(picture_shard_bytes(classes, samples, facts)));
  EXPECT_EQ(describe_file(path),
            "shard of data set 'mine', split 'test' (from the shard itself; its folder has no manifest.json)\n"
            "  samples    1\n"
            "  pictures   various sizes, stored as pixels; network input: 2 x 2 pixels, 3 channels (pictures)\n"
            "  axes       samples: of each picture height, width, channel\n"
            "  mean       0.5000, 0.2500, 0.0000 (of this shard only)\n"
            "  deviation  1.0000, 1.0000, 1.0000\n\n"
            "      0  cat                   0 samples\n"
            "      1  dog                   1 samples");
  std::string bytes = read_file(path, 1 << 20);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  write_file_atomically(path, bytes);
  expect_error(Failure::bad_data, {path.string()}, [&] { describe_file(path); });
}

TEST(InspectionTest, a_network_as_onnx_is_refused_with_advice) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "model.onnx";
  write_file_atomically(path, std::string_view("\x08\x07\x12\x08Lockstep", 12));
  expect_error(Failure::usage, {path.string()}, [&] { describe_file(path); });
}

// inspect told the steps of the last summary, job_status those of metrics.jsonl; the command had no quotes.
TEST(InspectionTest, a_killed_training_has_the_steps_that_its_metrics_tell) {
  const TemporaryFolder folder;
  write_file_atomically(folder.path() / "summary.json",
                        R"({"state":"running","model":"lenet","step":10,"steps":40,"ranks":2,"test_accuracy":0.5,
                            "reducer":"mpi",
                            "command_line":["train_cifar","--note","it's a try","--lr","0.1"]})");
  write_file_atomically(folder.path() / "metrics.jsonl",
                        "{\"kind\":\"training\",\"epoch\":2,\"step\":15,\"steps\":40,\"samples\":900,"
                        "\"samples_per_second\":10}\n");
  const std::string text = describe_file(folder.path());
  EXPECT_NE(text.find("\n  step       15 of 40\n"), std::string::npos) << text;
  EXPECT_NE(status_text(training_status(folder.path())).find("15 of 40"), std::string::npos);
  EXPECT_NE(text.find("\n  ranks      2 (by mpirun or srun)\n  device     -\n  precision  -\n"
                      "  exchange   mpi\n  command    train_cifar --note 'it'\\''s a try' --lr 0.1"),
            std::string::npos)
      << text;
}

TEST(InspectionTest, names_of_classes_do_not_break_the_tables_of_an_evaluation) {
  Evaluation evaluation;
  evaluation.classes = 2;
  evaluation.samples = 4;
  evaluation.confusion = {{{0, 0}, 1}, {{0, 1}, 1}, {{1, 0}, 1}, {{1, 1}, 1}};
  const std::vector<std::string> names = {hostile, "dog"};
  const std::string plain = evaluation_text(evaluation, std::vector<std::string>{"cat", "dog"});
  expect_shown(evaluation_text(evaluation, names), std::ranges::count(plain, '\n'));
}

// That of 20 classes was 146 columns wide.
TEST(InspectionTest, a_confusion_matrix_fits_a_terminal) {
  for (const std::int64_t classes : {10, 11, 20}) {
    Evaluation evaluation;
    evaluation.classes = classes;
    for (std::int64_t label = 0; label < classes; ++label) {
      for (std::int64_t c = 0; c < classes; ++c) evaluation.confusion[{label, c}] = 1;
    }
    const std::vector<std::string> names(static_cast<std::size_t>(classes), "name");
    const std::string text = evaluation_text(evaluation, names);
    EXPECT_EQ(text.find("\nconfusion (") != std::string::npos, classes == 10);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  }
}

TEST(InspectionTest, of_many_classes_an_evaluation_lists_the_worst) {
  constexpr std::int64_t classes = 30;
  Evaluation evaluation;
  evaluation.classes = classes;
  std::vector<std::string> names;
  for (std::int64_t label = 0; label < classes; ++label) {
    names.push_back("class " + std::to_string(label));
    if (label == 7) continue;  // has no samples
    evaluation.samples += 100;
    evaluation.confusion[{label, label}] = 100 - label;
    if (label > 0) evaluation.confusion[{label, 7}] = label;
  }
  const std::string text = evaluation_text(evaluation, names);
  EXPECT_NE(text.find("the worst 20 of 29 classes (--json has all)\n"
                      "class  name       samples    correct\n"
                      "   29  class 29       100    71.00 %\n"
                      "   28  class 28       100    72.00 %\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\n   10  class 10       100    90.00 %\n\nmost frequent mistakes"), std::string::npos) << text;
  EXPECT_EQ(text.find("\n    9  class 9 "), std::string::npos) << text;
}

}  // namespace lockstep::inspection_test
