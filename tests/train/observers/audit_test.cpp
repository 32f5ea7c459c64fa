#include "train/observers/audit.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"
#include "device/cpu/cpu_device.hpp"
#include "step/model.hpp"
#include "support/messages.hpp"

namespace lockstep::audit_test {

std::string message(const std::vector<std::string>& hashes) {
  std::vector<WeightsOnRank> ranks;
  for (const std::string& hash : hashes) ranks.push_back({ranks.size() < 2 ? "n1" : "n2", hash});
  return deviation_message(ranks, 499);
}

TEST(Audit, equal_weights_need_no_words) {
  EXPECT_EQ(message({"a", "a", "a"}), "");
  EXPECT_EQ(message({"a"}), "");
}

TEST(Audit, the_rank_that_is_not_as_most_is_named) {
  expect_message(message({"a", "a", "b", "a"}), {"rank 2 on n2", "499"});
}

TEST(Audit, several_that_deviate_are_named_together) {
  expect_message(message({"a", "b", "a", "c", "a"}), {"ranks 1, 3 on n1, n2", "499"});
}

TEST(Audit, where_no_weights_are_those_of_most_all_are_named) {
  expect_message(message({"a", "b"}), {"ranks 0-1 on n1", "499"});
  expect_message(message({"a", "a", "b", "b"}), {"ranks 0-3 on n1, n2", "499"});
}

// Real ranks with a real model.
class AuditOfRanksTest : public testing::Test {
 protected:
  AuditOfRanksTest() {
    model_.store.allocate(device_->make_persistent(model_.store.gradient_buffer_count(), DType::f32));
  }

  std::string said() {
    try {
      audit_weights(world_, model_.store, 7);
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.failure(), Failure::out_of_step);
      return error.what();
    }
  }
  // Changes the last bit of one value, and nothing else.
  void change(const Tensor& values) {
    std::vector<float> one(1);
    const Tensor target = values.slice(0, 1);
    device_->read(target, one);
    one[0] += one[0] == 0.0F ? 1e-30F : one[0] * 1e-7F;
    device_->write(one, target);
  }
  // Whether `message` names this rank; of two, both are named.
  bool names(const std::string& message, int rank) const {
    const std::string who = world_.size() == 2 ? "ranks 0-1 on " : "rank " + std::to_string(rank) + " on ";
    return message.find(who + log::host()) != std::string::npos && message.find("step 7") != std::string::npos;
  }

  const Communicator world_{MPI_COMM_WORLD};
  const std::unique_ptr<Device> device_ = cpu::open_cpu_device({.threads = 1});
  Model model_{*device_, {"resnet20", {32, 32, 3}, 10}};
};

TEST_F(AuditOfRanksTest, ranks_alike_go_on) { EXPECT_EQ(said(), ""); }

TEST_F(AuditOfRanksTest, every_rank_hears_of_one_weight_that_changed_on_one) {
  if (world_.size() == 1) GTEST_SKIP() << "one rank is its own measure";
  const int last = world_.size() - 1;
  if (world_.rank() == last) change(model_.store.values());
  const std::string message = said();
  EXPECT_TRUE(names(message, last)) << message;
}

TEST_F(AuditOfRanksTest, running_statistics_count_too) {
  if (world_.size() == 1) GTEST_SKIP() << "one rank is its own measure";
  if (world_.rank() == 0) change(model_.store.running());
  const std::string message = said();
  EXPECT_TRUE(names(message, 0)) << message;
}

}  // namespace lockstep::audit_test
