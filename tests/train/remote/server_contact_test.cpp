// The file by which trainers find their server.
#include "train/remote/server_contact.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/net/link_seal.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::server_contact_test {

namespace fs = std::filesystem;

class ServerContactTest : public testing::Test {
 protected:
  ServerContactTest() { fs::create_directory(output_); }

  const TemporaryFolder folder_;
  const fs::path output_ = folder_.path() / "run";
  const fs::path file_ = output_ / "trainers.json";
  const ServerContact contact_{{"a network", {"192.0.2.1"}}, 4711, draw_secret()};
};

TEST_F(ServerContactTest, a_trainer_finds_what_the_server_published) {
  {
    const PublishedContact published(output_, contact_);
    const FoundContact found = find_contact(output_);
    ASSERT_TRUE(found.contact.has_value()) << found.why_not;
    EXPECT_EQ(found.contact->port, 4711);
    EXPECT_EQ(found.contact->token, contact_.token);
    EXPECT_EQ(found.contact->node.addresses, contact_.node.addresses);
    EXPECT_EQ(fs::status(file_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  }
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(ServerContactTest, a_removed_or_changed_file_is_written_again) {
  PublishedContact published(output_, contact_);
  const fs::file_time_type before = fs::last_write_time(file_);
  published.renew_if_changed();
  EXPECT_EQ(fs::last_write_time(file_), before);
  for (const bool is_removed : {true, false}) {
    is_removed ? void(fs::remove(file_)) : void(std::ofstream(file_) << R"({"format": 1, "x)");
    published.renew_if_changed();
    ASSERT_TRUE(find_contact(output_).contact.has_value());
    EXPECT_EQ(find_contact(output_).contact->token, contact_.token);
    EXPECT_EQ(fs::status(file_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  }
}

TEST_F(ServerContactTest, a_removed_folder_is_not_created) {
  PublishedContact published(output_, contact_);
  fs::remove_all(output_);
  published.renew_if_changed();
  EXPECT_FALSE(fs::exists(output_));
}

}  // namespace lockstep::server_contact_test
