#include "comm/communicator.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "comm/check_mpi.hpp"
#include "comm/processor_seconds.hpp"
#include "support/message_of.hpp"

namespace lockstep::communicator_test {

Communicator world() { return Communicator(MPI_COMM_WORLD); }

// A text that only this rank has, of a length that only this rank has; the one of rank 0 is empty.
std::string text_of(int rank) {
  return std::string(static_cast<std::size_t>(1000 * rank), static_cast<char>('a' + rank));
}

TEST(Communicator, knows_its_ranks_and_those_of_the_node) {
  const Communicator all = world();
  int rank = -1;
  int size = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  EXPECT_EQ(all.rank(), rank);
  EXPECT_EQ(all.size(), size);
  EXPECT_EQ(all.local_rank(), rank);  // tests run on one node
  EXPECT_EQ(all.local_size(), size);
}

TEST(Communicator, broadcasts_bytes_from_any_root) {
  const Communicator all = world();
  for (int root = 0; root < all.size(); ++root) {
    std::vector<std::byte> bytes(100'003, std::byte(all.rank() == root ? 7 + root : 0));
    all.broadcast(bytes, root);
    EXPECT_EQ(bytes, std::vector<std::byte>(100'003, std::byte(7 + root)));
  }
}

TEST(Communicator, broadcasts_texts_of_a_length_the_others_do_not_know) {
  const Communicator all = world();
  for (int root = 0; root < all.size(); ++root) {
    EXPECT_EQ(all.broadcast(text_of(all.rank()), root), text_of(root));
  }
}

TEST(Communicator, sums_and_finds_the_largest_value) {
  const Communicator all = world();
  EXPECT_EQ(all.sum(all.rank() + 0.5), all.size() * (all.size() - 1) / 2 + 0.5 * all.size());
  EXPECT_EQ(all.max(-all.rank()), 0);
  EXPECT_EQ(all.max(all.rank()), all.size() - 1);
}

TEST(Communicator, gathers_texts_by_rank_on_the_root_only) {
  const Communicator all = world();
  const int root = all.size() - 1;
  const std::vector<std::string> texts = all.gather(text_of(all.rank()), root);
  if (all.rank() != root) {
    EXPECT_TRUE(texts.empty());
    return;
  }
  ASSERT_EQ(texts.size(), static_cast<std::size_t>(all.size()));
  for (int rank = 0; rank < all.size(); ++rank) EXPECT_EQ(texts[static_cast<std::size_t>(rank)], text_of(rank));
}

TEST(Communicator, gathers_texts_by_rank_everywhere) {
  const Communicator all = world();
  const std::vector<std::string> texts = all.all_gather(text_of(all.rank()));
  ASSERT_EQ(texts.size(), static_cast<std::size_t>(all.size()));
  for (int rank = 0; rank < all.size(); ++rank) EXPECT_EQ(texts[static_cast<std::size_t>(rank)], text_of(rank));
}

TEST(Communicator, gathers_values_by_rank_everywhere) {
  const Communicator all = world();
  const std::vector<double> own{all.rank() + 0.25, -1.0 * all.rank(), 7};
  std::vector<double> values(own.size() * static_cast<std::size_t>(all.size()));
  all.all_gather(own, values);
  for (int rank = 0; rank < all.size(); ++rank) {
    const std::size_t first = own.size() * static_cast<std::size_t>(rank);
    EXPECT_EQ(values[first], rank + 0.25);
    EXPECT_EQ(values[first + 1], -1.0 * rank);
    EXPECT_EQ(values[first + 2], 7);
  }
}

TEST(Communicator, splits_by_color_and_orders_by_key) {
  const Communicator all = world();
  const Communicator part = all.split(all.rank() % 2, -all.rank());
  const int members = (all.size() + 1 - all.rank() % 2) / 2;
  EXPECT_EQ(part.size(), members);
  EXPECT_EQ(part.rank(), members - 1 - all.rank() / 2);
  EXPECT_EQ(part.sum(1), members);
  EXPECT_EQ(all.node().size(), all.size());
}

TEST(Communicator, copies_outlive_the_original) {
  const Communicator all = world();
  const Communicator copy = [&] {
    const Communicator original = all.split(0, all.rank());
    return original;
  }();
  EXPECT_EQ(copy.sum(1), all.size());
}

// Ranks wait for rank 0's measurement of kernels while it needs the cores they sit on.
TEST(Communicator, a_rank_that_waits_takes_no_core) {
  const Communicator all = world();
  if (all.size() == 1) GTEST_SKIP() << "one rank waits for nobody";
  all.barrier();
  const double before = processor_seconds();
  if (all.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(600));
  all.broadcast(std::string("plan"), 0);
  EXPECT_LT(processor_seconds() - before, 0.2);
}

TEST(CheckMpi, says_what_mpi_could_not_do_and_its_words) {
  int value = 0;
  const std::string message = message_of(
      Failure::other, [&] { check_mpi(MPI_Send(&value, 1, MPI_INT, 1'000'000, 0, MPI_COMM_WORLD), "send a value"); });
  for (const char* subject : {"send a value", "MPI_ERR_RANK"}) {  // what else MPI writes depends on its version
    EXPECT_NE(message.find(subject), std::string::npos) << message;
  }
}

}  // namespace lockstep::communicator_test
