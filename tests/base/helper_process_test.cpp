// A helper, which is this program itself, under each of its limits.
#include "base/helper_process.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <string_view>

#include "support/temporary_folder.hpp"

namespace lockstep {
namespace {

TEST(HelperProcess, prints_and_ends_with_a_code) {
  const HelperResult result = run_helper({"--say", "$(touch hurt) \"x\""});
  EXPECT_EQ(result.output, "$(touch hurt) \"x\"");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_FALSE(result.signal.has_value());
}

TEST(HelperProcess, a_crash_ends_the_helper_alone) {
  const HelperResult result = run_helper({"--crash"});
  EXPECT_EQ(result.signal, SIGKILL);
  EXPECT_EQ(result.exit_code, -1);
}

TEST(HelperProcess, is_ended_where_it_takes_too_long_or_prints_too_much) {
  HelperLimits limits;
  limits.seconds = 1;
  EXPECT_TRUE(run_helper({"--sleep"}, limits).took_too_long);
  limits.seconds = 60;
  limits.output = 10'000;
  const HelperResult flood = run_helper({"--flood"}, limits);
  EXPECT_TRUE(flood.printed_too_much);
  EXPECT_LT(flood.output.size(), 20'000U);
}

TEST(HelperProcess, gets_no_memory_beyond_its_limit_and_writes_no_file) {
  EXPECT_EQ(run_helper({"--take"}).output, "refused");
  const TemporaryFolder folder;
  EXPECT_EQ(run_helper({"--write", folder.path() / "file"}).exit_code, 1);
}

int help(std::string_view task, const char* word) {
  confine_helper();
  if (task == "--say") {
    std::fputs(word, stdout);
    return 3;
  }
  if (task == "--crash") ::raise(SIGKILL);  // which no sanitizer answers
  if (task == "--sleep") ::sleep(60);
  while (task == "--flood") std::puts("again and again");
  if (task == "--take") {
    const void* const memory =
        ::mmap(nullptr, std::size_t{1} << 32, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    std::fputs(memory == MAP_FAILED ? "refused" : "given", stdout);
  }
  if (task == "--write") {
    std::signal(SIGXFSZ, SIG_IGN);
    return (std::ofstream(word) << "text").flush() ? 0 : 1;
  }
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  if (argc >= 2 && !std::string_view(argv[1]).starts_with("--gtest")) return lockstep::help(argv[1], argv[argc - 1]);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
