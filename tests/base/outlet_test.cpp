// A terminal that took nothing held up the training behind it, until its launcher killed it before its checkpoint.
#include "base/io/outlet.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <memory>
#include <string>

#include "base/io/descriptor.hpp"

namespace lockstep {
namespace {

using std::chrono::milliseconds;

struct Ends {
  Descriptor reader;
  Descriptor writer;
};

Ends a_pipe() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

Ends a_terminal() {
  int reader = -1;
  int writer = -1;
  EXPECT_EQ(::openpty(&reader, &writer, nullptr, nullptr, nullptr), 0);
  return {Descriptor(reader), Descriptor(writer)};
}

std::string line(int number) { return "line " + std::to_string(number) + std::string(90, '.') + "\n"; }

// What is there to read now, without a terminal's carriage returns.
std::string take(int reader) {
  EXPECT_EQ(::fcntl(reader, F_SETFL, O_NONBLOCK), 0);
  std::string taken;
  std::array<char, 4096> bytes{};
  for (ssize_t count = 0; (count = ::read(reader, bytes.data(), bytes.size())) > 0;) {
    taken.append(bytes.data(), static_cast<std::size_t>(count));
  }
  std::erase(taken, '\r');
  return taken;
}

std::string take_all(int reader, Outlet& outlet) {
  std::string taken;
  for (bool more = true; more;) {
    more = outlet.drain(milliseconds(0)) == EAGAIN;
    const std::string next = take(reader);
    taken += next;
  }
  return taken + take(reader);
}

class OutletTest : public testing::TestWithParam<Ends (*)()> {};

TEST_P(OutletTest, what_nobody_takes_holds_nobody_up_and_comes_whole_and_in_order_later) {
  const Ends ends = GetParam()();
  Outlet outlet(ends.writer);
  std::string expected;
  for (int number = 0; number < 2000; ++number) {  // 200 KB; a pipe has room for 64, a terminal for 4
    outlet.write(line(number));
    expected += line(number);
  }
  EXPECT_TRUE(outlet.stands_still());
  EXPECT_EQ(take_all(ends.reader, outlet), expected);
  EXPECT_FALSE(outlet.stands_still());
}

TEST_P(OutletTest, beyond_its_limit_whole_lines_are_left_out_and_counted) {
  const Ends ends = GetParam()();
  Outlet outlet(ends.writer);
  constexpr int lines = 20000;
  for (int number = 0; number < lines; ++number) outlet.write(line(number));
  const std::string taken = take_all(ends.reader, outlet);
  std::string expected;
  int number = 0;
  while (taken.compare(expected.size(), line(number).size(), line(number)) == 0) expected += line(number++);
  EXPECT_GT(expected.size(), outlet_limit - line(0).size());
  EXPECT_EQ(taken.substr(expected.size()),
            "(left out here, for nobody took them in time: " + std::to_string(lines - number) + " lines)\n");
  EXPECT_EQ(outlet.write("again\n"), 0);
  EXPECT_EQ(take(ends.reader), "again\n");
}

TEST_P(OutletTest, its_patience_ends) {
  const Ends ends = GetParam()();
  Outlet outlet(ends.writer);
  const std::string much(100000, 'x');
  EXPECT_EQ(outlet.write(much + '\n'), EAGAIN);
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(outlet.drain(milliseconds(60)), EAGAIN);
  EXPECT_GE(std::chrono::steady_clock::now() - before, milliseconds(60));
  EXPECT_TRUE(outlet.stands_still());
}

TEST_P(OutletTest, the_stream_itself_stays_as_others_share_it) {
  const Ends ends = GetParam()();
  Outlet outlet(ends.writer);
  outlet.write(std::string(100000, 'x'));
  EXPECT_EQ(::fcntl(ends.writer, F_GETFL) & O_NONBLOCK, 0);
}

TEST_P(OutletTest, it_waits_for_a_slow_reader_if_told_to) {
  const Ends ends = GetParam()();
  const std::string much = std::string(50, 'x') + '\n';
  constexpr int lines = 4000;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Outlet outlet(ends.writer);
    for (int number = 0; number < lines; ++number) outlet.write(much);
    ::_exit(outlet.drain(milliseconds(-1)) == 0 ? 0 : 1);
  }
  std::size_t taken = 0;
  while (taken < much.size() * lines) {
    ::usleep(1000);
    taken += take(ends.reader).size();
  }
  EXPECT_EQ(taken, much.size() * lines);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

INSTANTIATE_TEST_SUITE_P(streams, OutletTest, testing::Values(a_pipe, a_terminal),
                         [](const auto& stream) { return stream.index == 0 ? "pipe" : "terminal"; });

TEST(OutletFailureTest, a_reader_that_is_gone_is_an_error_and_nothing_is_kept) {
  std::signal(SIGPIPE, SIG_IGN);
  auto ends = std::make_unique<Ends>(a_pipe());
  const Descriptor writer(::dup(ends->writer));
  Outlet outlet(writer);
  EXPECT_EQ(outlet.write(std::string(100000, 'x')), EAGAIN);
  ends.reset();
  EXPECT_EQ(outlet.drain(milliseconds(-1)), EPIPE);
  EXPECT_FALSE(outlet.stands_still());
  EXPECT_EQ(outlet.write("more\n"), EPIPE);
}

TEST(OutletFailureTest, a_full_disk_is_an_error) {
  const Descriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  Outlet outlet(full);
  EXPECT_EQ(outlet.write("more\n"), ENOSPC);
  EXPECT_FALSE(outlet.stands_still());
}

}  // namespace
}  // namespace lockstep
