// What predict says of picture files.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "base/io/file.hpp"
#include "dataset/dataset.hpp"
#include "device/cpu/cpu_device.hpp"
#include "files/checkpoint/checkpoint.hpp"
#include "files/import/safetensors.hpp"
#include "nn/initialize.hpp"
#include "picture/png.hpp"
#include "step/model.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::predict_test {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

// The fields of each line but the first. No field holds a comma.
std::vector<std::vector<std::string>> rows_of(const std::string& table) {
  std::istringstream lines(table);
  std::vector<std::vector<std::string>> rows;
  std::string line;
  for (std::getline(lines, line); std::getline(lines, line);) {
    std::istringstream fields(line);
    rows.emplace_back();
    for (std::string field; std::getline(fields, field, ',');) rows.back().push_back(field);
  }
  return rows;
}

class PredictTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    const ProgramResult made =
        run_program({built_program("make_shards"), "synthetic", "--samples", "400", "--output", data()});
    ASSERT_EQ(made.exit_code, 0) << made.errors;
    const ProgramResult trained = run_program({built_program("train_cifar"), "--data", data(), "--model", "lenet",
                                               "--epochs", "2", "--threads", "1", "--output", folder_->path() / "run"});
    ASSERT_EQ(trained.exit_code, 0) << trained.errors;
    fs::create_directories(pictures());
    const Dataset dataset(data() / "test");
    for (std::int64_t sample = 0; sample < dataset.samples(); ++sample) {
      const std::vector<std::uint8_t> file = encode_png(dataset.picture(sample));
      write_file_atomically(pictures() / fmt::format("{:04}.png", sample), std::as_bytes(std::span(file)));
    }
  }
  static void TearDownTestSuite() { delete folder_; }
  static fs::path data() { return folder_->path() / "data"; }
  static fs::path model() { return folder_->path() / "run" / "model.h5"; }
  static fs::path pictures() { return folder_->path() / "pictures"; }  // the test split

  static std::vector<std::string> predicting(const std::vector<std::string>& more) {
    std::vector<std::string> words = {built_program("predict"), "--threads", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  static ProgramResult predict(const std::vector<std::string>& more) { return run_program(predicting(more)); }

  static TemporaryFolder* folder_;
};

TemporaryFolder* PredictTest::folder_ = nullptr;

TEST_F(PredictTest, pictures_get_the_classes_that_an_evaluation_gives_their_samples_at_any_number_of_ranks) {
  const fs::path table = folder_->path() / "evaluated.csv";
  const ProgramResult evaluated = run_program(
      {built_program("evaluate"), "--model-file", model(), "--data", data(), "--threads", "1", "--predictions", table});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.errors;
  const auto expected = rows_of(read_file(table, 1 << 20));
  ASSERT_GT(expected.size(), 64U);  // several batches

  const ProgramResult result = predict({model(), pictures()});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_TRUE(result.output.starts_with("file,place,prediction,prediction_name,probability\n")) << result.output;
  const auto rows = rows_of(result.output);
  ASSERT_EQ(rows.size(), expected.size());
  for (std::size_t sample = 0; sample < rows.size(); ++sample) {
    EXPECT_EQ(rows[sample][0], (pictures() / fmt::format("{:04}.png", sample)).string());
    EXPECT_EQ(rows[sample][2], expected[sample][2]) << sample;
    EXPECT_EQ(rows[sample][3], expected[sample][4]) << sample;
  }
  for (const int ranks : {2, 3}) {
    const ProgramResult shared = run_program(under_mpirun(ranks, predicting({model(), pictures()})));
    EXPECT_EQ(shared.output, result.output) << ranks << shared.errors;
  }
}

// It was refused with an option that nobody gave.
TEST_F(PredictTest, a_model_whose_tests_did_not_cover_the_image_predicts_as_an_evaluation) {
  ModelFile earlier = read_weights(model());
  earlier.shorter_side = 20;
  const fs::path file = folder_->path() / "earlier.h5";
  write_model_file(file, earlier);
  const fs::path table = folder_->path() / "earlier.csv";
  const ProgramResult evaluated = run_program(
      {built_program("evaluate"), "--model-file", file, "--data", data(), "--threads", "1", "--predictions", table});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.errors;
  const auto expected = rows_of(read_file(table, 1 << 20));
  const ProgramResult result = predict({file, pictures()});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const auto rows = rows_of(result.output);
  ASSERT_EQ(rows.size(), expected.size());
  for (std::size_t sample = 0; sample < rows.size(); ++sample)
    EXPECT_EQ(rows[sample][2], expected[sample][2]) << sample;
  const ProgramResult refused =
      run_program({built_program("evaluate"), "--model-file", file, "--data", data(), "--resize", "20"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("--resize 20 "));
}

TEST_F(PredictTest, with_test_time_augmentation_they_are_those_of_an_evaluation_with_it) {
  const fs::path table = folder_->path() / "augmented.csv";
  const ProgramResult evaluated =
      run_program({built_program("evaluate"), "--model-file", model(), "--data", data(), "--threads", "1",
                   "--test-augment", "flip-shift", "--predictions", table});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.errors;
  const auto expected = rows_of(read_file(table, 1 << 20));
  const ProgramResult plain = predict({model(), pictures()});
  const ProgramResult augmented = predict({model(), pictures(), "--test-augment", "flip-shift"});
  ASSERT_EQ(augmented.exit_code, 0) << augmented.errors;
  EXPECT_NE(augmented.output, plain.output);
  const auto rows = rows_of(augmented.output);
  ASSERT_EQ(rows.size(), expected.size());
  for (std::size_t sample = 0; sample < rows.size(); ++sample)
    EXPECT_EQ(rows[sample][2], expected[sample][2]) << sample;
}

TEST_F(PredictTest, the_likeliest_classes_come_first_and_all_of_them_are_certain) {
  const ProgramResult result = predict({model(), pictures() / "0000.png", "--top", "100"});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const auto rows = rows_of(result.output);
  ASSERT_EQ(rows.size(), 10U);
  double sum = 0;
  for (std::size_t place = 0; place < rows.size(); ++place) {
    EXPECT_EQ(rows[place][1], std::to_string(place + 1));
    if (place > 0) {
      EXPECT_LE(std::stod(rows[place][4]), std::stod(rows[place - 1][4]));
    }
    sum += std::stod(rows[place][4]);
  }
  EXPECT_NEAR(sum, 1, 1e-5);
}

TEST_F(PredictTest, what_is_no_picture_is_named_and_counted_and_the_others_are_told) {
  const fs::path odd = folder_->path() / "odd, \"named\"\n.png";
  const fs::path notes = folder_->path() / "notes.png";
  const fs::path missing = folder_->path() / "missing.png";
  const fs::path list = folder_->path() / "list";
  fs::copy_file(pictures() / "0001.png", odd, fs::copy_options::overwrite_existing);
  std::ofstream(notes) << "no picture";
  std::ofstream(list) << (pictures() / "0002.png").string() << '\n' << missing.string() << '\n';
  const fs::path table = folder_->path() / "table.csv";
  for (const int ranks : {1, 2}) {
    fs::remove(table);
    const ProgramResult result =
        run_program(under_mpirun(ranks, predicting({model(), odd, notes, "--list", list, "--predictions", table})));
    EXPECT_EQ(result.exit_code, 65) << result.errors;
    EXPECT_THAT(result.errors, HasSubstr(fmt::format("'{}'", notes.string())));
    EXPECT_THAT(result.errors, HasSubstr(fmt::format("'{}'", missing.string())));
    EXPECT_THAT(result.errors, HasSubstr("2 of 4 files"));
    const std::string text = read_file(table, 1 << 20);
    EXPECT_THAT(text, HasSubstr("probability\n\"" + folder_->path().string() + "/odd, \"\"named\"\"\\x0a.png\",1,"));
    EXPECT_THAT(text, HasSubstr("\n" + (pictures() / "0002.png").string() + ",1,"));
    EXPECT_EQ(text.find("notes"), std::string::npos);
  }
}

TEST_F(PredictTest, what_cannot_be_is_told_before_anything_is_done) {
  const auto refusal = [](const std::vector<std::string>& more) {
    const ProgramResult result = predict(more);
    EXPECT_EQ(result.exit_code, 2) << result.output;
    return result.errors;
  };
  EXPECT_THAT(refusal({model()}), HasSubstr("(PICTURES, --list)"));
  const std::filesystem::path empty = folder_->path() / "empty";
  std::filesystem::create_directory(empty);
  EXPECT_THAT(refusal({model(), empty.string()}), HasSubstr("'" + empty.string() + "'"));
  EXPECT_THAT(refusal({model(), "none.png"}), HasSubstr("'none.png'"));
  EXPECT_THAT(refusal({model(), pictures(), "--predictions", pictures() / "0001.png"}), HasSubstr("--predictions"));
  EXPECT_THAT(refusal({model(), pictures(), "--resize", "8"}), HasSubstr("--resize 8 "));
}

TEST_F(PredictTest, another_programs_weights_predict_with_what_a_data_set_says) {
  const fs::path foreign = folder_->path() / "weights.safetensors";
  write_file_atomically(foreign, safetensors_image(read_weights(model()).entries, {}));
  EXPECT_THAT(predict({foreign, pictures()}).errors,
              AllOf(HasSubstr("'" + foreign.string() + "'"), HasSubstr("--model")));
  EXPECT_THAT(predict({foreign, "--model", "lenet", pictures()}).errors,
              AllOf(HasSubstr("'" + foreign.string() + "'"), HasSubstr("--data"), HasSubstr("--classes")));
  const ProgramResult result = predict({foreign, "--model", "lenet", "--data", data(), pictures()});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_EQ(result.output, predict({model(), pictures()}).output);
}

// resnet18 as it begins, of two classes, as torchvision would save it.
TEST_F(PredictTest, torchvisions_weights_predict_with_names_of_classes_alone) {
  const std::unique_ptr<Device> device = cpu::open_cpu_device({.threads = 1});
  Model net(*device, {"resnet18", {224, 224, 3}, 2});
  net.store.allocate(device->make_persistent(net.store.gradient_buffer_count(), DType::f32));
  initialize(net.store, 3);
  const fs::path weights = folder_->path() / "resnet18.safetensors";
  const fs::path ours = folder_->path() / "resnet18.h5";
  const std::vector<ParameterStore::Entry> entries = net.store.entries();
  write_file_atomically(weights, safetensors_image(entries, {}));
  write_model_file(
      ours, {"resnet18", {"cat", "dog"}, {224, 224, 3}, {0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}, entries});
  const fs::path classes = folder_->path() / "classes.txt";
  std::ofstream(classes) << "cat\ndog\n";
  const ProgramResult result =
      predict({weights, "--model", "resnet18", "--classes", classes, pictures() / "0000.png", "--resize", "256"});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_EQ(result.output, predict({ours, pictures() / "0000.png", "--resize", "256"}).output);
}

}  // namespace lockstep::predict_test
