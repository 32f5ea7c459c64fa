// Prefetches pixels that will soon be read or written into the L2 cache while products run. Products compute from
// caches and leave memory idle; the passes before and after them wait for memory. This matters in a training step,
// where maps come from memory, and less in a bench that repeats one convolution.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace lockstep::cpu {

constexpr std::int64_t line_bytes = 64;

// Consecutive rows of a map, in some channel blocks of some images.
struct PixelRows {
  const std::byte* first = nullptr;          // first row, in the first block of the first image
  std::int64_t images = 0, image_bytes = 0;  // number of images, and bytes between them
  std::int64_t blocks = 0, block_bytes = 0;  // number of channel blocks, and bytes between them
  std::int64_t bytes = 0;                    // of the rows, in one block
};
std::int64_t lines_of(const PixelRows& rows);

// Consecutive cache lines.
struct Lines {
  const std::byte* first;
  std::int64_t count;
};

// Prefetches them. Always inlined: the compiler would take a function that does nothing else for one without effect,
// and drop its calls.
[[gnu::always_inline]] inline void fetch(const Lines& lines) {
  for (std::int64_t line = 0; line < lines.count; ++line) __builtin_prefetch(lines.first + line * line_bytes, 0, 2);
}

// The cache lines of the added rows, in order, block by block. A micro-kernel prefetches the next few lines before each
// call, which takes about as long as these lines take from memory.
class Prefetch {
 public:
  static constexpr std::size_t max_rows = 12;

  // Empty rows are ignored.
  void add(const PixelRows& rows);
  // Call when all rows are added: `calls` calls of next() will prefetch them.
  void spread_over(std::int64_t calls);
  // Empty once all lines have been returned. Always inlined, see fetch().
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
  std::size_t count_ = 0;               // of rows_
  std::size_t at_ = 0;                  // current entry of rows_
  std::int64_t image_ = 0, block_ = 0;  // current image and block in it
  const std::byte* line_ = nullptr;     // next line
  std::int64_t lines_left_ = 0;         // in the current block's rows
  std::int64_t lines_at_once_ = 1;
};

}  // namespace lockstep::cpu
