#include "comm/power_sgd_reducer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <random>
#include <span>
#include <utility>

#include "comm/host_arrays.hpp"
#include "device/elements.hpp"

namespace lockstep {
namespace {

std::int64_t aligned(std::int64_t count) { return (count + part_alignment - 1) / part_alignment * part_alignment; }

// Elements that are lost at most because bases and factors begin at multiples of part_alignment.
std::int64_t alignment_count(std::int64_t matrices) { return 2 * part_alignment * matrices; }

double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

void subtract_projection(std::span<float> vector, std::span<const float> unit) {
  const double length = dot(vector, unit);
  for (std::size_t i = 0; i < vector.size(); ++i) {
    vector[i] = static_cast<float>(static_cast<double>(vector[i]) - length * static_cast<double>(unit[i]));
  }
}

// Gram-Schmidt, twice, because rounding leaves a part of the earlier vectors the first time. What is then only rounding
// noise becomes zero.
void make_orthonormal(std::span<float> vectors, std::int64_t length) {
  constexpr double noise = 1e-5;  // relative to the vector; fp32 has 6e-8
  const auto size = static_cast<std::size_t>(length);
  for (std::size_t first = 0; first < vectors.size(); first += size) {
    const std::span<float> vector = vectors.subspan(first, size);
    const double before = std::sqrt(dot(vector, vector));
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t earlier = 0; earlier < first; earlier += size) {
        subtract_projection(vector, vectors.subspan(earlier, size));
      }
    }
    const double left = std::sqrt(dot(vector, vector));
    // A value that is not finite stays, so that the step is found to have diverged.
    const double scale = left <= noise * before ? 0 : 1 / left;
    for (float& value : vector) value = static_cast<float>(static_cast<double>(value) * scale);
  }
}

class PowerSgdReducer final : public AllReducer {
 public:
  PowerSgdReducer(std::unique_ptr<AllReducer> reducer, const Communicator& world, const Tensor& values,
                  PowerSgdOptions options)
      : reducer_(std::move(reducer)),
        ranks_(world.size()),
        values_(values),
        passes_(options.passes),
        rank_(options.rank),
        matrices_(std::move(options.matrices)),
        sent_count_(sent_count()),
        residuals_(arrays_.allocate(values.shape().count(), DType::f32)),
        factors_(arrays_.allocate(values.shape().count(), DType::f32)),
        exchanged_(reducer_->allocate(sent_count_ + alignment_count(std::ssize(matrices_)))) {
    draw_factors();
  }

  Tensor allocate(std::int64_t count, DType dtype) override { return reducer_->allocate(count, dtype); }
  void start_sum(const Tensor& values) override { reducer_->start_sum(values); }

  void start_rounded_sum(const Tensor& values) override {
    Slice& slice = slice_of(values);
    for (Compressed& one : slice.matrices) {
      passes_.add(elements(one.values(values_)), elements(one.values(residuals_)));
      passes_.multiply(elements(values_), one.matrix, elements(factors_), elements(one.basis));
    }
    copy_exact(slice, Direction::send);
    reducer_->start_sum(slice.sent);
    in_flight_.push_back(&slice);
  }

  bool compresses() const override { return true; }
  std::vector<ReducerState> state() const override {
    return {{"compression_factors", factors_, ReducerState::Owner::all_ranks},
            {"compression_residual", residuals_, ReducerState::Owner::each_rank}};
  }

  SlicePart part_of(const Tensor& values, int rank) const override { return reducer_->part_of(values, rank); }
  void start_reduce_scatter(const Tensor& values) override { reducer_->start_reduce_scatter(values); }
  bool scatters_same_bits() const override { return reducer_->scatters_same_bits(); }
  void start_all_gather(const Tensor& values) override { reducer_->start_all_gather(values); }

  void wait() override {
    reducer_->wait();
    for (Slice* slice : in_flight_) {
      copy_exact(*slice, Direction::receive);
      for (const Compressed& one : slice->matrices) {
        make_orthonormal(elements(one.basis), one.matrix.rows);
        passes_.multiply_transposed(elements(values_), one.matrix, elements(one.basis), elements(one.factors));
      }
      if (!slice->matrices.empty()) reducer_->start_sum(slice->all_factors);
    }
    if (in_flight_.empty()) return;
    reducer_->wait();
    for (const Slice* slice : std::exchange(in_flight_, {})) {
      for (const Compressed& one : slice->matrices) expand(one);
    }
  }

  bool needs_host() const override { return reducer_->needs_host(); }
  void check() override { reducer_->check(); }
  SumMarks* marks() const override { return reducer_->marks(); }
  std::string description() const override {
    return fmt::format("{}, PowerSGD of rank {} ({:.3g} % of the values)", reducer_->description(), rank_,
                       100.0 * static_cast<double>(sent_count_) / static_cast<double>(values_.shape().count()));
  }

 private:
  struct Compressed {
    FlatMatrix matrix;
    Tensor basis;               // [rank, rows], exchanged
    Tensor factors;             // [rank, columns], exchanged
    std::int64_t first, count;  // of the flat array

    Tensor values(const Tensor& flat) const { return flat.slice(first, count); }
  };
  struct Exact {
    std::int64_t first, count;  // of the flat array
    Tensor sent;
  };
  struct Slice {
    std::int64_t first, count;  // of the flat array
    std::vector<Compressed> matrices;
    std::vector<Exact> exact;  // what lies between them
    Tensor sent;               // all bases and exact values
    Tensor all_factors;
  };
  enum class Direction : std::uint8_t { send, receive };

  // Values of a step, bases and factors included.
  std::int64_t sent_count() const {
    std::int64_t count = values_.shape().count();
    for (const FlatMatrix& matrix : matrices_) {
      assert(is_compressible(matrix, rank_));
      count += rank_ * (matrix.rows + matrix.columns) - matrix.rows * matrix.columns;
    }
    return count;
  }

  // Uniform in [-1, 1), without std::uniform_real_distribution, which differs between standard libraries.
  void draw_factors() {
    std::mt19937_64 generator;
    constexpr double to_unit = 1.0 / 4294967296.0;
    for (const FlatMatrix& matrix : matrices_) {
      for (int k = 0; k < rank_; ++k) {
        for (std::int64_t column = 0; column < matrix.columns; ++column) {
          const auto draw = static_cast<double>(generator() >> 32U) * to_unit;
          factors_.as<float>()[matrix.at(k, column)] = static_cast<float>(2 * draw - 1);
        }
      }
    }
  }

  // Every step starts the same slices.
  Slice& slice_of(const Tensor& values) {
    const std::int64_t first = values.as<float>() - values_.as<float>();
    const auto known = std::ranges::find(slices_, first, [](const auto& slice) { return slice->first; });
    if (known != slices_.end()) {
      assert((*known)->count == values.shape().count());
      return **known;
    }
    slices_.push_back(std::make_unique<Slice>(lay_out(first, values.shape().count())));
    return *slices_.back();
  }

  Tensor take(std::int64_t count) {
    const Tensor taken = exchanged_.slice(used_, count);
    used_ += count;
    return taken;
  }

  Slice lay_out(std::int64_t first, std::int64_t count) {
    Slice slice{first, count, {}, {}, {}, {}};
    const std::int64_t begin = used_;
    std::int64_t done = first;
    const auto add_exact = [&](std::int64_t end) {
      if (end > done) slice.exact.push_back({done, end - done, take(end - done)});
    };
    for (const FlatMatrix& matrix : matrices_) {
      if (matrix.first < first || matrix.first >= first + count) continue;
      add_exact(matrix.first);
      const std::int64_t size = matrix.rows * matrix.columns;
      slice.matrices.push_back({matrix, take(rank_ * matrix.rows), {}, matrix.first, size});
      done = matrix.first + size;
    }
    add_exact(first + count);
    slice.sent = exchanged_.slice(begin, used_ - begin);
    used_ = aligned(used_);
    const std::int64_t begin_of_factors = used_;
    for (Compressed& one : slice.matrices) one.factors = take(rank_ * one.matrix.columns);
    slice.all_factors = exchanged_.slice(begin_of_factors, used_ - begin_of_factors);
    used_ = aligned(used_);
    return slice;
  }

  void copy_exact(const Slice& slice, Direction direction) const {
    for (const Exact& run : slice.exact) {
      const std::span<float> here = elements(values_.slice(run.first, run.count));
      const std::span<float> sent = elements(run.sent);
      direction == Direction::send ? std::ranges::copy(here, sent.begin()) : std::ranges::copy(sent, here.begin());
    }
  }

  // A direction that adds nothing keeps its old factors, so that a later step may find it again.
  void expand(const Compressed& one) {
    const FlatMatrix& matrix = one.matrix;
    const float* const found = one.factors.as<float>();
    for (int k = 0; k < rank_; ++k) {
      const float* const column_of = one.basis.as<float>() + k * matrix.rows;
      if (std::all_of(column_of, column_of + matrix.rows, [](float value) { return value == 0; })) continue;
      for (std::int64_t column = 0; column < matrix.columns; ++column) {
        factors_.as<float>()[matrix.at(k, column)] = found[k * matrix.columns + column];
      }
    }
    passes_.replace(elements(values_), matrix, elements(one.basis), elements(one.factors),
                    1.0F / static_cast<float>(ranks_), elements(residuals_));
  }

  std::unique_ptr<AllReducer> reducer_;
  HostArrays arrays_;
  int ranks_;
  Tensor values_;
  LowRankPasses& passes_;
  int rank_;
  std::vector<FlatMatrix> matrices_;
  std::int64_t sent_count_;
  Tensor residuals_;
  Tensor factors_;  // each in the first rows of its matrix
  Tensor exchanged_;
  std::int64_t used_ = 0;  // elements of `exchanged_`
  std::vector<std::unique_ptr<Slice>> slices_;
  std::vector<Slice*> in_flight_;
};

}  // namespace

std::int64_t power_sgd_count(std::int64_t values, std::int64_t matrices) { return values + alignment_count(matrices); }

bool is_compressible(const FlatMatrix& matrix, int rank) {
  return rank <= matrix.rows && 2 * rank * (matrix.rows + matrix.columns) < matrix.rows * matrix.columns;
}

std::unique_ptr<AllReducer> make_power_sgd_reducer(std::unique_ptr<AllReducer> reducer, const Communicator& world,
                                                   const Tensor& values, PowerSgdOptions options) {
  return std::make_unique<PowerSgdReducer>(std::move(reducer), world, values, std::move(options));
}

}  // namespace lockstep
