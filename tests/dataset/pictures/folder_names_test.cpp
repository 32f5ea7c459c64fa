#include "dataset/pictures/listing/folder_names.hpp"

#include <gtest/gtest.h>

namespace lockstep::folder_names_test {

TEST(FolderNamesTest, say_which_split_a_folder_is) {
  for (const char* const name :
       {"train", "Training", "TRAIN", "training_set", "train-images", "train2017", "Train Data"}) {
    ASSERT_TRUE(split_name_of(name)) << name;
    EXPECT_EQ(split_name_of(name)->split, Split::train) << name;
    EXPECT_EQ(split_name_of(name)->stem, "") << name;
  }
  for (const char* const name : {"val", "Valid", "validation", "dev", "VAL"}) {
    EXPECT_EQ(split_name_of(name).value_or(SplitName{Split::train, ""}).split, Split::validation) << name;
  }
  for (const char* const name : {"test", "Testing", "TEST_SET", "eval"}) {
    EXPECT_EQ(split_name_of(name).value_or(SplitName{Split::train, ""}).split, Split::test) << name;
  }
  EXPECT_EQ(split_name_of("seg_train").value_or(SplitName{}).stem, "seg");
  for (const char* const name : {"cat", "trains", "contest", "train_test_split", "invalid", "", "2017"}) {
    EXPECT_FALSE(split_name_of(name)) << name;
  }
}

TEST(FolderNamesTest, look_alike_where_case_or_normalisation_alone_differs) {
  EXPECT_TRUE(look_alike("Cat", "cat"));
  EXPECT_TRUE(look_alike("\xED\x95\x9C", "\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB"));   // a Hangul syllable and its parts
  EXPECT_FALSE(look_alike("\xE5\x8C\x97\xE4\xBA\xAC", "\xE4\xB8\x8A\xE6\xB5\xB7"));  // Beijing, Shanghai
  EXPECT_FALSE(look_alike("cat", "cut"));
  EXPECT_FALSE(look_alike("cat", "cat"));
}

// Beside a folder that wraps the data set, LICENSE made a class of that folder.
TEST(FolderNames, texts_without_an_ending_are_no_pictures) {
  EXPECT_FALSE(may_be_picture("data/LICENSE"));
  EXPECT_FALSE(may_be_picture("README"));
  EXPECT_FALSE(may_be_picture("notes.txt"));
  EXPECT_TRUE(may_be_picture("0001"));
  EXPECT_TRUE(may_be_picture("license.jpg"));
}

}  // namespace lockstep::folder_names_test
