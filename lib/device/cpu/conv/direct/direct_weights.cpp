// Direct backward-weight. Algorithm and data layout: direct_weights.hpp.
#include "device/cpu/conv/direct/direct_weights.hpp"

#include <algorithm>
#include <array>
#include <cassert>

#include "device/cpu/instruction_sets/loops.hpp"
#include "device/cpu/threads/parallel.hpp"

namespace lockstep::cpu {
namespace {

constexpr std::int64_t weight_items_wanted = 32;   // enough for the threads of a rank
constexpr std::int64_t rows_wanted = 128;          // sums per range: fewer do not pay for packing a band
constexpr std::int64_t tile_rows_wanted = 512;     // likewise, for AMX, whose products take less time
constexpr std::int64_t max_out_channels = 512;     // per item: more sums and dy would exceed the L2 cache
constexpr std::int64_t dy_bytes = 20 << 10;        // per band, for a tile's vectors: stays in the L1 cache
constexpr std::int64_t tile_band_bytes = 1 << 20;  // of packed x and dy: processors with AMX have an L2 cache of 2 MB
constexpr std::int64_t tile_terms = 16;

// Blocks per range: nearly equal ranges of at least one block.
std::int64_t blocks_of_range(std::int64_t blocks, std::int64_t rows_of_block, std::int64_t wanted) {
  const std::int64_t most = ceil_div(wanted, rows_of_block);
  return ceil_div(blocks, ceil_div(blocks, most));
}

// The largest number of equal ranges up to `wanted` that divides the blocks.
std::int64_t equal_ranges(std::int64_t blocks, std::int64_t wanted) {
  std::int64_t ranges = std::clamp<std::int64_t>(wanted, 1, blocks);
  while (blocks % ranges != 0) --ranges;
  return ranges;
}

// Pairs of images in a set: as many as make a tile's terms, unless fewer leave less of the tiles empty.
std::int64_t pairs_of_set(std::int64_t images, std::int64_t width) {
  const auto terms = [&](std::int64_t pairs) {
    return ceil_div(images, 2 * pairs) * ceil_div(width * pairs, tile_terms);
  };
  std::int64_t best = tile_terms;
  for (std::int64_t pairs = best / 2; pairs > 0; pairs /= 2) {
    if (terms(pairs) < terms(best)) best = pairs;
  }
  return best;
}

}  // namespace

struct DirectWeights::Job {
  const ConvCall& call;
  const std::byte* dy;  // after the deferred batch-norm backward, if there is one
  std::byte* scratch;
  bool sums_in_place;  // sums are stored in dweight directly
  bool packs;          // x is packed first
  const std::vector<WeightTables>& tables;
};

struct DirectWeights::Range {
  int thread;
  std::int64_t piece;
  std::int64_t index;  // of input blocks
  std::int64_t out;    // range of output blocks
};

DirectWeights::DirectWeights(const ConvProblem& problem, const KernelTarget& target)
    : problem_(problem),
      target_(target),
      loops_(loops_of(target.set).products),
      weights_(problem.conv, static_cast<int>(loops_.lanes)),
      x_(input_operand(problem, loops_.lanes)),
      dy_(output_operand(problem, loops_.lanes)),
      pairs_(multiplies_pairs(problem, target)),
      axes_(forward_axes(problem.conv)),
      packed_axes_(packed_axes(axes_)),
      dy_pairs_(dy_pairs()),
      x_pairs_(x_pairs()),
      range_blocks_(blocks_of_range(x_.blocks(), weights_.window * weights_.rows,
                                    multiplies_tiles(problem, target) ? tile_rows_wanted : rows_wanted)),
      ranges_(ceil_div(x_.blocks(), range_blocks_)),
      out_ranges_(equal_ranges(dy_.blocks(), ceil_div(dy_.blocks() * dy_.lanes, max_out_channels))),
      bands_(make_bands(ceil_div(problem.n, images_of_set()), dy_.height, dy_.width, band_pixels(), 1)),
      pieces_(std::clamp<std::int64_t>(ceil_div(weight_items_wanted, ranges_ * out_ranges_), 1, std::ssize(bands_))) {
  make_tables();
  sums_at_ = plan_.take_floats_each(pieces_, weights_.count());
  x_at_ = plan_.take_floats_each(target.threads, x_floats_);
  dy_at_ = plan_.take_floats_each(target.threads, dy_floats_);
}

ImagePairs DirectWeights::dy_pairs() const {
  if (!multiplies_tiles(problem_, target_)) return {1, 1, dy_.width, loops_.lanes, ImagePairs::Order::by_pixels};
  const std::int64_t pairs = pairs_of_set(problem_.n, dy_.width);
  const std::int64_t columns = ceil_div(dy_.width * pairs, tile_terms) * tile_terms / pairs;
  return {pairs, 1, columns, loops_.lanes, ImagePairs::Order::by_pixels};
}

// By channels, the rows of an AMX tile are channels and the terms lie in a row.
ImagePairs DirectWeights::x_pairs() const {
  if (!multiplies_tiles(problem_, target_)) {
    return {1, 1, source_span(packed_axes_.columns, dy_.width).count, loops_.lanes, ImagePairs::Order::by_pixels};
  }
  const std::int64_t parts = packed_axes_.columns.advance;
  const std::int64_t columns = dy_pairs_.columns + (problem_.conv.kernel.width - 1) / parts;
  return {dy_pairs_.pairs, parts, columns, loops_.lanes, ImagePairs::Order::by_channels};
}

// Pixels of one set, or of one image.
std::int64_t DirectWeights::band_pixels() const {
  if (multiplies_tiles(problem_, target_)) {
    const std::int64_t blocks = dy_.blocks() / out_ranges_ + range_blocks_;
    const std::int64_t bytes = dy_pairs_.pairs * loops_.lanes * size_of(DType::f32) * blocks;  // of a pixel
    return std::max<std::int64_t>(tile_band_bytes / bytes, 1);
  }
  return dy_bytes / (loops_.max_vectors * loops_.lanes * size_of(DType::f32));
}

Band DirectWeights::images_of(const Band& band) const { return cpu::images_of(band, images_of_set(), problem_.n); }

void DirectWeights::make_tables() {
  const bool reads_in_place =
      x_.is_readable() && !packed_axes_.skips_pixels() && reads_inside(axes_, dy_.height, dy_.width, x_);
  for (const Band& band : {bands_.front(), bands_.back()}) {
    for (const std::int64_t range : {std::int64_t{0}, ranges_ - 1}) {
      const std::int64_t first = range * range_blocks_;
      const OperandBand x = x_of(band, first, blocks_of(range));
      const PixelStrides packed = x_strides(x);
      x_floats_ = std::max(x_floats_, band.images * packed.image);
      packed_.push_back(tables_of(band, x, packed, packed_axes_));
      if (reads_in_place) in_place_.push_back(tables_of(band, x, x_.strides(), axes_));
    }
    if (!dy_.is_readable()) dy_floats_ = std::max(dy_floats_, band.images * dy_strides(band).image);
  }
}

std::int64_t DirectWeights::blocks_of(std::int64_t range) const {
  return std::min(range_blocks_, x_.blocks() - range * range_blocks_);
}

OperandBand DirectWeights::x_of(const Band& band, std::int64_t first_block, std::int64_t blocks) const {
  return source_band(packed_axes_, images_of(band), dy_.width, x_, first_block, blocks);
}

OperandBand DirectWeights::dy_of(const Band& band, std::int64_t out_range) const {
  const Span rows{band.first_row, band.rows};
  const PlaneWindow window = window_of(dy_.height, dy_.width, rows, {0, dy_.width}, {1, 1});
  const std::int64_t blocks = dy_.blocks() / out_ranges_;
  const Band images = images_of(band);
  return {images.first_image, images.images, out_range * blocks, blocks, window};
}

PixelStrides DirectWeights::x_strides(const OperandBand& x) const {
  return pairs_ ? x_pairs_.strides(x) : x.packed_strides(x_);
}

PixelStrides DirectWeights::dy_strides(const Band& band) const {
  if (dy_.is_readable()) return dy_.strides();
  const OperandBand dy = dy_of(band, 0);
  return pairs_ ? dy_pairs_.strides(dy) : dy.packed_strides(dy_);
}

WeightTables DirectWeights::tables_of(const Band& band, const OperandBand& read, const PixelStrides& x,
                                      const Axes& axes) const {
  WeightTables tables;
  const bool by_channels = pairs_ && x_pairs_.order == ImagePairs::Order::by_channels;
  tables.left_step = by_channels ? 1 : axes.columns.advance * x_.block_words();
  const std::int64_t row_advance = axes.rows.advance * x.row;
  const std::int64_t kernel = problem_.conv.kernel.width;
  const std::int64_t parts = x_pairs_.parts;
  const auto first_term = [&](std::int64_t block, std::int64_t row, std::int64_t column) {
    return block * x.block + column % parts * x_pairs_.part_stride(read) + x.pixel(row, column / parts);
  };
  const std::int64_t channel_stride = pairs_ ? x_pairs_.channel_stride(read) : 1;
  for (std::int64_t block = 0; block < read.blocks; ++block) {
    for (std::int64_t tap = 0; tap < weights_.window; ++tap) {
      for (std::int64_t channel = 0; channel < x_.channels_in(read.first_block + block); ++channel) {
        tables.left_offsets.push_back(first_term(block, tap / kernel, tap % kernel) + channel * channel_stride);
        tables.out_offsets.push_back(((block * weights_.window + tap) * weights_.rows + channel) * weights_.lanes);
      }
    }
  }
  const PixelStrides dy = dy_strides(band);
  const std::int64_t steps = pairs_ ? dy_pairs_.columns * dy_pairs_.pairs : dy_.width;
  for (std::int64_t image = 0; image < band.images; ++image) {
    for (std::int64_t row = 0; row < band.rows; ++row) {
      const std::int64_t left = image * x.image + row * row_advance;
      const std::int64_t right = image * dy.image + row * dy.row;
      // If x has no gap between rows, they form one segment.
      if (row > 0 && row_advance == steps * tables.left_step) {
        tables.segments.back().steps += steps;
      } else {
        tables.segments.push_back({left, right, steps});
      }
    }
  }
  return tables;
}

void DirectWeights::run(const ConvCall& call, std::byte* scratch) {
  assert(call.sums == nullptr && call.mask_x == nullptr);
  const bool packs = in_place_.empty() || call.x_norm != nullptr;
  const bool sums_in_place = pieces_ == 1 && call.accumulate == Accumulate::overwrite;
  const std::byte* const dy = call.dy_norm != nullptr ? call.dy_norm->dx : call.operands[1];
  const Job job{call, dy, scratch, sums_in_place, packs, packs ? packed_ : in_place_};
  if (call.dy_norm != nullptr && !computes_dy(job)) {
    parallel_for(target_.threads, std::ssize(bands_) * out_ranges_, [&](std::int64_t item) {
      compute_dy(job, dy_of(bands_[static_cast<std::size_t>(item / out_ranges_)], item % out_ranges_));
    });
  }
  parallel_pieces(target_.threads, pieces_ * out_ranges_ * ranges_, [&](int thread, std::int64_t item) {
    const std::int64_t of_all_rows = item / ranges_;  // neighboring items read the same pixels of dy
    compute_range(job, {thread, of_all_rows / out_ranges_, item % ranges_, of_all_rows % out_ranges_});
  });
  if (!sums_in_place) add_pieces(job);
}

void DirectWeights::compute_range(const Job& job, const Range& range) const {
  const std::int64_t bands = std::ssize(bands_);
  const std::int64_t first = cut(bands, pieces_, range.piece);
  for (std::int64_t i = first; i < cut(bands, pieces_, range.piece + 1); ++i) {
    const Band& band = bands_[static_cast<std::size_t>(i)];
    const OperandBand x = x_of(band, range.index * range_blocks_, blocks_of(range.index));
    if (job.packs) pack_x(job, range.thread, x);
    const OperandBand dy = dy_of(band, range.out);
    if (computes_dy(job)) compute_dy(job, dy);
    if (!dy_.is_readable()) pack_dy(job, range.thread, dy);
    multiply(job, range, i, i == first ? Accumulate::overwrite : Accumulate::add);
  }
}

// Whether dy is computed band by band, as it is read. If several ranges of input blocks read the same bands, a separate
// pass computes it first.
bool DirectWeights::computes_dy(const Job& job) const { return job.call.dy_norm != nullptr && ranges_ == 1; }

// Applies the deferred batch-norm backward.
void DirectWeights::compute_dy(const Job& job, const OperandBand& dy) const {
  const DeferredNormGradient& norm = *job.call.dy_norm;
  const PixelRows rows = rows_of(dy_, norm.dx, dy);
  const Planes planes{dy.images, dy.window.rows * dy_.width, dy_.strides().image};
  for (std::int64_t block = 0; block < dy.blocks; ++block) {
    const std::int64_t place = rows.first - norm.dx + block * rows.block_bytes;
    loops_of(target_.set)
        .vectors.of(dy_.dtype)
        .norm_gradient(norm.x + place, job.call.operands[1] + place, planes,
                       norm.rows + (dy.first_block + block) * norm_rows * dy_.lanes, ActivationGradient::pass,
                       norm.dx + place);
  }
}

void DirectWeights::pack_x(const Job& job, int thread, const OperandBand& x) const {
  const InputNorm* const norm = job.call.x_norm;
  if (pairs_) {
    pack_pairs(loops_, x_, job.call.operands[0], x, x_pairs_, norm, x_packed(job, thread));
  } else {
    pack(loops_, x_, job.call.operands[0], x, norm, x_packed(job, thread));
  }
}

void DirectWeights::pack_dy(const Job& job, int thread, const OperandBand& dy) const {
  if (pairs_) {
    pack_pairs(loops_, dy_, job.dy, dy, dy_pairs_, nullptr, dy_packed(job, thread));
  } else {
    pack(loops_, dy_, job.dy, dy, nullptr, dy_packed(job, thread));
  }
}

// Prefetches what the range reads of the next band.
Prefetch DirectWeights::prefetch(const Job& job, const Range& range, std::int64_t band, std::int64_t fetches) const {
  Prefetch prefetch;
  if (band + 1 < cut(std::ssize(bands_), pieces_, range.piece + 1)) {
    const Band& next = bands_[static_cast<std::size_t>(band + 1)];
    const OperandBand x = x_of(next, range.index * range_blocks_, blocks_of(range.index));
    prefetch.add(rows_of(x_, job.call.operands[0], x));
    const OperandBand dy = dy_of(next, range.out);
    prefetch.add(rows_of(dy_, computes_dy(job) ? job.call.operands[1] : job.dy, dy));
    if (computes_dy(job)) prefetch.add(rows_of(dy_, job.call.dy_norm->x, dy));
  }
  prefetch.spread_over(fetches);
  return prefetch;
}

void DirectWeights::multiply(const Job& job, const Range& range, std::int64_t index, Accumulate accumulate) const {
  const Band& band = bands_[static_cast<std::size_t>(index)];
  const std::size_t kind = (band.is_as_large_as(bands_.front()) ? 0U : 2U) + (range.index + 1 < ranges_ ? 0U : 1U);
  const WeightTables& tables = job.tables[kind];
  const std::int64_t first_block = range.index * range_blocks_;
  const OperandBand dy = dy_of(band, range.out);
  Products call{};
  call.left = x_packed(job, range.thread);
  if (!job.packs) call.left = x_.values_at(job.call.operands[0], x_of(band, first_block, 1));
  call.left_step = tables.left_step;
  call.left_offsets = tables.left_offsets.data();
  const float* right = dy_packed(job, range.thread);
  call.right_stride = dy_strides(band).block;
  if (dy_.is_readable()) right = dy_.values_at(job.dy, dy);
  call.segments = tables.segments.data();
  call.segment_count = std::ssize(tables.segments);
  float* const sums = sums_of(job, range.piece) + dy.first_block * weights_.out_stride() +
                      first_block * weights_.window * weights_.matrix();
  call.out_stride = weights_.out_stride();
  call.out_offsets = tables.out_offsets.data();
  call.rows = std::ssize(tables.left_offsets);
  call.accumulate = accumulate;
  const std::int64_t groups = ceil_div(dy.blocks, loops_.max_vectors);
  const int* const tile_rows = pairs_ ? loops_.pair_tile_rows : loops_.tile_rows;
  const std::int64_t tiles = groups * ceil_div(call.rows, tile_rows[loops_.max_vectors]);
  Prefetch ahead = prefetch(job, range, index, tiles * fetches_of_tile(loops_, tables.segments));
  call.prefetch = &ahead;
  for (std::int64_t group = 0; group < groups; ++group) {
    const std::int64_t block = cut(dy.blocks, groups, group);
    call.vectors = static_cast<int>(cut(dy.blocks, groups, group + 1) - block);
    call.right = right + block * call.right_stride;
    call.out = sums + block * call.out_stride;
    pairs_ ? loops_.pair_products(call) : loops_.products(call);
  }
  clear_padding(sums, range);
}

// Clears the gradients of input channels that do not exist.
void DirectWeights::clear_padding(float* sums, const Range& range) const {
  const std::int64_t last_block = x_.blocks() - 1;
  const std::int64_t channels = x_.channels_in(last_block);
  if (range.index + 1 < ranges_ || channels == weights_.rows) return;
  sums += (last_block - range.index * range_blocks_) * weights_.window * weights_.matrix();
  for (std::int64_t out = 0; out < dy_.blocks() / out_ranges_; ++out) {
    for (std::int64_t tap = 0; tap < weights_.window; ++tap) {
      float* const matrix = sums + out * weights_.out_stride() + tap * weights_.matrix();
      std::fill(matrix + channels * weights_.lanes, matrix + weights_.matrix(), 0.0F);
    }
  }
}

void DirectWeights::add_pieces(const Job& job) const {
  constexpr std::int64_t run = 1024;
  const std::int64_t count = weights_.count();
  auto* const dweight = reinterpret_cast<float*>(job.call.operands[2]);
  parallel_for(target_.threads, ceil_div(count, run), [&](std::int64_t part) {
    const std::int64_t first = part * run;
    const std::int64_t last = std::min(first + run, count);
    std::array<float, run> total{};
    for (std::int64_t piece = 0; piece < pieces_; ++piece) {
      const float* const sums = sums_of(job, piece);
      for (std::int64_t i = first; i < last; ++i) total[static_cast<std::size_t>(i - first)] += sums[i];
    }
    const bool adds = job.call.accumulate == Accumulate::add;
    for (std::int64_t i = first; i < last; ++i) {
      const float value = total[static_cast<std::size_t>(i - first)];
      dweight[i] = adds ? dweight[i] + value : value;
    }
  });
}

float* DirectWeights::sums_of(const Job& job, std::int64_t piece) const {
  return job.sums_in_place ? reinterpret_cast<float*>(job.call.operands[2]) : sums_at_.of(job.scratch, piece);
}

float* DirectWeights::x_packed(const Job& job, int thread) const { return x_at_.of(job.scratch, thread); }

float* DirectWeights::dy_packed(const Job& job, int thread) const { return dy_at_.of(job.scratch, thread); }

}  // namespace lockstep::cpu
