#include "base/text/stated_path.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace lockstep::stated_path_test {

const std::vector<StatedPath> paths = {
    {"MODEL", "m.h5"}, {"--data", "data"}, {"--stage", "data/copies/"}, {"--plan-folder", ""}};

// "cannot read 'x'" did not tell which of the files it was.
TEST(StatedPathTest, the_option_of_the_first_path_is_named) {
  EXPECT_EQ(with_option_of_path("cannot read 'm.h5': No such file.", paths),
            "cannot read 'm.h5' (MODEL): No such file.");
  EXPECT_EQ(with_option_of_path("'data' does not exist.", paths), "'data' (--data) does not exist.");
  EXPECT_EQ(with_option_of_path("'data/test/a.h5' is damaged.", paths), "'data/test/a.h5' (--data) is damaged.");
  EXPECT_EQ(with_option_of_path("'data/copies/a' and 'm.h5' differ.", paths),
            "'data/copies/a' (--stage) and 'm.h5' differ.");
}

// --output was blamed for what --resume named, since it stands before it in --help.
TEST(StatedPathTest, of_options_with_one_path_the_one_that_fits_is_named) {
  const std::vector<StatedPath> equal = {{"--output", "odd"}, {"--resume", "odd", true}, {"--data", "odd"}};
  EXPECT_EQ(with_option_of_path("'odd' is a folder.", equal), "'odd' (--resume) is a folder.");
  EXPECT_EQ(with_option_of_path("'odd/train' is missing.", equal), "'odd/train' (--output) is missing.");
  EXPECT_EQ(with_option_of_path("'odd' is in use (--output).", equal), "'odd' is in use (--output).");
}

TEST(StatedPathTest, other_messages_stay_as_they_are) {
  for (const char* message :
       {"out of memory", "cannot read '/other'", "cannot read 'data2'", "an apostrophe isn't a name",
        "'data' (--data) is empty.", "'data' is empty. Choose another --data.", "unknown model 'data' (--model)."}) {
    EXPECT_EQ(with_option_of_path(message, paths), message);
  }
}

}  // namespace lockstep::stated_path_test
