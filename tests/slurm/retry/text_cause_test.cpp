#include "slurm/retry/text_cause.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "support/mutation.hpp"

namespace lockstep::text_cause_test {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}
std::string repeated(const std::string& line, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += line;
  return text;
}
// Python's, with an exception of these words.
std::string traceback(const std::string& exception) {
  return "Traceback (most recent call last):\n  File \"train.py\", line 7, in <module>\n    main()\n" + exception +
         "\n";
}
std::string cause_of(const std::string& text, int code = 1) {
  const std::optional<TextCause> found = find_text_cause(code, lines_of(text));
  if (!found) return "none";
  EXPECT_EQ(cause_in_line(found->line), found->cause) << found->line;
  return row_of(found->cause).name;
}

const std::string missing = "ModuleNotFoundError: No module named 'apex'";
const std::string full = "OSError: [Errno 28] No space left on device: '/scratch/x'";

struct Case {
  const char* cause;
  std::string text;
  int code = 1;
};

TEST(TextCauseTest, the_error_that_ended_the_program_is_found) {
  const std::vector<Case> cases = {
      {"import_error", traceback(missing)},
      {"import_error", traceback("ImportError: libcudart.so.10: cannot open shared object file: No such file")},
      {"import_error", traceback("mmcv.utils.ImportError")},
      {"import_error", "/usr/bin/python3.6: No module named torch.distributed.launch\n"},
      {"out_of_memory", traceback("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 15.78 GiB)")},
      {"out_of_memory", traceback("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.")},
      {"out_of_memory", traceback("RuntimeError: CUDA error: out of memory\nCompile with `TORCH_USE_CUDA_DSA`.")},
      {"out_of_memory", traceback("RuntimeError: cuda runtime error (2) : out of memory at THCStorage.cu:58")},
      {"out_of_memory",
       "terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA out of memory. Tried to "
       "allocate\n" +
           repeated("frame #0: c10::Error::Error(c10::SourceLocation)\n", 40),
       134},
      {"out_of_memory", "CUDA error at main.cu:40: out of memory\n"},
      {"driver_too_old", traceback("RuntimeError: CUDA error: CUDA driver version is insufficient for CUDA runtime")},
      {"driver_too_old", traceback("AssertionError: \nThe NVIDIA driver on your system is too old\n(found 9000).")},
      {"driver_too_old",
       "cudaGetDeviceCount returned 35\n-> CUDA driver version is insufficient for CUDA runtime version\n"},
      {"disk_full", traceback(full)},
      {"disk_full", "cp: error writing 'x/y': No space left on device\n"},
      {"disk_full", "tar: data: Cannot write: No space left on device\ntar: Error is not recoverable: exiting now\n",
       2 + 40},
  };
  for (const Case& one : cases) EXPECT_EQ(cause_of(one.text, one.code), one.cause) << one.text;
}

TEST(TextCauseTest, launchers_and_other_processes_say_more_after_the_error) {
  const std::string elastic =
      repeated("[2026-11-26] torch.distributed.elastic: [ERROR] failed (exitcode: 1)\n", 3) +
      traceback("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n" + repeated("====\n", 30));
  EXPECT_EQ(cause_of(traceback(missing) + elastic), "import_error");
  EXPECT_EQ(
      cause_of("[rank0]: Traceback (most recent call last):\n[rank0]:   File \"a.py\", line 1\n[rank0]: " + missing),
      "import_error");
  EXPECT_EQ(cause_of("[1,0]<stderr>:Traceback (most recent call last):\n[1,0]<stderr>:  File \"a\"\n[1,0]<stderr>:" +
                     missing),
            "import_error");
  EXPECT_EQ(cause_of("  5%|#    | 1/20\r 10%|##   | 2/20\rcp: writing: No space left on device\r\n"), "disk_full");
  EXPECT_EQ(cause_of(traceback(full) + repeated("srun: error: n1: task 0: Exited with exit code 1\n", 15) +
                     repeated("slurmstepd-n1: error: *** STEP 1.0 ON n1 CANCELLED AT now ***\n", 15)),
            "disk_full");
  const std::string during = "\nDuring handling of the above exception, another exception occurred:\n\n";
  EXPECT_EQ(cause_of(traceback(full) + during + traceback("RuntimeError: file write failed")), "disk_full");
  EXPECT_EQ(cause_of(traceback(missing) + "\nThe above exception was the direct cause of the following exception:\n\n" +
                     traceback("RuntimeError: install apex first")),
            "import_error");
}

// Each of these would have ended a job, or excluded a node, for something that had not ended the program.
TEST(TextCauseTest, what_the_program_has_handled_or_only_mentions_is_no_cause) {
  const std::string epoch = "Epoch [1/2], Step [1/125], Loss: 2.3026\n";
  const std::string other = traceback("ValueError: shapes (3,) and (4,) do not match");
  const std::vector<Case> cases = {
      {"none", "cp: cache: No space left on device\n" + repeated(epoch, 500)},
      {"none", "cp: cache: No space left on device\n" + repeated(epoch, 21)},
      {"none", traceback(missing) + repeated(epoch, 21)},
      {"none", traceback(missing) + other},
      {"none", "cp: cache: No space left on device\n" + other},
      {"none", "WARNING: checkpoint skipped: No space left on device\nsegmentation fault\n"},
      {"none", "UserWarning: CUDA initialization: The NVIDIA driver on your system is too old\nbad option\n"},
      {"none", "test_disk.py::test[No space left on device] PASSED\nFAILED (failures=1)\n"},
      {"none", "[ RUN      ] Disk.No space left on device\n[  FAILED  ] Disk.other\n"},
      {"none", "test_no_space: No space left on device ... ok\nFAILED (failures=1)\n"},
      {"none", traceback("AssertionError: expected 'No space left on device'")},
      {"none", "ImportError: no tensorboard, metrics go to a file\n"},
      {"none", "caught ModuleNotFoundError: No module named 'apex'\n"},
      {"none", "retry after CUDA out of memory with half of the batch\n"},
      {"none", "Traceback (most recent call last):\n  File \"a.py\", line 1\n"},
      {"none", ""},
  };
  for (const Case& one : cases) EXPECT_EQ(cause_of(one.text, one.code), one.cause) << one.text;
}

TEST(TextCauseTest, a_task_that_others_ended_or_whose_code_says_more_has_no_cause_in_its_text) {
  for (const int code : {137, 143, 130, 2, 70, 71, 75, 76, 127, 0}) EXPECT_EQ(cause_of(traceback(full), code), "none");
  for (const int code : {1, 3, 134, 139, 255}) EXPECT_EQ(cause_of(traceback(full), code), "disk_full");
}

TEST(TextCauseTest, any_text_is_read) {
  const std::string text = traceback(missing) +
                           "\nDuring handling of the above exception, another exception occurred:\n" +
                           traceback("AssertionError: \n[rank0]: x");
  for (std::uint64_t round = 0; round < mutation_rounds(100); ++round) cause_of(mutated(text, round));
}

}  // namespace lockstep::text_cause_test
