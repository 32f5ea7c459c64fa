// Picture files that need care, from make_shards to predict.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/io/file.hpp"
#include "dataset/pictures/meta_mat_file.hpp"
#include "picture/made_png.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::odd_pictures_test {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class OddPicturesTest : public ::testing::Test {
 protected:
  fs::path pictures() const { return folder_.path() / "pictures"; }
  fs::path output() const { return folder_.path() / "data"; }
  std::vector<std::string> conversion(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {
        built_program("make_shards"), "images", "--source", pictures(), "--output", output()};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  void write(const fs::path& file, const std::string& bytes) const {
    fs::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << bytes;
  }
  TemporaryFolder folder_;
};

constexpr std::uint32_t side = 32;

// The level, from 0 to 255, of a pixel of a picture of one of two classes.
std::uint32_t level(int label, int picture, std::uint32_t pixel) {
  return (pixel * 7 + static_cast<std::uint32_t>(picture) * 11) % 120 + (label == 0 ? 0 : 130);
}

// Gray of 8 bits, or of 12 in the lowest bits of 16, which come to the same levels.
std::string gray_png(int label, int picture, char depth) {
  std::string rows;
  for (std::uint32_t row = 0; row < side; ++row) {
    rows += '\0';
    for (std::uint32_t column = 0; column < side; ++column) {
      const std::uint32_t value = level(label, picture, row * side + column);
      const std::uint32_t of_12_bits = (value * 4095 + 127) / 255;
      if (depth == 8) rows += static_cast<char>(value);
      if (depth == 16) rows += {static_cast<char>(of_12_bits >> 8), static_cast<char>(of_12_bits)};
    }
  }
  return test::make_png({side, side, depth, 0}, rows);
}

// The table without the names of the files.
std::string answers(const std::string& table) {
  std::istringstream lines(table);
  std::string text;
  for (std::string line; std::getline(lines, line);) text += line.substr(line.find(',')) + '\n';
  return text;
}

class TwelveBitsTest : public OddPicturesTest {
 protected:
  TwelveBitsTest() {
    for (const int label : {0, 1}) {
      for (int picture = 0; picture < 10; ++picture) {
        const fs::path name = fs::path(std::to_string(label)) / (std::to_string(picture) + ".png");
        write(pictures() / name, gray_png(label, picture, 16));
        write(folder_.path() / "plain" / name, gray_png(label, picture, 8));
      }
    }
  }
  ProgramResult predict(const fs::path& files, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {built_program("predict"), "--threads", "1", folder_.path() / "run" / "model.h5",
                                      files};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  }
  void train() const {
    const ProgramResult trained =
        run_program({built_program("train_cifar"), "--data", output(), "--model", "lenet", "--epochs", "1",
                     "--global-batch", "4", "--threads", "1", "--output", folder_.path() / "run"});
    ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  }
};

// They became nearly black without a word, and in predict as well.
TEST_F(TwelveBitsTest, are_used_as_stated_from_the_shards_to_the_prediction) {
  const ProgramResult refused = run_program(under_mpirun(2, conversion()));
  EXPECT_EQ(refused.exit_code, 2) << refused.errors;
  EXPECT_THAT(refused.errors, HasSubstr("--sample-bits 12"));
  EXPECT_FALSE(fs::exists(output()));
  const ProgramResult made = run_program(conversion({"--store", "raw", "--side", "32", "--sample-bits", "12"}));
  ASSERT_EQ(made.exit_code, 0) << made.errors;
  EXPECT_THAT(read_file(output() / "train" / "manifest.json", 1 << 20), HasSubstr("\"sample_bits\": 12"));
  EXPECT_THAT(read_file(output() / "odd_files.csv", 1 << 20), HasSubstr("0/0.png,yes,has 12 bits per channel\n"));
  train();
  const ProgramResult plain = predict(folder_.path() / "plain");
  ASSERT_EQ(plain.exit_code, 0) << plain.errors;
  EXPECT_EQ(answers(predict(pictures()).output), answers(plain.output));
  EXPECT_NE(answers(predict(pictures(), {"--sample-bits", "16"}).output), answers(plain.output));
}

TEST_F(TwelveBitsTest, are_refused_by_predict_where_the_model_does_not_say) {
  fs::remove_all(pictures());
  fs::rename(folder_.path() / "plain", pictures());
  const ProgramResult made = run_program(conversion({"--store", "raw", "--side", "32"}));
  ASSERT_EQ(made.exit_code, 0) << made.errors;
  EXPECT_THAT(read_file(output() / "train" / "manifest.json", 1 << 20), Not(HasSubstr("sample_bits")));
  train();
  write(folder_.path() / "new" / "0.png", gray_png(1, 3, 16));
  const ProgramResult refused = predict(folder_.path() / "new");
  EXPECT_EQ(refused.exit_code, 2) << refused.output;
  EXPECT_THAT(refused.errors, HasSubstr("--sample-bits 12"));
  EXPECT_EQ(answers(predict(folder_.path() / "new", {"--sample-bits", "12"}).output),
            answers(predict(pictures() / "1" / "3.png").output));
}

// libmatio ended the program by SIGSEGV. Another version of it may only refuse the file.
TEST_F(OddPicturesTest, a_damaged_meta_mat_is_named) {
  for (const char* const name : {"n01440764", "n02119789"}) write(pictures() / "train" / name / "a.JPEG", "x");
  write(pictures() / "val" / "ILSVRC2012_val_00000001.JPEG", "x");
  write(pictures() / "ILSVRC2012_validation_ground_truth.txt", "1\n");
  const fs::path meta = pictures() / "meta.mat";
  test::write_meta_mat(meta, {{1, "n01440764"}, {2, "n02119789"}});
  const std::string bytes = read_file(meta, 1 << 20);
  write(meta, bytes.substr(0, 200));
  for (const int ranks : {1, 2}) {
    const ProgramResult refused = run_program(under_mpirun(ranks, conversion()));
    EXPECT_EQ(refused.exit_code, 65) << refused.errors;
    EXPECT_THAT(refused.errors, HasSubstr("'" + meta.string() + "' "));
  }
  // Whole, it is read, and what is said next is of the pictures.
  write(meta, bytes);
  EXPECT_THAT(run_program(under_mpirun(2, conversion())).errors, HasSubstr("JPEG"));
}

TEST_F(OddPicturesTest, formats_that_are_not_read_are_named_with_what_to_do) {
  for (int picture = 0; picture < 4; ++picture) {
    for (const char* name : {"cat", "dog"}) {
      write(pictures() / name / (std::to_string(picture) + ".webp"),
            fmt::format("RIFF{}{}{}{}WEBPVP8 {}{}", '\x10', '\0', '\0', '\0', name, picture));
    }
  }
  const ProgramResult refused = run_program(conversion());
  EXPECT_EQ(refused.exit_code, 65) << refused.errors;
  EXPECT_THAT(refused.errors, HasSubstr("mogrify -format png *.webp"));
}

}  // namespace lockstep::odd_pictures_test
