// Data sets of pictures as people have them: read as they are meant, or refused with the option that decides.
#include "dataset/pictures/listing/listing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dataset/pictures/listed_folder.hpp"
#include "dataset/pictures/listing/summary.hpp"
#include "support/messages.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr const char* outside_text = "lies outside the class folders";

class ListingTest : public testing::ListedFolder {};

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
  EXPECT_THAT(found.remarks, ElementsAre(OddFile{"val", true, "is left out by --skip"}));
}

TEST_F(ListingTest, a_skipped_name_that_is_not_there_is_refused) {
  write_classes("", 2);
  storage_.skipped = {"cow"};
  expect_message(usage_text(), {"--skip", root().string(), "cow"});
  for (const std::string& name : std::vector<std::string>{".", "..", "/", "", (root() / "cat").string()}) {
    storage_.skipped = {name};
    EXPECT_THAT(usage_text(), HasSubstr("(--skip). Name a file or folder as seen from --source.")) << name;
  }
  storage_.skipped = {"./cat/1.jpg", "dog/"};
  const PictureList found = list();
  EXPECT_THAT(found.classes, ElementsAre("ant", "cat"));
  EXPECT_THAT(found.remarks, UnorderedElementsAre(OddFile{"cat/1.jpg", true, "is left out by --skip"},
                                                  OddFile{"dog", true, "is left out by --skip"}));
}

// Became one class, of which a network is always right.
TEST_F(ListingTest, a_wrapping_folder_is_looked_into) {
  write_classes("my_pictures", 5);
  const PictureList found = list();
  EXPECT_THAT(found.classes, ElementsAre("ant", "cat", "dog"));
  EXPECT_EQ(summary_of(found).front(),
            "'" + root().string() + "' holds one folder: the classes are read inside 'my_pictures'");
}

TEST_F(ListingTest, folders_that_wrap_splits_are_looked_into) {
  write_classes("archive/data/train/train", 5);
  write_classes("archive/data/test/images", 2);
  write("archive/data/readme.txt");
  const PictureList found = list();
  EXPECT_THAT(found.classes, ElementsAre("ant", "cat", "dog"));
  EXPECT_EQ(found.test.size(), 6U);
  EXPECT_THAT(found.remarks, ElementsAre(OddFile{"archive/data/readme.txt", true, outside_text}));
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
  EXPECT_THAT(usage_text(), HasSubstr("has one class with pictures, '101_ObjectCategories'"));
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
  EXPECT_THAT(left_out_lines(found), ElementsAre("'.hidden' is hidden",
                                                 "4 files or folders, each of which lies outside the class folders: "
                                                 "'loose0.jpg', 'loose1.jpg', 'loose2.jpg' and 1 more"));
  EXPECT_THAT(found.remarks, Contains(OddFile{"loose3.jpg", true, outside_text}));
}

TEST_F(ListingTest, what_lies_beside_split_folders_is_listed) {
  write_classes("train", 2);
  write_classes("test", 1);
  write_all({"train/loose.jpg", "test/loose.jpg", "Annotations/a.xml", "labels.csv"});
  EXPECT_THAT(list().remarks, UnorderedElementsAre(OddFile{"train/loose.jpg", true, outside_text},
                                                   OddFile{"test/loose.jpg", true, outside_text},
                                                   OddFile{"Annotations", true, outside_text},
                                                   OddFile{"labels.csv", true, outside_text}));
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
  std::vector<std::string> remarks;
  for (const OddFile& odd : found.remarks) {
    EXPECT_EQ(odd.remark, "belongs to the operating or storage system");
    remarks.push_back(odd.file);
  }
  EXPECT_THAT(remarks, UnorderedElementsAre("@eaDir/x", "cat/@eaDir/0.jpg/thumb.jpg", "cat/@eaDir/1.jpg/thumb.jpg",
                                            "__MACOSX/cat/._0.jpg", "dog/$RECYCLE.BIN/old.jpg", "#recycle/old.jpg",
                                            "lost+found"));
}

TEST_F(ListingTest, counts_leave_out_what_is_not_called_like_a_picture) {
  write_class("cat", 4);
  write_class("dog", 4);
  write_all({"cat/Thumbs.db", "dog/0.txt"});
  const PictureList found = list();
  EXPECT_EQ(found.train.size() + found.test.size(), 10U) << "their order is that of earlier versions";
  EXPECT_THAT(summary_of(found), Contains("2 files in class folders have no name of a picture: 'cat/Thumbs.db', "
                                          "'dog/0.txt'. Reading decides whether they are pictures."));
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
                          "training pictures of a class: 1 ('c00') at least, 16 in the median, 30 ('c29') at most"));
}

// ImageNet's development kit was asked for.
TEST_F(ListingTest, a_test_folder_without_classes_is_left_out_beside_one_that_has_them) {
  write_classes("train", 3);
  write_classes("val", 2);
  write_class("test", 4);
  const PictureList found = list();
  EXPECT_EQ(found.test_origin, "val");
  EXPECT_EQ(found.test.size(), 6U);
  EXPECT_THAT(left_out_lines(found), ElementsAre("'test' has no class folders: nothing labels its 4 pictures"));
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
  EXPECT_THAT(usage_text(), HasSubstr(quoted("train/train") + " has the name of a train split, but is a class folder"));
  storage_.allowed = {"split-names"};
  const PictureList found = list();
  EXPECT_THAT(found.classes, ElementsAre("bus", "train"));
  EXPECT_EQ(found.test.size(), 6U);
}

TEST_F(ListingTest, a_class_without_training_pictures_is_refused) {
  write_classes("train", 3);
  write_classes("test", 1);
  fs::create_directories(root() / "train/eel");
  EXPECT_THAT(doubts_about(list()),
              ElementsAre("1 of 4 classes have no training picture: 'eel' (a network cannot learn "
                          "them). Add pictures, or leave the folders out with --skip."));
  storage_.skipped = {"test/dog"};
  EXPECT_THAT(doubts_about(list()),
              Contains("1 of 4 classes have no test picture: 'dog' (their accuracy stays unknown). "
                       "Add pictures?"));
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
  EXPECT_THAT(usage_text(), HasSubstr("It looks like the class 'dog', but its bytes are 'Dog' and not 'dog'"));
  fs::rename(root() / "val/Dog", root() / "val/dog");
  write_class("train/cafe\xCC\x81", 3);
  EXPECT_THAT(doubts_about(list()), Contains("classes 'cafe\xCC\x81' (bytes 'cafe\\xcc\\x81') and 'caf\xC3\xA9' (bytes "
                                             "'caf\\xc3\\xa9') look alike. Are they two classes?"));
}

TEST_F(ListingTest, labels_that_differ_in_unicode_normalisation_are_told_apart) {
  write_all({"a.jpg", "b.jpg"});
  write("train.list", "a.jpg caf\xC3\xA9\nb.jpg dog\n");
  write("test.list", "a.jpg cafe\xCC\x81\n");
  EXPECT_THAT(data_text(), HasSubstr("It looks like the class 'caf\xC3\xA9', but its bytes are 'cafe\\xcc\\x81' and "
                                     "not 'caf\\xc3\\xa9': rename one of the two. Mend one of the two?"));
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
  EXPECT_THAT(found.remarks, Contains(OddFile{"val/images/other.JPEG", true, "is not in val_annotations.txt"}));
  EXPECT_THAT(found.remarks, Contains(OddFile{"test", true, "has no class folders: nothing labels its 1 picture"}));
  write("val/val_annotations.txt", "val_0.JPEG\tn01629819\nval_2.JPEG\tn01443537\n");
  EXPECT_EQ(data_text(), quoted("val/val_annotations.txt") + " names 'val_2.JPEG', which is not in " + quoted("val") +
                             ". Unpack the archive again?");
  write("val/val_annotations.txt", "val_0.JPEG\tn0\n");
  EXPECT_EQ(data_text(), "line 1 of " + quoted("val/val_annotations.txt") +
                             " has no picture and a class that 'train' has: 'val_0.JPEG\\x09n0'. Fetch it again?");
}

TEST_F(ListingTest, links_out_of_the_folder_are_counted_with_the_option_that_takes_them) {
  write("real/a.jpg");
  fs::rename(root() / "real", folder_.path() / "real");
  for (const char* const name : {"cat/a.jpg", "cat/b.jpg", "dog/a.jpg", "dog/b.jpg"}) {
    fs::create_directories((root() / name).parent_path());
    fs::create_symlink(folder_.path() / "real/a.jpg", root() / name);
  }
  fs::create_symlink("nowhere", root() / "cat/broken.jpg");
  EXPECT_THAT(
      usage_text(),
      HasSubstr(
          "' holds no pictures in class folders (--source); left out: 4 files or folders, each of which is a link that "
          "leads out of the folder (--follow-links takes it): 'cat/a.jpg', 'cat/b.jpg', 'dog/a.jpg' and "
          "1 more; 'cat/broken.jpg' leads nowhere. It is to hold"));
}

}  // namespace
}  // namespace lockstep
