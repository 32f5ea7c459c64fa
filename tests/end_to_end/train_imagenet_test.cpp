// From a folder of JPEG files to a tested model, by the real programs.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/io/file.hpp"
#include "dataset/shards/manifest.hpp"
#include "picture/decode.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::train_imagenet_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::StartsWith;

namespace fs = std::filesystem;

class TrainImagenetTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    const fs::path pictures = folder_->path() / "pictures";
    ASSERT_EQ(run_program({built_program("write_pictures"), pictures, "240"}).exit_code, 0);
    make_shards(pictures, "jpeg", {});
    make_shards(pictures, "raw", {"--side", "48"});
  }
  static void TearDownTestSuite() { delete folder_; }

  static void make_shards(const fs::path& pictures, const std::string& store, const std::vector<std::string>& more) {
    std::vector<std::string> words = {
        built_program("make_shards"), "images", "--source", pictures, "--output", data(store), "--store", store};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramResult made = run_program(words);
    ASSERT_EQ(made.exit_code, 0) << made.errors;
  }

  static fs::path data(const std::string& store) { return folder_->path() / store; }

  static ProgramResult train(const std::string& store, int epochs, const fs::path& output,
                             const std::vector<std::string>& more = {}, const char* model = "convnet") {
    std::vector<std::string> words = {built_program("train_imagenet"),
                                      "--data",
                                      data(store),
                                      "--model",
                                      model,
                                      "--image-size",
                                      "32",
                                      "--epochs",
                                      std::to_string(epochs),
                                      "--global-batch",
                                      "24",
                                      "--lr",
                                      "0.5",
                                      "--threads",
                                      "1",
                                      "--output",
                                      output};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(under_mpirun(2, words));
  }
  static nlohmann::json summary(const fs::path& output) {
    return nlohmann::json::parse(read_file(output / "summary.json", 1 << 20));
  }

  static TemporaryFolder* folder_;
};

TemporaryFolder* TrainImagenetTest::folder_ = nullptr;

TEST_F(TrainImagenetTest, learns_from_jpeg_files_and_from_pixels) {
  for (const std::string store : {"jpeg", "raw"}) {
    const fs::path output = folder_->path() / ("learns " + store);
    const ProgramResult trained = train(store, 6, output);
    ASSERT_EQ(trained.exit_code, 0) << trained.errors;
    const nlohmann::json told = summary(output);
    EXPECT_GT(told["test_accuracy"].get<double>(), 0.9) << trained.output;
    EXPECT_EQ(told["recipe"]["augment"], "resized-crop-flip");
    EXPECT_EQ(told["recipe"]["image-size"], 32);
    // The model says the size of its images, and another program shows it the same ones.
    const ProgramResult tested =
        run_program({built_program("evaluate"), "--model-file", output / "model.h5", "--data", data(store)});
    ASSERT_EQ(tested.exit_code, 0) << tested.errors;
    const std::string percent = fmt::format("top-1    {:.2f} %", 100 * told["test_accuracy"].get<double>());
    EXPECT_THAT(tested.output, HasSubstr(percent));
    const ProgramResult looked = run_program({built_program("inspect"), output / "model.h5"});
    EXPECT_THAT(looked.output, HasSubstr("32 x 32 pixels, 3 channels"));
  }
}

TEST_F(TrainImagenetTest, copies_on_the_node_change_no_bit) {
  const fs::path copies = folder_->path() / "copies";
  const fs::path output = folder_->path() / "from copies";
  const ProgramResult plain = train("jpeg", 1, folder_->path() / "from where they lie");
  ASSERT_EQ(plain.exit_code, 0) << plain.errors;
  const ProgramResult staged = train("jpeg", 1, output, {"--stage", copies});
  ASSERT_EQ(staged.exit_code, 0) << staged.errors;
  EXPECT_THAT(staged.output, AllOf(HasSubstr("'" + copies.string() + "'"), HasSubstr("2 of 2 shards")));
  EXPECT_EQ(summary(output)["weights_hash"], summary(folder_->path() / "from where they lie")["weights_hash"]);
  EXPECT_EQ(summary(output)["run"]["stage"], copies.string());
  const ProgramResult tested = run_program(
      {built_program("evaluate"), "--model-file", output / "model.h5", "--data", data("jpeg"), "--stage", copies});
  EXPECT_EQ(tested.exit_code, 0) << tested.errors;
  EXPECT_THAT(tested.output, HasSubstr("0 of 1 shard "));
  const fs::path copy = copies / ("test-" + read_manifest(data("jpeg") / "test").root_hash) / "test-00000.h5";
  std::string bytes = read_file(copy, 1 << 24);
  bytes.back() ^= 1;
  write_file_atomically(copy, bytes);
  const ProgramResult damaged = run_program(
      {built_program("evaluate"), "--model-file", output / "model.h5", "--data", data("jpeg"), "--stage", copies});
  EXPECT_EQ(damaged.exit_code, 65);
  EXPECT_THAT(damaged.errors, AllOf(HasSubstr("'" + copy.string() + "'"), HasSubstr("--stage")));
  const ProgramResult unset = train("jpeg", 1, output, {"--stage", ""});
  EXPECT_EQ(unset.exit_code, 2);
  EXPECT_THAT(unset.errors, HasSubstr("--stage: '' "));
}

TEST_F(TrainImagenetTest, a_recipe_that_cannot_be_is_told_before_anything_is_copied) {
  const fs::path copies = folder_->path() / "never copied";
  const ProgramResult result = train("jpeg", 1, folder_->path() / "never begun",
                                     {"--stage", copies, "--schedule", "step", "--milestones", "3", "2"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.errors, HasSubstr("milestones"));
  EXPECT_FALSE(fs::exists(copies));
}

// One rank finds it, and all of them leave nothing.
TEST_F(TrainImagenetTest, a_damaged_shard_ends_the_copying_on_all_ranks) {
  const fs::path copies = folder_->path() / "no copies";
  const fs::path damaged = data("damaged");
  fs::copy(data("raw"), damaged, fs::copy_options::recursive);
  std::string bytes = read_file(damaged / "test" / "test-00000.h5", 1 << 24);
  bytes.back() ^= 1;
  write_file_atomically(damaged / "test" / "test-00000.h5", bytes);
  const ProgramResult result = train("damaged", 1, folder_->path() / "ends", {"--stage", copies});
  EXPECT_EQ(result.exit_code, 65) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("manifest.json"));
  for (const auto& entry : fs::recursive_directory_iterator(copies)) {
    EXPECT_NE(entry.path().filename().string().front(), '.') << entry.path();
  }
}

TEST_F(TrainImagenetTest, draws_what_the_network_is_given) {
  const fs::path drawn = folder_->path() / "drawn.png";
  const ProgramResult result =
      run_program({built_program("inspect"), data("jpeg"), "--pictures", drawn, "--image-size", "40"});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const std::string file = read_file(drawn, 1 << 20);
  const OwnedPicture picture = decode_picture(std::as_bytes(std::span(file))).picture;
  EXPECT_EQ(picture.size, (PictureSize{8 * 42 - 2, 8 * 42 - 2}));
  EXPECT_THAT(result.output,
              StartsWith(fmt::format("'{}': 64 images of '{}' ", drawn.string(), (data("jpeg") / "train").string())));
  EXPECT_THAT(result.output, HasSubstr("class 1, class "));
  // Seed and recipe are those of a training; splits for tests are shown as tests see them.
  const auto drawn_with = [&](const std::string& split, const std::vector<std::string>& more) {
    std::vector<std::string> words = {
        built_program("inspect"), data("jpeg") / split, "--pictures", drawn, "--image-size", "40"};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramResult one = run_program(words);
    EXPECT_EQ(one.exit_code, 0) << one.errors;
    return one.output + read_file(drawn, 1 << 20);
  };
  EXPECT_EQ(drawn_with("train", {}), result.output + file);
  EXPECT_NE(drawn_with("train", {"--seed", "7"}), drawn_with("train", {}));
  EXPECT_NE(drawn_with("train", {"--recipe", "rn18-ffcv-16", "--image-size-ramp", "none"}),
            drawn_with("train", {"--augment", "none"}));
  EXPECT_THAT(drawn_with("test", {}), HasSubstr("'" + (data("jpeg") / "test").string() + "'"));
  EXPECT_EQ(drawn_with("test", {}), drawn_with("test", {"--augment", "none"}));
  const fs::path shard = data("jpeg") / "train" / "train-00000.h5";
  const auto bytes = fs::file_size(shard);
  const ProgramResult over =
      run_program({built_program("inspect"), data("jpeg") / "train", "--pictures", shard, "--image-size", "40"});
  EXPECT_EQ(over.exit_code, 2);
  EXPECT_THAT(over.errors, AllOf(HasSubstr("'" + shard.string() + "'"), HasSubstr("--pictures")));
  EXPECT_EQ(fs::file_size(shard), bytes);
}

// A result that is lost is no success.
TEST_F(TrainImagenetTest, tells_where_standard_output_takes_nothing) {
  const std::string inspect = built_program("inspect");
  const std::string model = data("jpeg") / "train";
  const ProgramResult full = run_program({"sh", "-c", R"(exec "$0" "$1" >/dev/full)", inspect, model});
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_THAT(full.errors, HasSubstr("No space left on device"));
  const ProgramResult closed = run_program({"sh", "-c", R"(exec "$0" "$1" >&-)", inspect, model});
  EXPECT_NE(closed.exit_code, 0) << closed.errors;
}

// How pictures are shown decides the weights: none of it may change when a training goes on.
TEST_F(TrainImagenetTest, goes_on_only_with_the_same_pictures) {
  const fs::path output = folder_->path() / "goes on";
  ASSERT_EQ(train("jpeg", 1, output).exit_code, 0);
  struct Change {
    const char* option;
    const char* value;
    const char* words;
  };
  for (const Change& change :
       {Change{"--decode", "exact", R"(--decode "auto")"}, Change{"--resize", "40", "--resize unset"},
        Change{"--crop-area", "0.5", "--crop-area unset"},
        Change{"--image-size-ramp", "16:0:1", R"(--image-size-ramp "none")"},
        Change{"--test-image-size", "40", "--test-image-size unset"},
        Change{"--augment", "crop", R"(--augment "resized-crop-flip")"}}) {
    const ProgramResult refused = train("jpeg", 2, output, {change.option, change.value});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.errors, HasSubstr(change.words));
  }
  EXPECT_EQ(train("jpeg", 2, output).exit_code, 0);
}

TEST_F(TrainImagenetTest, images_grow_and_tests_have_a_size_of_their_own) {
  const fs::path output = folder_->path() / "grows";
  const ProgramResult trained =
      train("jpeg", 3, output, {"--image-size-ramp", "16:0:2:8", "--test-image-size", "40", "--report-every", "4"},
            "resnet20");
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  EXPECT_THAT(trained.output, HasSubstr("16 x 16 pixels"));
  EXPECT_THAT(trained.output, HasSubstr("24 x 24 pixels"));
  EXPECT_THAT(trained.output, HasSubstr("32 x 32 pixels"));
  std::istringstream metrics(read_file(output / "metrics.jsonl", 1 << 20));
  std::vector<int> sizes;
  for (std::string line; std::getline(metrics, line);) {
    const nlohmann::json object = nlohmann::json::parse(line);
    if (object["kind"] != "training") continue;
    if (sizes.empty() || sizes.back() != object["image_size"]) sizes.push_back(object["image_size"]);
    EXPECT_GE(object["loader_waited_ms"].get<double>(), 0);
  }
  EXPECT_EQ(sizes, (std::vector<int>{16, 24, 32}));
  // The model says the size of tests, in which it is tested again.
  EXPECT_THAT(run_program({built_program("inspect"), output / "model.h5"}).output,
              AllOf(HasSubstr("40 x 40 pixels, 3 channels"), HasSubstr(" 45\n")));
  const ProgramResult tested =
      run_program({built_program("evaluate"), "--model-file", output / "model.h5", "--data", data("jpeg")});
  const double accuracy = summary(output)["test_accuracy"].get<double>();
  EXPECT_THAT(tested.output, HasSubstr(fmt::format("top-1    {:.2f} %", 100 * accuracy)));
}

TEST_F(TrainImagenetTest, a_model_that_takes_one_size_alone_is_refused_where_there_are_several) {
  for (const auto& [option, value] : {std::pair("--image-size-ramp", "16:0:1"), std::pair("--test-image-size", "40")}) {
    const ProgramResult refused = train("jpeg", 1, folder_->path() / "several sizes", {option, value});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.errors, HasSubstr("'convnet'"));
  }
  const ProgramResult falling =
      train("jpeg", 1, folder_->path() / "falls", {"--image-size-ramp", "64:0:1"}, "resnet20");
  EXPECT_EQ(falling.exit_code, 2);
  EXPECT_THAT(falling.errors, HasSubstr("--image-size-ramp 64:0:1 "));
}

TEST_F(TrainImagenetTest, an_option_of_resized_crops_is_refused_where_there_are_none) {
  const ProgramResult refused =
      train("jpeg", 1, folder_->path() / "unread", {"--augment", "crop-flip", "--crop-area", "0.5"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.errors, AllOf(HasSubstr("--crop-area"), HasSubstr("--augment crop-flip")));
}

}  // namespace lockstep::train_imagenet_test
