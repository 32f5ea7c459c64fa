// A terminal that took nothing held up the training behind it, until its launcher killed it before its checkpoint.
#include "base/io/nonblocking_output.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <memory>
#include <string>

#include "base/io/descriptor.hpp"

namespace lockstep::nonblocking_output_test {

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

Ends a_socket() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

std::string line(int number) { return "line " + std::to_string(number) + std::string(90, '.') + "\n"; }

// What is there to read now, without a terminal's carriage returns.
std::string take_some(int reader, std::size_t most) {
  EXPECT_EQ(::fcntl(reader, F_SETFL, O_NONBLOCK), 0);
  std::string taken;
  std::array<char, 4096> bytes{};
  for (ssize_t count = 0; taken.size() < most && (count = ::read(reader, bytes.data(), bytes.size())) > 0;) {
    taken.append(bytes.data(), static_cast<std::size_t>(count));
  }
  std::erase(taken, '\r');
  return taken;
}

std::string take(int reader) { return take_some(reader, std::string::npos); }

std::string take_all(int reader, NonblockingOutput& outlet) {
  std::string taken;
  for (bool more = true; more;) {
    more = outlet.drain(no_patience) == EAGAIN;
    const std::string next = take(reader);
    taken += next;
  }
  return taken + take(reader);
}

const std::string short_line = std::string(50, 'x') + '\n';

// A process that writes so many short lines, and ends with 0 if its patience is enough for all of them.
pid_t start_writer(int writer, int lines, const WriteTimeout& patience) {
  const pid_t child = ::fork();
  EXPECT_GE(child, 0);
  if (child != 0) return child;
  NonblockingOutput outlet(writer);
  for (int number = 0; number < lines; ++number) outlet.write(short_line);
  ::_exit(outlet.drain(patience) == 0 ? 0 : 1);
}

class NonblockingOutputTest : public testing::TestWithParam<Ends (*)()> {};

TEST_P(NonblockingOutputTest, what_nobody_takes_holds_nobody_up_and_comes_whole_and_in_order_later) {
  const Ends ends = GetParam()();
  NonblockingOutput outlet(ends.writer);
  std::string expected;
  for (int number = 0; number < 2000; ++number) {  // 200 KB; a pipe has room for 64, a terminal for 4
    outlet.write(line(number));
    expected += line(number);
  }
  EXPECT_TRUE(outlet.has_pending());
  EXPECT_EQ(take_all(ends.reader, outlet), expected);
  EXPECT_FALSE(outlet.has_pending());
}

TEST_P(NonblockingOutputTest, beyond_its_limit_whole_lines_are_left_out_and_counted) {
  const Ends ends = GetParam()();
  NonblockingOutput outlet(ends.writer);
  constexpr int lines = 20000;
  for (int number = 0; number < lines; ++number) outlet.write(line(number));
  const std::string taken = take_all(ends.reader, outlet);
  std::string expected;
  int number = 0;
  while (taken.compare(expected.size(), line(number).size(), line(number)) == 0) expected += line(number++);
  EXPECT_GT(expected.size(), outlet_limit - line(0).size());
  const std::string note = taken.substr(expected.size());
  EXPECT_NE(note.find(std::to_string(lines - number)), std::string::npos) << note;
  EXPECT_EQ(std::ranges::count(note, '\n'), 1) << note;
  EXPECT_EQ(outlet.write("again\n"), 0);
  EXPECT_EQ(take(ends.reader), "again\n");
}

// The number of what was left out stood thousands of lines later.
TEST_P(NonblockingOutputTest, the_count_stands_where_lines_are_left_out) {
  const Ends ends = GetParam()();
  NonblockingOutput outlet(ends.writer);
  int number = 0;
  for (; number < 20000; ++number) outlet.write(line(number));
  const std::string first = take(ends.reader);
  for (; number < 20010; ++number) outlet.write(line(number));
  const std::string taken = first + take_all(ends.reader, outlet);
  const std::size_t gap = taken.find("\n(");
  ASSERT_NE(gap, std::string::npos);
  EXPECT_EQ(taken.find("\n(", gap + 2), std::string::npos) << "one gap";
  EXPECT_EQ(taken.substr(taken.find('\n', gap + 1) + 1), [&] {
    std::string last;
    for (int late = 20000; late < number; ++late) last += line(late);
    return last;
  }());
}

// A second was all that a program which ended left its reader, however busily that read.
TEST_P(NonblockingOutputTest, its_patience_begins_anew_as_long_as_something_is_read) {
  const Ends ends = GetParam()();
  constexpr int lines = 20000;
  const pid_t child = start_writer(ends.writer, lines, {milliseconds(1000), milliseconds(60000)});
  const auto begin = std::chrono::steady_clock::now();
  std::size_t taken = 0;
  while (taken < short_line.size() * lines && ::waitpid(child, nullptr, WNOHANG) == 0) {
    ::usleep(20000);
    taken += take_some(ends.reader, 16384).size();
  }
  taken += take(ends.reader).size();
  EXPECT_GT(std::chrono::steady_clock::now() - begin, milliseconds(1000));
  EXPECT_EQ(taken, short_line.size() * lines);
}

TEST_P(NonblockingOutputTest, its_patience_ends) {
  const Ends ends = GetParam()();
  NonblockingOutput outlet(ends.writer);
  const std::string much(1000000, 'x');  // more than any of them has room for
  EXPECT_EQ(outlet.write(much + '\n'), EAGAIN);
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(outlet.drain({milliseconds(60), milliseconds(1000)}), EAGAIN);
  EXPECT_GE(std::chrono::steady_clock::now() - before, milliseconds(60));
  EXPECT_TRUE(outlet.has_pending());
}

TEST_P(NonblockingOutputTest, the_stream_itself_stays_as_others_share_it) {
  const Ends ends = GetParam()();
  NonblockingOutput outlet(ends.writer);
  outlet.write(std::string(100000, 'x'));
  EXPECT_EQ(::fcntl(ends.writer, F_GETFL) & O_NONBLOCK, 0);
}

TEST_P(NonblockingOutputTest, it_waits_for_a_slow_reader_if_told_to) {
  const Ends ends = GetParam()();
  constexpr int lines = 4000;
  const pid_t child = start_writer(ends.writer, lines, endless_patience);
  std::size_t taken = 0;
  while (taken < short_line.size() * lines) {
    ::usleep(1000);
    taken += take(ends.reader).size();
  }
  EXPECT_EQ(taken, short_line.size() * lines);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// A pipe or a terminal that a user may write to and not open: behind su, or sudo -u.
TEST_P(NonblockingOutputTest, another_users_holds_nobody_up) {
  if (::geteuid() != 0) GTEST_SKIP() << "to become another user wants root";
  const Ends ends = GetParam()();
  std::array<int, 2> filled{};  // closed when the child has written all
  ASSERT_EQ(::pipe2(filled.data(), O_CLOEXEC), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(20);  // ends one that is held up
    constexpr uid_t nobody = 65534;
    if (::setresuid(nobody, nobody, nobody) != 0) ::_exit(2);
    NonblockingOutput outlet(ends.writer);
    for (int number = 0; number < 5000; ++number) outlet.write(line(number));
    if (!outlet.has_pending()) ::_exit(3);
    ::close(filled[1]);
    ::_exit(outlet.drain({milliseconds(3000), milliseconds(60000)}) == 0 ? 0 : 4);
  }
  std::string expected;
  for (int number = 0; number < 5000; ++number) expected += line(number);
  ::close(filled[1]);
  char none = 0;
  ASSERT_EQ(::read(filled[0], &none, 1), 0);
  ::close(filled[0]);
  std::string taken;
  int status = -1;
  while (::waitpid(child, &status, WNOHANG) == 0) taken += take(ends.reader);
  taken += take(ends.reader);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(taken, expected);
}

std::string stream_name(const testing::TestParamInfo<Ends (*)()>& stream) {
  if (stream.param == a_socket) return "socket";
  return stream.param == a_pipe ? "pipe" : "terminal";
}

INSTANTIATE_TEST_SUITE_P(streams, NonblockingOutputTest, testing::Values(a_pipe, a_terminal, a_socket), stream_name);

TEST(OutletFailureTest, a_reader_that_is_gone_is_an_error_and_nothing_is_kept) {
  std::signal(SIGPIPE, SIG_IGN);
  auto ends = std::make_unique<Ends>(a_pipe());
  const Descriptor writer(::dup(ends->writer));
  NonblockingOutput outlet(writer);
  EXPECT_EQ(outlet.write(std::string(100000, 'x')), EAGAIN);
  ends.reset();
  EXPECT_EQ(outlet.drain(endless_patience), EPIPE);
  EXPECT_FALSE(outlet.has_pending());
  EXPECT_EQ(outlet.write("more\n"), EPIPE);
}

TEST(OutletFailureTest, a_full_disk_is_an_error) {
  const Descriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  NonblockingOutput outlet(full);
  EXPECT_EQ(outlet.write("more\n"), ENOSPC);
  EXPECT_FALSE(outlet.has_pending());
}

}  // namespace lockstep::nonblocking_output_test
