#include "train/prediction/picture_files.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "support/message_of.hpp"
#include "support/messages.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::picture_files_test {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

class PictureFilesTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  void write(const std::string& name, const std::string& text = "x") const {
    fs::create_directories(fs::path(path(name)).parent_path());
    std::ofstream(path(name)) << text;
  }

  TemporaryFolder folder_;
};

TEST_F(PictureFilesTest, files_stay_in_the_order_in_which_they_are_named) {
  EXPECT_EQ(picture_files({"b.png", "a.png", "not there.png"}), (Names{"b.png", "a.png", "not there.png"}));
}

TEST_F(PictureFilesTest, a_folder_is_replaced_by_its_files_in_order_without_hidden_ones) {
  for (const char* name : {"f/b.png", "f/a/2.jpg", "f/a/1.jpg", "f/.hidden", "f/.cache/c.png", "z.png"}) write(name);
  EXPECT_EQ(picture_files({path("z.png"), path("f")}),
            (Names{path("z.png"), path("f/a/1.jpg"), path("f/a/2.jpg"), path("f/b.png")}));
}

// Thumbnails of a storage system were predicted like pictures.
TEST_F(PictureFilesTest, files_of_storage_systems_are_left_out) {
  for (const char* name : {"f/a.png", "f/@eaDir/a.png/thumb.jpg", "f/__MACOSX/a.png", "f/Thumbs.db"}) write(name);
  EXPECT_EQ(picture_files({path("f")}), (Names{path("f/a.png")}));
}

TEST_F(PictureFilesTest, links_to_folders_make_no_rounds) {
  write("f/a.png");
  fs::create_directory_symlink(path("f"), path("f/again"));
  EXPECT_EQ(picture_files({path("f")}), (Names{path("f/a.png")}));
}

TEST_F(PictureFilesTest, a_list_has_a_path_on_each_line) {
  write("list", "a b.png\r\n\n/c,d.jpg\nlast");
  EXPECT_EQ(lines_of(path("list")), (Names{"a b.png", "/c,d.jpg", "last"}));
}

// Each line was a picture that is not there.
TEST_F(PictureFilesTest, a_list_with_a_nul_byte_is_named_with_its_line) {
  write("list", std::string("a.png\nb\0.png\n", 13));
  expect_error(Failure::bad_data, {}, [&] { lines_of(path("list")); });
}

TEST_F(PictureFilesTest, a_list_that_is_not_there_is_a_wrong_name) {
  const std::string message = message_of(Failure::usage, [&] { lines_of(path("none")); });
  EXPECT_NE(message.find("No such file or directory"), std::string::npos) << message;
}

}  // namespace lockstep::picture_files_test
