#include "base/log_scope.hpp"

#include <gtest/gtest.h>

#include "base/log.hpp"

namespace lockstep::log_scope_test {

class VoiceTest : public testing::Test {
 protected:
  VoiceTest() { log::set_identity(2, "gpu07"); }
  ~VoiceTest() override { log::set_identity(0, "localhost"); }
  static std::string told() {
    testing::internal::CaptureStdout();
    log::info("loss 2.3");
    return testing::internal::GetCapturedStdout();
  }
};

TEST_F(VoiceTest, the_first_rank_of_a_training_speaks_for_it_with_its_label_and_its_rank_in_the_job) {
  EXPECT_EQ(told(), "");
  {
    const log::LogScope voice(0, "trial 3");
    EXPECT_EQ(told(), "[rank 2, gpu07, trial 3]  loss 2.3\n");
    EXPECT_FALSE(log::is_terminal()) << "two live lines on one terminal";
  }
  EXPECT_EQ(told(), "");
  EXPECT_EQ(log::job_rank(), 2);
}

TEST_F(VoiceTest, the_others_are_silent_and_without_a_label_lines_are_as_ever) {
  log::set_identity(0, "gpu07");
  {
    const log::LogScope voice(1, "");
    EXPECT_EQ(told(), "");
  }
  const log::LogScope voice(0, "");
  EXPECT_EQ(told(), "[rank 0, gpu07]  loss 2.3\n");
}

}  // namespace lockstep::log_scope_test
