// Data sets of pictures as people have them: read as they are meant, or refused with the option that decides.
#include "dataset/pictures/listing/listing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dataset/pictures/listed_folder.hpp"
#include "dataset/pictures/listing/summary.hpp"
#include "support/messages.hpp"

namespace lockstep::listing_test {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class ListingTest : public test::ListedFolder {};

// Became classes "Training" and "Test", with 25 training pictures.
TEST_F(ListingTest, split_folders_are_read_in_any_case) {
  write_classes("Training", 6);
  write_classes("Test", 3);
  const PictureList found = list();
  EXPECT_THAT(found.classes, ElementsAre("ant", "cat", "dog"));
  EXPECT_EQ(found.train.size(), 18U);
  EXPECT_EQ(found.test.size(), 9U);
  EXPECT_THAT(summary_of(found),
              ElementsAre("training: 18 pictures of 3 classes (Training)", "test: 9 pictures of 3 classes (Test)",
                          "3 classes (training + test): ant 6 + 3, cat 6 + 3, dog 6 + 3"));
}

// "valid" was passed over without a word, and a tenth of "train" was held out.
TEST_F(ListingTest, a_validation_folder_alone_is_the_test_split) {
  write_classes("train", 6);
  write_classes("valid", 3);
  const PictureList found = list();
  EXPECT_EQ(found.train.size(), 18U);
  EXPECT_EQ(found.test.size(), 9U);
  EXPECT_EQ(found.test_origin, "valid");
  EXPECT_THAT(found.validation, IsEmpty());
}

// "val" was passed over without a word.
TEST_F(ListingTest, validation_and_test_folders_are_a_split_each) {
  write_classes("train", 6);
  write_classes("val", 3);
  write_classes("test", 2);
  const PictureList found = list();
  EXPECT_EQ(found.train.size(), 18U);
  EXPECT_EQ(found.validation.size(), 9U);
  EXPECT_EQ(found.test.size(), 6U);
  EXPECT_THAT(summary_of(found),
              Contains("3 classes (training + validation + test): ant 6 + 3 + 2, cat 6 + 3 + 2, dog 6 + 3 + 2"));
  const PictureList told = picture_list_from(to_text(found));
  EXPECT_EQ(told.validation, found.validation);
}

TEST_F(ListingTest, two_folders_for_one_split_are_refused) {
  write_classes("train", 6);
  write_classes("val", 3);
  write_classes("valid", 2);
  expect_message(usage_text(), {"--skip", root().string(), "val"});
  storage_.skipped = {"val/"};
  const PictureList found = list();
  EXPECT_EQ(found.test_origin, "valid");
  EXPECT_THAT(files_of(found.remarks), ElementsAre("val"));
  expect_message(found.remarks.front().remark, {"--skip"});
}

TEST_F(ListingTest, a_skipped_name_that_is_not_there_is_refused) {
  write_classes("", 2);
  storage_.skipped = {"cow"};
  expect_message(usage_text(), {"--skip", root().string(), "cow"});
  for (const std::string& name : std::vector<std::string>{".", "..", "/", "", (root() / "cat").string()}) {
    storage_.skipped = {name};
    SCOPED_TRACE(name);
    expect_message(usage_text(), {"--skip", "--source"});
  }
  storage_.skipped = {"./cat/1.jpg", "dog/"};
  const PictureList found = list();
  EXPECT_THAT(found.classes, ElementsAre("ant", "cat"));
  EXPECT_THAT(files_of(found.remarks), UnorderedElementsAre("cat/1.jpg", "dog"));
}

// Became one class, of which a network is always right.
TEST_F(ListingTest, a_wrapping_folder_is_looked_into) {
  write_classes("my_pictures", 5);
  const PictureList found = list();
  EXPECT_THAT(found.classes, ElementsAre("ant", "cat", "dog"));
  expect_message(summary_of(found).front(), {root().string(), "'my_pictures'"});
}

TEST_F(ListingTest, folders_that_wrap_splits_are_looked_into) {
  write_classes("archive/data/train/train", 5);
  write_classes("archive/data/test/images", 2);
  write("archive/data/readme.txt");
  const PictureList found = list();
  EXPECT_THAT(found.classes, ElementsAre("ant", "cat", "dog"));
  EXPECT_EQ(found.test.size(), 6U);
  EXPECT_THAT(files_of(found.remarks), ElementsAre("archive/data/readme.txt"));
  EXPECT_THAT(summary_of(found), Contains("training: 15 pictures of 3 classes (archive/data/train/train)"));
}

TEST_F(ListingTest, splits_may_share_a_stem) {
  write_classes("seg_train/seg_train", 5);
  write_classes("seg_test/seg_test", 2);
  const PictureList found = list();
  EXPECT_THAT(found.classes, ElementsAre("ant", "cat", "dog"));
  EXPECT_EQ(found.test.size(), 6U);
}

TEST_F(ListingTest, a_list_inside_the_only_folder_is_named) {
  write("inside/train.list", "a.jpg 0\n");
  expect_message(usage_text(), {"--source"});
}

TEST_F(ListingTest, one_class_is_refused_unless_it_is_allowed) {
  write_class("cat", 4);
  expect_message(usage_text(), {"--source", root().string()});
  storage_.allowed = {"one-class"};
  EXPECT_THAT(list().classes, ElementsAre("cat"));
  write_class("cat/2019", 2);
  write_class("cat/2020", 2);
  EXPECT_THAT(list().classes, ElementsAre("cat"));
}

// Caltech-101 beside its annotations became two classes.
TEST_F(ListingTest, one_class_with_pictures_beside_folders_without_them_is_refused) {
  write_classes("101_ObjectCategories", 3);
  write("Annotations/ant/0.mat");
  expect_message(usage_text(), {"'101_ObjectCategories'", "--source"});
}

// PlantVillage's three kinds of pictures became three classes.
TEST_F(ListingTest, class_folders_of_class_folders_are_refused) {
  write_classes("color", 2);
  write_classes("grayscale", 2);
  expect_message(usage_text(), {"--source", root().string()});
  storage_.allowed = {"nested-classes"};
  EXPECT_THAT(list().classes, ElementsAre("color", "grayscale"));
}

TEST_F(ListingTest, loose_pictures_are_listed) {
  write_class("cat", 5);
  write_class("dog", 5);
  write_all({"loose0.jpg", "loose1.jpg", "loose2.jpg", "loose3.jpg", ".hidden"});
  const PictureList found = list();
  EXPECT_EQ(found.train.size() + found.test.size(), 10U);
  expect_message(joined(left_out_lines(found)),
                 {"'.hidden'", "4 files or folders", "'loose0.jpg', 'loose1.jpg', 'loose2.jpg' and 1 more"});
  EXPECT_THAT(files_of(found.remarks), Contains("loose3.jpg"));
}

TEST_F(ListingTest, what_lies_beside_split_folders_is_listed) {
  write_classes("train", 2);
  write_classes("test", 1);
  write_all({"train/loose.jpg", "test/loose.jpg", "Annotations/a.xml", "labels.csv"});
  EXPECT_THAT(files_of(list().remarks),
              UnorderedElementsAre("train/loose.jpg", "test/loose.jpg", "Annotations", "labels.csv"));
}

// Thumbnails were counted as pictures, and "@eaDir" was a class.
TEST_F(ListingTest, folders_of_storage_systems_are_left_out) {
  write_class("cat", 4);
  write_class("dog", 4);
  write_all({"@eaDir/x", "cat/@eaDir/0.jpg/thumb.jpg", "cat/@eaDir/1.jpg/thumb.jpg", "__MACOSX/cat/._0.jpg",
             "dog/$RECYCLE.BIN/old.jpg", "#recycle/old.jpg", "dog/.AppleDouble/0.jpg"});
  fs::create_directories(root() / "lost+found");
  const PictureList found = list();
  EXPECT_THAT(found.classes, ElementsAre("cat", "dog"));
  EXPECT_EQ(found.train.size() + found.test.size(), 8U);
  for (const OddFile& odd : found.remarks) EXPECT_EQ(odd.remark, found.remarks.front().remark);
  expect_message(found.remarks.front().remark, {"system"});
  EXPECT_THAT(
      files_of(found.remarks),
      UnorderedElementsAre("@eaDir/x", "cat/@eaDir/0.jpg/thumb.jpg", "cat/@eaDir/1.jpg/thumb.jpg",
                           "__MACOSX/cat/._0.jpg", "dog/$RECYCLE.BIN/old.jpg", "#recycle/old.jpg", "lost+found"));
}

TEST_F(ListingTest, counts_leave_out_what_is_not_called_like_a_picture) {
  write_class("cat", 4);
  write_class("dog", 4);
  write_all({"cat/Thumbs.db", "dog/0.txt"});
  const PictureList found = list();
  EXPECT_EQ(found.train.size() + found.test.size(), 10U) << "their order is that of earlier versions";
  EXPECT_THAT(summary_of(found), Contains(AllOf(HasSubstr("2 files"), HasSubstr("'cat/Thumbs.db', 'dog/0.txt'"))));
  const std::string counts = fmt::format("{}", fmt::join(summary_of(found), "\n"));
  const auto all = counts_by_class(found, SourceSplit::train, CountedFiles::pictures);
  const auto test = counts_by_class(found, SourceSplit::test, CountedFiles::pictures);
  EXPECT_EQ(all[0] + test[0], 4);
  EXPECT_THAT(counts, HasSubstr(fmt::format("cat {} + {}, dog {} + {}", all[0], test[0], all[1], test[1])));
}

TEST_F(ListingTest, many_classes_are_summed_up) {
  for (int i = 0; i < 30; ++i) write_class(fmt::format("train/c{:02}", i), 1 + i);
  for (int i = 0; i < 30; ++i) write_class(fmt::format("test/c{:02}", i), 2);
  EXPECT_THAT(summary_of(list()),
              ElementsAre("training: 465 pictures of 30 classes (train)", "test: 60 pictures of 30 classes (test)",
                          "30 classes (training + test): c00 1 + 2, c01 2 + 2, c02 3 + 2, ..., c27 28 + 2, c28 29 + 2, "
                          "c29 30 + 2",
                          "training pictures per class: minimum 1 ('c00'), median 16, maximum 30 ('c29')"));
}

// ImageNet's development kit was asked for.
TEST_F(ListingTest, a_test_folder_without_classes_is_left_out_beside_one_that_has_them) {
  write_classes("train", 3);
  write_classes("val", 2);
  write_class("test", 4);
  const PictureList found = list();
  EXPECT_EQ(found.test_origin, "val");
  EXPECT_EQ(found.test.size(), 6U);
  expect_message(joined(left_out_lines(found)), {"'test'", "4 pictures"});
}

TEST_F(ListingTest, a_test_folder_without_classes_alone_is_refused) {
  write_classes("train", 3);
  write_class("test", 4);
  expect_message(usage_text(), {"--skip"});
  storage_.skipped = {"test"};
  EXPECT_EQ(list().test_origin, "a tenth of each class, held out by --seed");
}

TEST_F(ListingTest, classes_that_are_called_like_splits_are_refused) {
  for (const char* const name : {"bus", "car", "train"}) write_class(name, 3);
  expect_message(usage_text(), {"--allow", "train"});
  fs::rename(root() / "train", root() / "Test");
  expect_message(usage_text(), {"--allow"});
  storage_.allowed = {"split-names"};
  EXPECT_THAT(list().classes, ElementsAre("Test", "bus", "car"));
  fs::rename(root() / "Test", root() / "train");
  EXPECT_THAT(list().classes, ElementsAre("bus", "car", "train"));
}

TEST_F(ListingTest, a_class_inside_a_split_may_be_called_train_where_that_is_allowed) {
  for (const char* const name : {"train/bus", "train/train", "test/bus", "test/train"}) write_class(name, 3);
  expect_message(usage_text(), {quoted("train/train"), "--allow split-names"});
  storage_.allowed = {"split-names"};
  const PictureList found = list();
  EXPECT_THAT(found.classes, ElementsAre("bus", "train"));
  EXPECT_EQ(found.test.size(), 6U);
}

TEST_F(ListingTest, a_class_without_training_pictures_is_refused) {
  write_classes("train", 3);
  write_classes("test", 1);
  fs::create_directories(root() / "train/eel");
  expect_message(joined(doubts_about(list())), {"1 of 4 classes", "'eel'", "--skip"});
  storage_.skipped = {"test/dog"};
  expect_message(joined(doubts_about(list())), {"1 of 4 classes", "'dog'"});
  storage_.skipped = {};
  write("test/eel/a.jpg");
  expect_message(usage_text(), {"--allow", "eel", "test/eel/a.jpg"});
  storage_.allowed = {"untrained-classes"};
  EXPECT_EQ(list().test.size(), 4U);
}

// Both names were printed alike.
TEST_F(ListingTest, names_that_differ_in_unicode_normalisation_are_told_apart) {
  write_class("train/caf\xC3\xA9", 3);
  write_class("train/dog", 3);
  write_class("val/cafe\xCC\x81", 3);
  expect_message(usage_text(), {"--skip"});
  fs::rename(root() / "val/cafe\xCC\x81", root() / "val/Dog");
  expect_message(usage_text(), {"'dog'", "'Dog'", "--skip"});
  fs::rename(root() / "val/Dog", root() / "val/dog");
  write_class("train/cafe\xCC\x81", 3);
  expect_message(joined(doubts_about(list())),
                 {"'cafe\xCC\x81' (bytes 'cafe\\xcc\\x81')", "'caf\xC3\xA9' (bytes 'caf\\xc3\\xa9')"});
}

TEST_F(ListingTest, labels_that_differ_in_unicode_normalisation_are_told_apart) {
  write_all({"a.jpg", "b.jpg"});
  write("train.list", "a.jpg caf\xC3\xA9\nb.jpg dog\n");
  write("test.list", "a.jpg cafe\xCC\x81\n");
  expect_message(data_text(), {"'caf\xC3\xA9'", "'cafe\\xcc\\x81'", "'caf\\xc3\\xa9'"});
}

// Ended with "'test/images' is a class that 'train' does not have".
TEST_F(ListingTest, tiny_imagenet_is_read_with_its_annotations) {
  write_all({"train/n01443537/images/n01443537_0.JPEG", "train/n01629819/images/n01629819_0.JPEG",
             "train/n01443537/n01443537_boxes.txt", "val/images/val_0.JPEG", "val/images/val_1.JPEG",
             "val/images/other.JPEG", "test/images/test_0.JPEG", "wnids.txt", "words.txt"});
  write("val/val_annotations.txt", "val_0.JPEG\tn01629819\t0\t32\t44\t62\r\nval_1.JPEG\tn01443537\t0\t0\t9\t9\n");
  const PictureList found = list();
  EXPECT_THAT(found.classes, ElementsAre("n01443537", "n01629819"));
  EXPECT_THAT(found.test,
              UnorderedElementsAre(file("val/images/val_0.JPEG", 1, 1), file("val/images/val_1.JPEG", 1, 0)));
  expect_message(joined(left_out_lines(found)),
                 {"'val/images/other.JPEG'", "val_annotations.txt", "'test'", "1 picture"});
  write("val/val_annotations.txt", "val_0.JPEG\tn01629819\nval_2.JPEG\tn01443537\n");
  expect_message(data_text(), {quoted("val/val_annotations.txt"), "'val_2.JPEG'", quoted("val")});
  write("val/val_annotations.txt", "val_0.JPEG\tn0\n");
  expect_message(data_text(), {"line 1 of " + quoted("val/val_annotations.txt"), "'train'", "'val_0.JPEG\\x09n0'"});
}

TEST_F(ListingTest, links_out_of_the_folder_are_counted_with_the_option_that_takes_them) {
  write("real/a.jpg");
  fs::rename(root() / "real", folder_.path() / "real");
  for (const char* const name : {"cat/a.jpg", "cat/b.jpg", "dog/a.jpg", "dog/b.jpg"}) {
    fs::create_directories((root() / name).parent_path());
    fs::create_symlink(folder_.path() / "real/a.jpg", root() / name);
  }
  fs::create_symlink("nowhere", root() / "cat/broken.jpg");
  expect_message(usage_text(), {"--source", "4 files or folders", "'cat/a.jpg', 'cat/b.jpg', 'dog/a.jpg' and 1 more",
                                "--follow-links", "'cat/broken.jpg'"});
}

}  // namespace lockstep::listing_test
