#include "dataset/pictures/imagenet.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/io/file.hpp"
#include "dataset/pictures/listing/listing.hpp"
#include "dataset/pictures/tar_archive.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::imagenet_test {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

constexpr const char* tench = "n01440764";
constexpr const char* shark = "n01491361";
constexpr const char* fox = "n02119789";

// A small ImageNet. Its kit numbers fox 1, tench 2, shark 3: not in the order of their names.
class ImagenetTest : public ::testing::Test {
 protected:
  fs::path root() const { return folder_.path() / "imagenet"; }
  fs::path kit() const { return root() / "ILSVRC2012_devkit_t12" / "data"; }

  void write(const fs::path& file, const std::string& text) const {
    fs::create_directories(file.parent_path());
    write_file_atomically(file, text);
  }
  void write_kit() const {
    write(kit() / "ILSVRC2012_validation_ground_truth.txt", "3\n1\n1\n");
    write(kit() / "map_clsloc.txt", "n02119789 1 kit_fox\nn01440764 2 tench\nn01491361 3 tiger_shark\n");
  }
  void write_archives() const {
    const fs::path work = folder_.path() / "work";
    for (const char* const name : {tench, shark, fox}) {
      write(work / name / (std::string(name) + "_1.JPEG"), std::string("picture of ") + name);
      write(work / name / (std::string(name) + "_2.JPEG"), "another");
      fs::create_directories(work / "train");
      test::make_tar(work / "train" / (std::string(name) + ".tar"), work / name);
    }
    for (int i = 1; i <= 3; ++i) write(work / "val" / fmt::format("ILSVRC2012_val_{:08}.JPEG", i), "test");
    fs::create_directories(root());
    test::make_tar(root() / imagenet_train_archive, work / "train");
    test::make_tar(root() / imagenet_validation_archive, work / "val");
  }
  PictureList list() const { return list_pictures(root(), {}, 1); }

  TemporaryFolder folder_;
};

std::map<std::string, std::int32_t> labels(const std::vector<PictureFile>& files) {
  std::map<std::string, std::int32_t> labels;
  for (const PictureFile& file : files) labels[fs::path(file.name).filename().string()] = file.label;
  return labels;
}

TEST_F(ImagenetTest, archives_are_read_where_they_lie) {
  write_kit();
  write_archives();
  const PictureList found = list();
  EXPECT_THAT(found.classes, ElementsAre(tench, shark, fox));
  EXPECT_EQ(labels(found.train), (std::map<std::string, std::int32_t>{{"n01440764_1.JPEG", 0},
                                                                      {"n01440764_2.JPEG", 0},
                                                                      {"n01491361_1.JPEG", 1},
                                                                      {"n01491361_2.JPEG", 1},
                                                                      {"n02119789_1.JPEG", 2},
                                                                      {"n02119789_2.JPEG", 2}}));
  // The kit's 3, 1, 1 are shark, fox, fox.
  EXPECT_EQ(labels(found.test), (std::map<std::string, std::int32_t>{{"ILSVRC2012_val_00000001.JPEG", 1},
                                                                     {"ILSVRC2012_val_00000002.JPEG", 2},
                                                                     {"ILSVRC2012_val_00000003.JPEG", 2}}));
  for (const PictureFile& file : found.train) {
    if (!file.name.ends_with("n02119789_1.JPEG")) continue;
    EXPECT_EQ(file.name, "ILSVRC2012_img_train.tar/n02119789.tar/n02119789_1.JPEG");
    const std::string whole = read_file(root() / found.archives[0], 1 << 20);
    EXPECT_EQ(whole.substr(static_cast<std::size_t>(file.offset), static_cast<std::size_t>(file.bytes)),
              "picture of n02119789");
  }
  EXPECT_EQ(picture_list_from(to_text(found)).train, found.train);
}

TEST_F(ImagenetTest, unpacked_pictures_without_folders_are_labelled_by_the_kit) {
  write_kit();
  for (const char* const name : {tench, shark, fox}) write(root() / "train" / name / "a.JPEG", "x");
  for (int i = 1; i <= 3; ++i) write(root() / "val" / fmt::format("ILSVRC2012_val_{:08}.JPEG", i), "x");
  EXPECT_EQ(labels(list().test), (std::map<std::string, std::int32_t>{{"ILSVRC2012_val_00000001.JPEG", 1},
                                                                      {"ILSVRC2012_val_00000002.JPEG", 2},
                                                                      {"ILSVRC2012_val_00000003.JPEG", 2}}));
  EXPECT_THAT(list().remarks, ::testing::IsEmpty()) << "the kit is read";
  write(root() / "val" / "ILSVRC2012_val_00000004.JPEG", "x");
  expect_error(Failure::bad_data, {"ILSVRC2012_val_00000004.JPEG", " 3,"}, [&] { list(); });
}

TEST_F(ImagenetTest, without_the_kit_nothing_is_labelled) {
  for (const char* const name : {tench, shark, fox}) write(root() / "train" / name / "a.JPEG", "x");
  write(root() / "val" / "ILSVRC2012_val_00000001.JPEG", "x");
  expect_error(Failure::usage, {root().string()}, [&] { list(); });
  write_kit();
  fs::remove(kit() / "map_clsloc.txt");
  expect_error(Failure::usage, {root().string()}, [&] { list(); });
  write_archives();
  fs::remove(root() / imagenet_validation_archive);
  expect_error(Failure::usage, {root().string(), "ILSVRC2012_img_val.tar"}, [&] { list(); });
}

TEST_F(ImagenetTest, a_class_that_is_not_trained_is_named) {
  write_kit();
  for (const char* const name : {tench, fox}) write(root() / "train" / name / "a.JPEG", "x");
  write(root() / "val" / "ILSVRC2012_val_00000001.JPEG", "x");
  expect_error(Failure::bad_data, {"ILSVRC2012_val_00000001.JPEG", shark}, [&] { list(); });
}

TEST_F(ImagenetTest, meta_mat_numbers_the_classes) {
  write(root() / "ILSVRC2012_validation_ground_truth.txt", "2\r\n3\r\n");
  write(root() / "meta.mat", "whatever it holds");
  const ClassNumbers classes{{1, fox}, {2, tench}, {3, shark}};
  EXPECT_THAT(read_validation_classes(root(), {classes, {}}), ElementsAre(tench, shark));
  EXPECT_EQ(message_of(Failure::bad_data,
                       [&] {
                         read_validation_classes(root(), {{}, Error(Failure::bad_data, "It is damaged.")});
                       }),
            "It is damaged.");
  expect_error(Failure::other, {}, [&] { read_validation_classes(root(), {}); });
}

TEST_F(ImagenetTest, lines_of_the_kit_that_are_wrong_are_named) {
  write_kit();
  write(kit() / "ILSVRC2012_validation_ground_truth.txt", "1\n4\n");
  expect_error(Failure::bad_data,
               {"line 2 of '" + (kit() / "ILSVRC2012_validation_ground_truth.txt").string() + "'", "'4'"},
               [&] { read_validation_classes(root(), {}); });
  write(kit() / "map_clsloc.txt", "n02119789 1 kit_fox\nfox 2\n");
  expect_error(Failure::bad_data, {"line 2 of '" + (kit() / "map_clsloc.txt").string() + "'", "'fox 2'"},
               [&] { read_validation_classes(root(), {}); });
}

}  // namespace lockstep::imagenet_test
