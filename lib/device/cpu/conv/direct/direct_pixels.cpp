// Direct forward and backward-data. Algorithm and data layout: direct_pixels.hpp and pixel_tables.hpp.
#include "device/cpu/conv/direct/direct_pixels.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "device/cpu/instruction_sets/loops.hpp"
#include "device/cpu/threads/parallel.hpp"

namespace lockstep::cpu {
namespace {

constexpr std::int64_t items_wanted = 32;     // enough for the threads of a rank
constexpr std::int64_t blocks_in_place = 12;  // more would crowd a few L1 sets: planes in place are not spread
constexpr std::int64_t max_pixels = 256;
constexpr std::int64_t least_pixels = 64;         // per band: fewer do not pay for loading the weights
constexpr std::int64_t packed_values = 64 << 10;  // per band, so it stays in the L2 cache
// Weights that are read together: half of the L1 cache, the rest is for pixels. AMX tiles read them from the L2 cache
// equally fast.
constexpr std::int64_t stage_bytes = 20 << 10;
constexpr std::int64_t tile_stage_bytes = 512 << 10;
// Likewise, if the pixels of a band are those of 16 images.
constexpr std::int64_t tile_images = 16;
constexpr std::int64_t max_set_pixels = 64;
constexpr std::int64_t least_set_pixels = 8;
constexpr std::int64_t set_values = 256 << 10;

bool is_forward(const ConvProblem& problem) { return problem.direction == Direction::forward; }

PixelGeometry geometry_of(const ConvProblem& problem, const KernelTarget& target, const PixelWeights& weights,
                          const Operand& result) {
  const Axes axes = is_forward(problem) ? forward_axes(problem.conv) : backward_data_axes(problem.conv);
  const std::int64_t bytes = multiplies_tiles(problem, target) ? tile_stage_bytes : stage_bytes;
  return {axes, result.width, weights.matrix_words(), result.blocks(), blocks_in_place, bytes};
}

// Whether consecutive pixels of the result fill the rows of AMX tiles well.
bool pixels_fill_tiles(const ConvProblem& problem, const Operand& result) {
  constexpr std::int64_t long_row = 32;
  constexpr std::int64_t large_map = 8 * tile_images;
  const bool rows_follow = problem.conv.kernel.area() == 1 && problem.conv.stride == Size2d{1};
  return result.width % tile_images == 0 || result.width >= long_row ||
         (rows_follow && result.height * result.width >= large_map);
}

Operand source_operand(const ConvProblem& problem, const KernelTarget& target, const Operand& result) {
  const std::int64_t lanes = result.lanes;
  Operand source = is_forward(problem) ? input_operand(problem, lanes) : output_operand(problem, lanes);
  if (multiplies_pairs(problem, target)) source.word = Word::channel_pair;
  // Two blocks fill one row of an AMX tile.
  if (multiplies_tiles(problem, target) && source.blocks() % 2 == 0) {
    source.unit_blocks = 2;
    // Otherwise the rows of a tile are a pixel of 16 images, unless many of the images do not exist.
    const bool images_fill_tiles = 8 * problem.n >= 7 * ceil_div(problem.n, tile_images) * tile_images;
    if (!pixels_fill_tiles(problem, result) && images_fill_tiles) source.set_images = tile_images;
  }
  return source;
}

// Pixels per band and phase: within the limits, as many as keep the band's source in the L2 cache.
std::vector<Band> bands_of(const ConvProblem& problem, const Axes& axes, const Operand& source, const Operand& result) {
  const std::int64_t values = source.units() * source.unit_words() * source.set_images;
  const std::int64_t pixels = source.set_images > 1 ? std::clamp(set_values / values, least_set_pixels, max_set_pixels)
                                                    : std::clamp(packed_values / values, least_pixels, max_pixels);
  const std::int64_t phases = axes.rows.spacing * axes.columns.spacing;
  return make_bands(ceil_div(problem.n, source.set_images), result.height, result.width, pixels * phases,
                    axes.rows.spacing);
}

}  // namespace

struct DirectPixels::Job {
  const ConvCall& call;
  const float* weights;  // in the order of the tables
  std::byte* scratch;
  bool packs;  // the source is packed first
  const Tables& tables;
};

struct DirectPixels::Group {
  int thread;
  std::int64_t band;
  std::int64_t number;  // of the group, within the band
  std::int64_t first_block;
  int vectors;  // channel blocks of the group
};

DirectPixels::DirectPixels(const ConvProblem& problem, const KernelTarget& target)
    : problem_(problem),
      target_(target),
      loops_(loops_of(target.set).products),
      result_(is_forward(problem) ? output_operand(problem, loops_.lanes) : input_operand(problem, loops_.lanes)),
      source_(source_operand(problem, target, result_)),
      weights_(problem, target, source_),
      geometry_(geometry_of(problem, target, weights_, result_)),
      packed_axes_(packed_axes(geometry_.axes)),
      bands_(bands_of(problem, packed_axes_, source_, result_)),
      groups_(ceil_div(result_.blocks(), loops_.max_vectors)),
      band_sums_{std::ssize(bands_), result_.blocks(), result_.lanes},
      ranges_(std::clamp<std::int64_t>(ceil_div(items_wanted, std::ssize(bands_)), 1, groups_)) {
  assert(result_.layout == Layout::features);
  make_tables();
  place_scratch();
  has_untouched_pixels_ =
      std::ranges::any_of(packed_.front(), [](const PhaseTables& phase) { return phase.segments.empty(); });
}

void DirectPixels::make_tables() {
  const bool reads_in_place = source_.is_readable() && !packed_axes_.skips_pixels() &&
                              reads_inside(geometry_.axes, result_.height, result_.width, source_);
  PixelGeometry packed_geometry = geometry_;
  packed_geometry.axes = packed_axes_;
  packed_geometry.max_blocks = source_.blocks();
  for (const Band& band : {bands_.front(), bands_.back()}) {
    const PixelStrides packed = source_of(band).packed_strides(source_);
    const PixelStrides values = value_strides(band);
    const PixelStrides result = rounds() ? values : result_.strides();
    packed_floats_ = std::max(packed_floats_, band.images * packed.image);
    if (rounds()) values_floats_ = std::max(values_floats_, loops_.max_vectors * stored_images(band) * values.image);
    packed_.push_back(make_band_tables(packed_geometry, band, source_, packed, result, loops_.max_vectors));
    if (!reads_in_place) continue;
    in_place_.push_back(make_band_tables(geometry_, band, source_, source_.strides(), result, loops_.max_vectors));
  }
}

void DirectPixels::place_scratch() {
  prepared_at_ = plan_.take_floats(weights_.prepared_words());
  band_sums_at_ = plan_.take(band_sums_.bytes());
  packed_at_ = plan_.take_floats_each(target_.threads, packed_floats_);
  values_at_ = plan_.take_floats_each(target_.threads, values_floats_);
}

// Of results before rounding: images are an odd number of cache lines apart, as a tile may store a pixel of 16 images.
PixelStrides DirectPixels::value_strides(const Band& band) const {
  return spread_strides(1, band.rows, result_.width, result_.lanes);
}

OperandBand DirectPixels::source_of(const Band& band) const {
  return source_band(packed_axes_, images_of(band), result_.width, source_, 0, source_.blocks());
}

void DirectPixels::run(const ConvCall& call, std::byte* scratch) {
  assert(call.accumulate == Accumulate::overwrite || !is_forward(problem_));
  assert(is_forward(problem_) || (call.mask_x != nullptr) == (call.sums != nullptr));
  const float* const weights = weights_.prepare(reinterpret_cast<const float*>(call.operands[1]), packed_.front(),
                                                floats_at(scratch, prepared_at_));
  const bool packs = in_place_.empty() || source_norm(call) != nullptr;
  const Job job{call, weights, scratch, packs, packs ? packed_ : in_place_};
  // The band that each thread has packed.
  std::vector<std::int64_t> packed_band(static_cast<std::size_t>(target_.threads), -1);
  parallel_pieces(target_.threads, std::ssize(bands_) * ranges_, [&](int thread, std::int64_t item) {
    const std::int64_t band = item / ranges_;
    if (packs && std::exchange(packed_band[static_cast<std::size_t>(thread)], band) != band) {
      pack(loops_, source_, call.operands[0], source_of(bands_[static_cast<std::size_t>(band)]), source_norm(call),
           packed_of(job, thread));
    }
    compute_range(job, thread, band, item % ranges_);
  });
  if (call.sums != nullptr) band_sums_.add_up(scratch + band_sums_at_, *call.sums);
}

void DirectPixels::compute_range(const Job& job, int thread, std::int64_t band, std::int64_t range) const {
  for (std::int64_t g = cut(groups_, ranges_, range); g < cut(groups_, ranges_, range + 1); ++g) {
    const Group group = group_of(thread, band, g);
    multiply(job, group);
    finish(job, group);
  }
}

DirectPixels::Group DirectPixels::group_of(int thread, std::int64_t band, std::int64_t number) const {
  const std::int64_t first = cut(result_.blocks(), groups_, number);
  const std::int64_t vectors = cut(result_.blocks(), groups_, number + 1) - first;
  return {thread, band, number, first, static_cast<int>(vectors)};
}

OperandBand DirectPixels::result_of(const Group& group) const {
  const Band& band = bands_[static_cast<std::size_t>(group.band)];
  const PlaneWindow window =
      window_of(result_.height, result_.width, {band.first_row, band.rows}, {0, result_.width}, {1, 1});
  const Band images = images_of(band);
  return {images.first_image, images.images, group.first_block, group.vectors, window};
}

// Prefetches the group's ReLU mask operands, its share of the next band's source, and the next group's result.
Prefetch DirectPixels::prefetch(const Job& job, const Group& group, const std::vector<PhaseTables>& tables) const {
  const bool is_last = group.number + 1 == groups_;
  const bool has_next_band = group.band + 1 < std::ssize(bands_);
  Prefetch prefetch;
  const OperandBand result = result_of(group);
  if (job.call.mask_x != nullptr) prefetch.add(rows_of(result_, job.call.mask_x, result));
  if (job.call.mask_y != nullptr) prefetch.add(rows_of(result_, job.call.mask_y, result));
  if (has_next_band) {
    OperandBand source = source_of(bands_[static_cast<std::size_t>(group.band + 1)]);
    source.first_block = cut(source_.blocks(), groups_, group.number);
    source.blocks = cut(source_.blocks(), groups_, group.number + 1) - source.first_block;
    prefetch.add(rows_of(source_, job.call.operands[0], source));
  }
  if (!is_last || has_next_band) {
    const Group next =
        is_last ? group_of(group.thread, group.band + 1, 0) : group_of(group.thread, group.band, group.number + 1);
    prefetch.add(rows_of(result_, job.call.operands[2], result_of(next)));
  }
  std::int64_t fetches = 0;
  for (const PhaseTables& phase : tables) {
    const int* const tile_rows = pairs() ? loops_.pair_tile_rows : loops_.tile_rows;
    const std::int64_t tiles = ceil_div(std::ssize(phase.left_offsets), tile_rows[group.vectors]);
    fetches += tiles * fetches_of_tile(loops_, phase.segments);
  }
  prefetch.spread_over(fetches);
  return prefetch;
}

void DirectPixels::multiply(const Job& job, const Group& group) const {
  const Band& band = bands_[static_cast<std::size_t>(group.band)];
  const std::vector<PhaseTables>& tables = band.is_as_large_as(bands_.front()) ? job.tables.front() : job.tables.back();
  Products call{};
  call.left = packed_of(job, group.thread);
  if (!job.packs) call.left = source_.values_at(job.call.operands[0], source_of(band));
  call.left_step = 1;
  call.out = values_of(job, group.thread);
  call.out_stride = stored_images(band) * value_strides(band).image;
  if (!rounds()) {
    call.out = reinterpret_cast<float*>(result_at(job, band, group.first_block));
    call.out_stride = result_.plane();
  }
  call.vectors = group.vectors;
  const Accumulate onto = job.call.accumulate;
  if (onto == Accumulate::add && rounds()) fetch(job, group);
  if (onto == Accumulate::overwrite && has_untouched_pixels_) clear(job, group);
  Prefetch ahead = prefetch(job, group, tables);
  call.prefetch = &ahead;
  for (const PhaseTables& phase : tables) {
    if (phase.segments.empty()) continue;
    call.left_offsets = phase.left_offsets.data();
    call.out_offsets = phase.out_offsets.data();
    call.rows = std::ssize(phase.left_offsets);
    call.right = job.weights + phase.right + group.first_block * phase.right_stride;
    call.right_stride = phase.right_stride;
    std::int64_t first = 0;
    for (const std::int64_t end : phase.stage_ends) {
      call.segments = phase.segments.data() + first;
      call.segment_count = end - first;
      call.accumulate = first == 0 ? onto : Accumulate::add;
      pairs() ? loops_.pair_products(call) : loops_.products(call);
      first = end;
    }
  }
}

// Clears pixels that no tap reaches, if the stride exceeds the kernel.
void DirectPixels::clear(const Job& job, const Group& group) const {
  const Band& band = bands_[static_cast<std::size_t>(group.band)];
  const std::int64_t pixels = band.rows * result_.width;
  for (std::int64_t v = 0; v < group.vectors; ++v) {
    for (std::int64_t image = 0; image < stored_images(band); ++image) {
      float* values = values_of(job, group.thread) + (v * stored_images(band) + image) * value_strides(band).image;
      if (!rounds())
        values = reinterpret_cast<float*>(result_at(job, band, group.first_block + v)) + image * result_.image();
      std::fill_n(values, pixels * result_.lanes, 0.0F);
    }
  }
}

// Loads the stored result in fp32 as the initial value of the sums.
void DirectPixels::fetch(const Job& job, const Group& group) const {
  const Band& band = bands_[static_cast<std::size_t>(group.band)];
  const PlaneWindow whole = window_of(band.rows, result_.width, {0, band.rows}, {0, result_.width}, {1, 1});
  const std::int64_t plane = value_strides(band).image;
  for (std::int64_t v = 0; v < group.vectors; ++v) {
    const std::byte* const from = result_at(job, band, group.first_block + v);
    float* const to = values_of(job, group.thread) + v * stored_images(band) * plane;
    for (std::int64_t image = 0; image < images_of(band).images; ++image) {
      loops_.pack_bf16(from + image * result_.image() * size_of(result_.dtype), whole, {}, to + image * plane,
                       result_.lanes);
    }
  }
}

// Stores a group's values and sums them while they are in the cache.
void DirectPixels::finish(const Job& job, const Group& group) const {
  const Band& band = bands_[static_cast<std::size_t>(group.band)];
  const VectorLoops& loops = loops_of(target_.set).vectors.of(result_.dtype);
  const Planes planes{images_of(band).images, band.rows * result_.width, result_.image()};
  const std::int64_t values_stride = value_strides(band).image;
  for (std::int64_t v = 0; v < group.vectors; ++v) {
    const std::int64_t block = group.first_block + v;
    std::byte* const y = result_at(job, band, block);
    const float* const values = values_of(job, group.thread) + v * stored_images(band) * values_stride;
    if (job.call.sums == nullptr) {
      for (std::int64_t image = 0; rounds() && image < planes.images; ++image) {
        loops_.narrow(values + image * values_stride, planes.pixels,
                      y + image * result_.image() * size_of(result_.dtype));
      }
      continue;
    }
    double* const sums = band_sums_.of(job.scratch + band_sums_at_, group.band, block);
    if (!is_forward(problem_)) {
      find_norm_gradient(job, band, block, values, sums);
    } else if (rounds()) {
      loops.store_with_moments(values, values_stride, planes, y, sums);
    } else {
      constexpr std::array<float, max_lanes> no_shift{};
      loops.moments(y, planes, no_shift.data(), sums);
    }
  }
}

void DirectPixels::find_norm_gradient(const Job& job, const Band& band, std::int64_t block, const float* values,
                                      double* sums) const {
  const VectorLoops& loops = loops_of(target_.set).vectors.of(result_.dtype);
  const float* const norm = job.call.x_norm->of(block, result_.lanes).rows;
  const std::int64_t place = place_of(band, block) * size_of(result_.dtype);
  const Planes planes{images_of(band).images, band.rows * result_.width, result_.image()};
  const ActivationGradient activation = job.call.activation_gradient();
  const std::byte* const x = job.call.mask_x + place;
  const std::byte* const y = activation == ActivationGradient::relu_of_y ? job.call.mask_y + place : nullptr;
  std::byte* const dx = job.call.operands[2] + place;
  if (rounds()) {
    loops.store_with_norm_sums(values, value_strides(band).image, x, y, planes, norm, activation, dx, sums);
  } else {
    loops.norm_sums(x, y, dx, planes, norm, activation, dx, sums);
  }
}

const InputNorm* DirectPixels::source_norm(const ConvCall& call) const {
  return is_forward(problem_) ? call.x_norm : nullptr;
}

bool DirectPixels::rounds() const { return result_.dtype != DType::f32; }

std::int64_t DirectPixels::place_of(const Band& band, std::int64_t block) const {
  const PixelStrides strides = result_.strides();
  return images_of(band).first_image * strides.image + block * strides.block + band.first_row * strides.row;
}

std::byte* DirectPixels::result_at(const Job& job, const Band& band, std::int64_t block) const {
  return job.call.operands[2] + place_of(band, block) * size_of(result_.dtype);
}

float* DirectPixels::packed_of(const Job& job, int thread) const { return packed_at_.of(job.scratch, thread); }

float* DirectPixels::values_of(const Job& job, int thread) const { return values_at_.of(job.scratch, thread); }

}  // namespace lockstep::cpu
