// Ten thousand connections at rank 0's door, with few files to open.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <fstream>
#include <optional>
#include <thread>

#include "support/network/door.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::crowd_test {

using namespace std::chrono_literals;

void allow_files(rlim_t most) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = most;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
}

// They took all files that the process may have open, and its watcher went round and round.
TEST(Crowd, ten_thousand_connections_keep_nobody_out_and_take_no_files) {
  allow_files(256);
  Door door;
  UnauthenticatedPeers unauthenticated(door.port(), 15, {"stay", "stay", "stay", "stay", "stay", "hello"});
  ASSERT_TRUE(door.fills(8));
  const TemporaryFolder folder;
  const Stopwatch watch;
  int came_in = 0;
  while (watch.seconds() < 12) {
    came_in += connect_to_node({"127.0.0.1"}, door.port(), door.token(), 10s) ? 1 : 0;
    std::ofstream file(folder.path() / "model.h5");
    EXPECT_TRUE(file.put('x').flush().good()) << "no file is left for a model";
    std::this_thread::sleep_for(300ms);
  }
  EXPECT_GT(came_in, 5);
  const UnauthenticatedPeers::Told told = unauthenticated.wait();
  EXPECT_GT(told.connections, 10'000);
  EXPECT_GT(told.answers, 0);
  EXPECT_LE(door.max_unauthenticated(), 32U);
}

}  // namespace lockstep::crowd_test
