// Forms of data sets that are not read: each is named, and the command in the message makes a form that is read.
#include "dataset/pictures/listing/unsupported_layouts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "dataset/pictures/listed_folder.hpp"
#include "dataset/pictures/tar_archive.hpp"
#include "support/messages.hpp"

namespace lockstep::unsupported_layouts_test {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class UnsupportedLayoutsTest : public test::ListedFolder {
 protected:
  // The message's command, which begins with `first_word`.
  void run_command(const std::string& message, const std::string& first_word) const {
    const std::string command = "cd '" + root().string() + "' && " + message.substr(message.find(first_word));
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
};

// ImageNet's development kit was asked for.
TEST_F(UnsupportedLayoutsTest, a_table_of_labels_is_named_with_a_command_that_works) {
  write_all({"train/01.jpg", "train/02.jpg", "train/03.jpg", "train/04.jpg", "test/05.jpg"});
  write("labels.csv", "id,breed\n01,boxer\n02,basset hound\n03,boxer\n04,basset hound\n");
  write("sample_submission.csv", "id,boxer,basset hound\n05,0.5,0.5\n");
  const std::string words = usage_text();
  expect_message(words, {quoted("train"), "'labels.csv'", "'breed'", "train.list", "'" + root().string() + "'"});
  run_command(words, "python3");
  const PictureList found = list();
  EXPECT_THAT(found.classes, ElementsAre("basset_hound", "boxer"));
  EXPECT_EQ(found.train.size() + found.test.size(), 4U);
}

TEST_F(UnsupportedLayoutsTest, a_table_of_labels_beside_loose_pictures_is_named) {
  write_all({"01.jpg", "02.jpg"});
  write("all.csv", "file,width,label\n01.jpg,640,cat\n02.jpg,640,dog\n");
  expect_message(usage_text(),
                 {"--source", "'all.csv'", "column 'label'", R"([print("" + row[0] + "", row[2].replace()"});
}

TEST_F(UnsupportedLayoutsTest, a_table_whose_name_a_shell_would_run_is_in_no_command) {
  write_all({"train/01.jpg", "train/02.jpg"});
  write("$(touch hurt)';.csv", "id,breed\n01,boxer\n");
  expect_message(usage_text(), {"'breed'", "train.list"});
  EXPECT_THAT(usage_text(), Not(HasSubstr("python3")));
}

TEST_F(UnsupportedLayoutsTest, webdataset_is_named_with_a_command_that_works) {
  const fs::path work = folder_.path() / "work";
  fs::create_directories(work);
  fs::create_directories(root());
  for (const char* const key : {"000", "001"}) {
    std::ofstream(work / (std::string(key) + ".jpg")) << ("x");
    std::ofstream(work / (std::string(key) + ".cls")) << (key[2] == '0' ? "0" : "1");
  }
  for (const char* const name : {"train-0.tar", "train-1.tar"}) test::make_tar(root() / name, work);
  const std::string words = usage_text();
  expect_message(words, {"--source", "2 archives", "NAME.jpg", "NAME.cls", "train.list", "'" + root().string() + "'"});
  run_command(words, "mkdir");
  const PictureList found = list();
  EXPECT_THAT(found.classes, ElementsAre("0", "1"));
  EXPECT_EQ(found.train.size() + found.test.size(), 4U);
}

TEST_F(UnsupportedLayoutsTest, other_forms_are_named) {
  write("train-00000-of-00001.parquet");
  expect_message(usage_text(), {"--source", "Parquet", "'train-00000-of-00001.parquet'"});
}

}  // namespace lockstep::unsupported_layouts_test
