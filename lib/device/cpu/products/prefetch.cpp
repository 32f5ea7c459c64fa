#include "device/cpu/products/prefetch.hpp"

#include <algorithm>
#include <cassert>

#include "device/cpu/layout/cpu_layout.hpp"

namespace lockstep::cpu {

std::int64_t lines_of(const PixelRows& rows) { return rows.images * rows.blocks * ceil_div(rows.bytes, line_bytes); }

Prefetch::Prefetch(std::span<PixelRows> all, std::int64_t calls) {
  std::int64_t lines = 0;
  for (const PixelRows& rows : all) lines += lines_of(rows);
  for (PixelRows& rows : all) {
    rows.lines_at_once = ceil_div(lines, std::max<std::int64_t>(calls, 1));
    add(rows);
  }
}

void Prefetch::add(const PixelRows& rows) {
  if (lines_of(rows) == 0) return;
  assert(count_ < most_rows && rows.lines_at_once > 0);
  rows_[count_++] = rows;
  if (count_ == 1) begin_run();
}

void Prefetch::begin_run() {
  const PixelRows& rows = rows_[at_];
  line_ = rows.first + image_ * rows.image_bytes + block_ * rows.block_bytes;
  lines_left_ = ceil_div(rows.bytes, line_bytes);
}

void Prefetch::end_run() {
  const PixelRows& rows = rows_[at_];
  if (++block_ == rows.blocks) {
    block_ = 0;
    if (++image_ == rows.images) {
      image_ = 0;
      ++at_;
    }
  }
  if (at_ < count_) begin_run();
}

Lines Prefetch::next() {
  if (at_ == count_) return {nullptr, 0};
  const Lines lines{line_, std::min(rows_[at_].lines_at_once, lines_left_)};
  line_ += lines.count * line_bytes;
  lines_left_ -= lines.count;
  if (lines_left_ == 0) end_run();
  return lines;
}

}  // namespace lockstep::cpu
