#include "dataset/pictures/picture_list.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <set>

#include "dataset/pictures/listed_folder.hpp"
#include "dataset/pictures/listing/summary.hpp"
#include "support/messages.hpp"

namespace lockstep::picture_list_test {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class PictureListTest : public test::ListedFolder {};

TEST_F(PictureListTest, class_folders_with_a_test_split) {
  write("train/dog/a.jpg", "four");
  write("train/cat/deep/b c.png");
  write("val/dog/c.jpg");
  const PictureList found = list();
  EXPECT_THAT(found.classes, ElementsAre("cat", "dog"));
  EXPECT_THAT(found.train, UnorderedElementsAre(file("train/dog/a.jpg", 4, 1), file("train/cat/deep/b c.png", 1, 0)));
  EXPECT_THAT(found.test, ElementsAre(file("val/dog/c.jpg", 1, 1)));
  EXPECT_EQ(found.test_origin, "val");
  EXPECT_THAT(found.left_out, IsEmpty());
}

TEST_F(PictureListTest, without_a_test_split_a_tenth_of_each_class_is_held_out) {
  write_class("many", 40);
  write_class("few", 5);
  write_class("one", 1);
  const PictureList found = list();
  EXPECT_THAT(found.classes, ElementsAre("few", "many", "one"));
  std::map<std::int32_t, int> held;
  for (const PictureFile& file : found.test) ++held[file.label];
  EXPECT_EQ(held, (std::map<std::int32_t, int>{{0, 1}, {1, 4}}));
  EXPECT_EQ(found.train.size() + found.test.size(), 46U);
  std::set<std::string> all;
  for (const auto& files : {names(found.train), names(found.test)}) all.insert(files.begin(), files.end());
  EXPECT_EQ(all.size(), 46U);
  EXPECT_EQ(found.test_origin, "a tenth of each class, held out by --seed");
}

TEST_F(PictureListTest, the_order_is_the_seeds_and_mixes_classes) {
  write_class("a", 50);
  write_class("b", 50);
  const PictureList one = list(1);
  EXPECT_EQ(one.train, list(1).train);
  EXPECT_NE(names(one.train), names(list(2).train));
  EXPECT_NE(names(one.test), names(list(2).test));
  const auto first_half = one.train.begin() + 45;
  const auto of_class_a =
      std::count_if(one.train.begin(), first_half, [](const auto& file) { return file.label == 0; });
  EXPECT_GT(of_class_a, 10);
  EXPECT_LT(of_class_a, 35);
}

TEST_F(PictureListTest, what_is_no_file_of_the_folder_is_left_out_and_named) {
  storage_.allowed = {"one-class"};
  write("cat/a.jpg");
  write("cat/b.jpg");
  write("cat/.DS_Store");
  fs::create_symlink("a.jpg", root() / "cat/inside.jpg");
  std::ofstream(folder_.path() / "secret") << "secret";
  fs::create_symlink("../../secret", root() / "cat/outside.jpg");
  fs::create_symlink("nowhere", root() / "cat/broken.jpg");
  fs::create_symlink(folder_.path(), root() / "elsewhere");
  ASSERT_EQ(::mkfifo((root() / "cat/pipe.jpg").c_str(), 0600), 0);
  PictureList found = list();
  EXPECT_THAT(files_of(found.left_out),
              UnorderedElementsAre("cat/.DS_Store", "cat/outside.jpg", "cat/broken.jpg", "cat/pipe.jpg", "elsewhere"));
  expect_message(joined(left_out_lines(found)), {"--follow-links"});
  EXPECT_EQ(found.train.size() + found.test.size(), 3U);

  storage_.follows_links = true;
  fs::remove(root() / "elsewhere");
  found = list();
  EXPECT_THAT(files_of(found.left_out), UnorderedElementsAre("cat/.DS_Store", "cat/broken.jpg", "cat/pipe.jpg"));
}

// The pictures were taken once for each turn.
TEST_F(PictureListTest, a_link_to_a_folder_around_it_is_left_out) {
  storage_.allowed = {"one-class"};
  write("cat/a.jpg");
  write("cat/deep/b.jpg");
  fs::create_symlink(".", root() / "cat/again");
  fs::create_symlink("..", root() / "cat/deep/up");
  const PictureList found = list();
  EXPECT_THAT(files_of(found.left_out), UnorderedElementsAre("cat/again", "cat/deep/up"));
  expect_message(joined(left_out_lines(found)), {"'cat/again', 'cat/deep/up'"});
  EXPECT_EQ(found.train.size() + found.test.size(), 2U);
}

TEST_F(PictureListTest, names_may_hold_anything) {
  const std::string name = "a 'quoted\" $(touch hurt);\n\xFF.jpg";
  storage_.allowed = {"one-class"};
  write("cat/" + name);
  write("cat/b.jpg");
  const PictureList found = list();
  std::vector<std::string> all = names(found.train);
  all.push_back(found.test.front().name);
  EXPECT_THAT(all, UnorderedElementsAre("cat/" + name, "cat/b.jpg"));
  const PictureList told = picture_list_from(to_text(found));
  EXPECT_EQ(told.train, found.train);
  EXPECT_EQ(told.test, found.test);
  EXPECT_EQ(told.classes, found.classes);
  EXPECT_EQ(told.folder, found.folder);
  EXPECT_EQ(fingerprint(told), fingerprint(found));
}

TEST_F(PictureListTest, a_class_that_is_tested_must_be_learned) {
  write("train/cat/a.jpg");
  write("test/dog/b.jpg");
  expect_message(usage_text(), {"--skip"});
}

TEST_F(PictureListTest, what_was_meant_for_tests_alone_is_refused) {
  write("val/cat/a.jpg");
  write("val/dog/b.jpg");
  expect_message(usage_text(), {"--source"});
  write("test.list");
  expect_message(usage_text(), {});
}

TEST_F(PictureListTest, a_folder_without_pictures_says_what_it_should_hold) {
  expect_message(usage_text(), {root().string(), "--source"});
  write("a.jpg");
  expect_message(usage_text(), {"--source", root().string(), "a.jpg"});
  fs::create_symlink(folder_.path(), root() / "ant");
  expect_message(usage_text(), {"--source", "'ant'", "--follow-links", "'a.jpg'"});
  write("cat/a.jpg");
  expect_message(usage_text(), {root().string()});
}

// 1,489 warnings, one for each picture of a list in UTF-16.
TEST_F(PictureListTest, a_list_with_a_nul_byte_is_named_with_its_line) {
  write("a.jpg");
  write("train.list", std::string("a.jpg cat\nb\0.jpg dog\n", 20));
  expect_message(data_text(), {"line 2 of " + quoted("train.list"), "NUL", "UTF-8"});
}

TEST_F(PictureListTest, a_byte_order_mark_is_no_part_of_a_path) {
  write("a.jpg");
  write("train.list",
        "\xEF\xBB\xBF"
        "a.jpg cat\na.jpg cat\n");
  storage_.allowed = {"one-class"};
  EXPECT_EQ(list().train.front().name, "a.jpg");
}

// val.list was passed over where there was a test.list.
TEST_F(PictureListTest, three_lists_make_three_splits) {
  write_all({"a.jpg", "b.jpg", "c.jpg", "d.jpg"});
  write("train.list", "a.jpg cat\nb.jpg dog\n");
  write("val.list", "c.jpg cat\n");
  write("test.list", "d.jpg dog\n");
  const PictureList found = list();
  EXPECT_THAT(found.validation, ElementsAre(file("c.jpg", 1, 0)));
  EXPECT_THAT(found.test, ElementsAre(file("d.jpg", 1, 1)));
}

// Conversions of earlier versions go on.
TEST_F(PictureListTest, the_fingerprint_is_that_of_earlier_versions) {
  PictureList found;
  found.folder = "/data/set";
  found.classes = {"cat", "dog"};
  found.train = {file("train/cat/a.jpg", 300, 0)};
  found.test = {{"b.tar/b.jpg", 70'000, 1, 0, 512}};
  found.archives = {"b.tar"};
  found.left_out = {{"train/cat/.x", true, "is hidden"}};
  found.test_origin = "test";
  const std::string before = "7d49967543a1dc17d432038b6c635ed8";
  EXPECT_EQ(earlier_fingerprint(found), before);
  found.remarks = {{"a.txt", true, "lies outside the class folders"}};
  EXPECT_EQ(earlier_fingerprint(found), before);
  found.left_out = {};
  EXPECT_EQ(fingerprint(found), earlier_fingerprint(found));
  found.validation = found.train;
  EXPECT_NE(earlier_fingerprint(found), before);
}

// A hidden file or another path of the same folder ended a conversion that was to be continued.
TEST_F(PictureListTest, the_fingerprint_depends_on_pictures_alone) {
  write_classes("", 2);
  const PictureList before = list();
  write("cat/.DS_Store");
  EXPECT_EQ(fingerprint(list()), fingerprint(before));
  PictureList elsewhere = before;
  elsewhere.folder = root() / "cat" / "..";
  EXPECT_EQ(fingerprint(elsewhere), fingerprint(before));
  elsewhere.train.front().label = 7;
  EXPECT_NE(fingerprint(elsewhere), fingerprint(before));
}

TEST_F(PictureListTest, lists_with_names_of_classes) {
  write("here/a b.jpg");
  write("c.jpg");
  write("train.list", "here/a b.jpg\tdog\r\n\n  \nc.jpg cat\n");
  write("test.list", (root() / "c.jpg").string() + " dog");
  const PictureList found = list();
  EXPECT_THAT(found.classes, ElementsAre("cat", "dog"));
  EXPECT_THAT(found.train, UnorderedElementsAre(file("here/a b.jpg", 1, 1), file("c.jpg", 1, 0)));
  EXPECT_THAT(found.test, ElementsAre(file((root() / "c.jpg").string(), 1, 1)));
}

TEST_F(PictureListTest, lists_with_numbers_keep_them) {
  write("a.jpg");
  write("b.jpg");
  write("train.list", "a.jpg 2\nb.jpg 0\n");
  write("val.list", "a.jpg 2\n");
  EXPECT_THAT(list().classes, ElementsAre("0", "1", "2"));
  EXPECT_EQ(list().test.front().label, 2);
  write("classes.txt", "ant\nbee\ncow\ndog\n");
  EXPECT_THAT(list().classes, ElementsAre("ant", "bee", "cow", "dog"));
  write("classes.txt", "ant\nbee\ncow\n\n \n");
  EXPECT_THAT(list().classes, ElementsAre("ant", "bee", "cow"));
  write("classes.txt", "ant\nbee\n");
  expect_message(data_text(), {quoted("classes.txt"), "2 classes", "label 2"});
}

// All later classes got the name of the one after them.
TEST_F(PictureListTest, a_blank_line_between_names_of_classes_is_refused) {
  write_all({"a.jpg", "b.jpg"});
  write("train.list", "a.jpg 2\nb.jpg 0\n");
  write("val.list", "a.jpg 2\n");
  write("classes.txt", "ant\n \nbee\ncow\n");
  expect_message(data_text(), {"line 2 of " + quoted("classes.txt"), "class 1"});
}

TEST_F(PictureListTest, what_is_wrong_in_a_list_is_named_by_its_line) {
  write("a.jpg");
  const std::string list_name = "'" + (root() / "train.list").string() + "'";
  write("train.list", "a.jpg 1\nalone\n");
  expect_message(data_text(), {"line 2 of " + list_name, "'alone'"});
  write("train.list", "a.jpg 1\nb.jpg 1\n");
  expect_message(data_text(), {"line 2 of " + list_name, "'b.jpg'", "No such file or directory"});
  write("train.list", "\n");
  expect_message(data_text(), {list_name});
  write("train.list", "a.jpg cat\n");
  write("test.list", "a.jpg dog\n");
  expect_message(data_text(), {"line 1 of " + quoted("test.list"), "'dog'", list_name});
  write("train.list", "a.jpg cat\na.jpg cat\n\na.jpg dog\n");
  expect_message(data_text(), {"line 4 of " + list_name, "'dog'", "'a.jpg'", "line 1", "'cat'"});
}

// PaddlePaddle's lists of data files have no labels. They were refused.
TEST_F(PictureListTest, without_labels_the_class_is_the_folder) {
  write_all({"set/10/a b.jpg", "set/9/c.jpg", "more/10/d.jpg"});
  write("train.list", "./set/10/a b.jpg\r\n\nset/9/c.jpg \n");
  write("test.list", (root() / "more/10/d.jpg").string());
  PictureList found = list();
  EXPECT_THAT(found.classes, ElementsAre("10", "9")) << "as for class folders";
  EXPECT_THAT(found.train, UnorderedElementsAre(file("./set/10/a b.jpg", 1, 0), file("set/9/c.jpg", 1, 1)));
  EXPECT_THAT(found.test, ElementsAre(file((root() / "more/10/d.jpg").string(), 1, 0)));
  expect_message(joined(found.notes), {quoted("train.list")});
}

TEST_F(PictureListTest, without_labels_and_class_folders_the_classes_are_unknown) {
  write_all({"set/a.jpg", "set/b.jpg", "set/cat/c.jpg", "d.jpg"});
  const auto refusal = [&](const std::string& text) {
    write("train.list", text);
    return data_text();
  };
  expect_message(refusal("set/a.jpg\nset/b.jpg\n"), {"line 1 of " + quoted("train.list"), "'set/a.jpg cat'"});
  expect_message(refusal("set/cat/c.jpg\nset/a.jpg\n"), {"line 2 of " + quoted("train.list"), "'set/a.jpg'"});
  expect_message(refusal("d.jpg\nset/a.jpg\n"), {"line 1 of " + quoted("train.list"), "'d.jpg cat'"});
  write("data_batch_1.bin");
  expect_message(refusal("data_batch_1.bin\n"), {"'data_batch_1.bin cat'", "make_shards cifar10"});
  write("set/dog/e.jpg");
  write("test.list", "set/cat/c.jpg cat\n");
  expect_message(refusal("set/cat/c.jpg\nset/dog/e.jpg\n"), {quoted("train.list"), quoted("test.list")});
  expect_message(refusal("set/cat/c.jpg\nset/dog/e.jpg dog\n"), {"line 2", "'set/dog/e.jpg dog'"});
}

// PaddlePaddle's lists start at the working directory.
TEST_F(PictureListTest, a_path_that_the_lists_folder_lacks_starts_at_the_working_directory) {
  write_all({"a.jpg", "elsewhere/a.jpg", "elsewhere/b.jpg"});
  write("train.list", "a.jpg cat\nb.jpg dog\na.jpg cat\n");
  write("test.list", "b.jpg dog\n");
  const fs::path before = fs::current_path();
  fs::current_path(root() / "elsewhere");
  const PictureList found = list();
  fs::current_path(before);
  const std::string outside = (fs::canonical(root()) / "elsewhere/b.jpg").string();
  EXPECT_THAT(found.train, UnorderedElementsAre(file("a.jpg", 1, 0), file(outside, 1, 1), file("a.jpg", 1, 0)));
  EXPECT_THAT(found.test, ElementsAre(file(outside, 1, 1)));
}

}  // namespace lockstep::picture_list_test
