// meta.mat through its helper, which is this program itself, and libmatio on damaged files.
#include "dataset/pictures/meta_mat.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iostream>
#include <new>

#include "base/io/file.hpp"
#include "dataset/pictures/meta_mat_file.hpp"
#include "support/messages.hpp"
#include "support/mutation.hpp"
#include "support/temporary_folder.hpp"

namespace lockstep::test {
namespace {

constexpr const char* fox = "n02119789";
constexpr const char* tench = "n01440764";

class MetaMatTest : public ::testing::Test {
 protected:
  std::filesystem::path file() const { return folder_.path() / "meta.mat"; }
  void write_list(const std::vector<std::pair<double, std::string>>& synsets) const {
    std::filesystem::remove(file());
    write_meta_mat(file(), synsets);
  }
  std::string fault() const { return fault_of(read_meta_mat_by_helper(file()), Failure::bad_data); }
  std::string answer_fault(const HelperResult& answer) const {
    return fault_of(meta_mat_from(answer, file()), Failure::bad_data);
  }
  static std::string fault_of(const MetaMat& meta, Failure failure) {
    if (!meta.fault) return "no fault";
    EXPECT_EQ(meta.fault->failure(), failure);
    EXPECT_FALSE(meta.classes.has_value());
    return meta.fault->what();
  }
  TemporaryFolder folder_;
};

TEST_F(MetaMatTest, numbers_the_classes) {
  write_list({{2, tench}, {1, fox}});
  EXPECT_EQ(read_meta_mat_by_helper(file()).classes, (ClassNumbers{{1, fox}, {2, tench}}));
}

TEST_F(MetaMatTest, that_is_wrong_is_refused) {
  write_file_atomically(file(), "nothing of the kind");
  expect_message(fault(), {file().string()});
  write_list({{1, fox}, {1, tench}});
  expect_message(fault(), {file().string()});
  write_list({{1.5, fox}});
  expect_message(fault(), {file().string()});
  std::filesystem::remove(file());
  expect_message(fault_of(read_meta_mat_by_helper(file()), Failure::usage),
                 {file().string(), "No such file or directory"});
}

TEST_F(MetaMatTest, no_answer_of_the_helper_is_believed_unseen) {
  const auto printed = [](const std::string& output) { return HelperResult{output, 0, {}, false, false}; };
  EXPECT_EQ(meta_mat_from(printed("7 n02119789\nend\n"), file()).classes, (ClassNumbers{{7, fox}}));
  for (const char* const lines :
       {"0 n02119789\nend\n", "1 n0211978\nend\n", "1 n02119789\n1 n01440764\nend\n", "1\nend\n",
        "one n02119789\nend\n", "1 n02119789 fox\nend\n", "fault 1 other codes\n"}) {
    SCOPED_TRACE(lines);
    expect_message(answer_fault(printed(lines)), {file().string(), "map_clsloc.txt"});
  }
  for (const char* const lines : {"", "1 n02119789\n", "end\n"}) {
    SCOPED_TRACE(lines);
    expect_message(answer_fault(printed(lines)), {file().string(), "map_clsloc.txt"});
  }
  expect_message(answer_fault({"1 n02119789\nend\n", 1, {}, false, false}), {});
  EXPECT_EQ(answer_fault(printed("fault 65 it has\x1b[2J a fault.\n")).find('\x1b'), std::string::npos);
  expect_message(answer_fault({"", -1, SIGSEGV, false, false}), {});
  expect_message(answer_fault({"", -1, SIGKILL, true, false}), {});
  expect_message(answer_fault({"", -1, SIGKILL, false, true}), {});
}

// Memory that a child process shares.
struct SharedRound {
  std::uint64_t* round = static_cast<std::uint64_t*>(
      ::mmap(nullptr, sizeof(std::uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ~SharedRound() { ::munmap(round, sizeof *round); }
};

class DamagedMetaMatTest : public MetaMatTest {
 protected:
  DamagedMetaMatTest() {
    for (const matio_compression compression : {MAT_COMPRESSION_NONE, MAT_COMPRESSION_ZLIB}) {
      std::filesystem::remove(file());
      write_meta_mat(file(), {{1, fox}, {2, tench}}, compression);
      whole_.push_back(read_file(file(), 1 << 20));
    }
  }
  void write_damaged(std::uint64_t round) const {
    std::filesystem::remove(file());  // truncating it would wait for the disk
    std::ofstream(file(), std::ios::binary) << mutated(whole_[round % 2], round / 2);
  }
  // Reads damaged files in a child process. Returns the round that ended it; `rounds` where none did.
  std::uint64_t crash_from(std::uint64_t first, std::uint64_t rounds) const {
    const SharedRound now;
    const pid_t child = ::fork();
    if (child == 0) {
      limit_more_memory(std::size_t{64} << 20);
      for (*now.round = first; *now.round < rounds; ++*now.round) {
        ::alarm(10);
        write_damaged(*now.round);
        try {
          read_meta_mat(file());
        } catch (const Error&) {  // most of them
        } catch (const std::bad_alloc&) {
        }
      }
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return *now.round;
  }
  void expect_an_answer(std::uint64_t round) const {
    write_damaged(round);
    const MetaMat meta = read_meta_mat_by_helper(file());
    ASSERT_NE(meta.fault.has_value(), meta.classes.has_value()) << round;
    if (meta.fault) {
      EXPECT_EQ(meta.fault->failure(), Failure::bad_data) << meta.fault->what();
    }
  }
  std::vector<std::string> whole_;
};

// A truncated meta.mat ended make_shards by SIGSEGV.
TEST_F(DamagedMetaMatTest, no_damage_reaches_the_program) {
  const std::uint64_t rounds = mutation_rounds(600);
  std::uint64_t crashes = 0;
  for (std::uint64_t round = crash_from(0, rounds); round < rounds; round = crash_from(round + 1, rounds)) {
    expect_an_answer(round);
    ++crashes;
  }
  for (std::uint64_t round = 0; round < rounds; round += rounds / 30 + 1) expect_an_answer(round);
  std::cout << crashes << " of " << rounds << " damaged files crash libmatio\n";
}

}  // namespace
}  // namespace lockstep::test

int main(int argc, char** argv) {
  if (argc == 3 && argv[1] == std::string_view(lockstep::meta_mat_command)) return lockstep::print_meta_mat(argv[2]);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
