#include "device/cpu/products/prefetch.hpp"

#include <algorithm>
#include <cassert>

#include "device/cpu/layout/cpu_layout.hpp"

namespace lockstep::cpu {

std::int64_t lines_of(const PixelRows& rows) { return rows.images * rows.blocks * ceil_div(rows.bytes, line_bytes); }

void Prefetch::add(const PixelRows& rows) {
  if (lines_of(rows) == 0) return;
  assert(count_ < max_rows);
  rows_[count_++] = rows;
  if (count_ == 1) begin_run();
}

void Prefetch::spread_over(std::int64_t calls) {
  std::int64_t lines = 0;
  for (std::size_t i = 0; i < count_; ++i) lines += lines_of(rows_[i]);
  lines_at_once_ = ceil_div(lines, std::max<std::int64_t>(calls, 1));
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

}  // namespace lockstep::cpu
