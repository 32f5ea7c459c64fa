// Brings pixels that will soon be read or written into the L2 cache while products run. Products compute from caches
// and leave memory idle; what comes before and after them waits for it: in a training step, unlike in a bench that
// repeats one convolution, maps come from memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace lockstep::cpu {

constexpr std::int64_t line_bytes = 64;

// Rows of a map that follow each other, in some channel blocks of some images.
struct PixelRows {
  const std::byte* first = nullptr;
  std::int64_t images = 0, image_bytes = 0;  // from one to the next, as of blocks
  std::int64_t blocks = 0, block_bytes = 0;
  std::int64_t bytes = 0;  // of the rows of one block
};
std::int64_t lines_of(const PixelRows& rows);

// Consecutive lines.
struct Lines {
  const std::byte* first;
  std::int64_t count;
};

// Asks for them. Inlined, for the compiler takes a function that does nothing else for one without effect, and leaves
// out calls of it.
[[gnu::always_inline]] inline void fetch(const Lines& lines) {
  for (std::int64_t line = 0; line < lines.count; ++line) __builtin_prefetch(lines.first + line * line_bytes, 0, 2);
}

// Lines in the order in which rows are added, of one block after another. A micro-kernel asks for the next few before
// each of its calls, which takes about as long as these take from memory.
class Prefetch {
 public:
  static constexpr std::size_t max_rows = 12;

  // Of no bytes: nothing is added.
  void add(const PixelRows& rows);
  // When all are added: so many calls of next() are about to ask for them.
  void spread_over(std::int64_t calls);
  // None where all have been asked for. Inlined as above.
  [[gnu::always_inline]] Lines next() {
    const Lines lines{line_, lines_at_once_ < lines_left_ ? lines_at_once_ : lines_left_};
    line_ += lines.count * line_bytes;
    lines_left_ -= lines.count;
    if (lines_left_ == 0 && at_ < count_) end_run();
    return lines;
  }

 private:
  void begin_run();
  void end_run();

  std::array<PixelRows, max_rows> rows_;
  std::size_t count_ = 0;
  std::size_t at_ = 0;
  std::int64_t image_ = 0, block_ = 0;
  const std::byte* line_ = nullptr;
  std::int64_t lines_left_ = 0;  // of a block's rows
  std::int64_t lines_at_once_ = 1;
};

}  // namespace lockstep::cpu
