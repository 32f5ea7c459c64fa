#include "device/cpu/passes/square_sums.hpp"

#include <algorithm>
#include <array>
#include <cassert>

#include "device/cpu/threads/parallel.hpp"

namespace lockstep::cpu {
namespace {

constexpr std::int64_t piece_size = 8192;  // both the work of a thread at once and what it leaves to be added is small

double sum_of_squares(const float* values, std::int64_t count) {
  constexpr std::int64_t lanes = 16;
  std::array<double, lanes> sums{};
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const auto value = static_cast<double>(values[i + lane]);
      sums[static_cast<std::size_t>(lane)] += value * value;
    }
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  for (; i < count; ++i) total += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return total;
}

}  // namespace

SquareSums::SquareSums(const CpuContext& context, const std::vector<UpdateRun>& runs)
    : context_(context), runs_(runs.size()) {
  for (std::size_t run = 0; run < runs.size(); ++run) {
    const std::int64_t end = runs[run].first + runs[run].count;
    for (std::int64_t first = runs[run].first; first < end; first += piece_size) {
      pieces_.push_back({run, first, std::min(piece_size, end - first)});
    }
  }
  piece_sums_.resize(pieces_.size());
}

void SquareSums::sum(const float* values, std::vector<double>& sums) {
  assert(sums.size() == runs_);
  parallel_for(context_.threads, std::ssize(pieces_), [&](std::int64_t index) {
    const auto at = static_cast<std::size_t>(index);
    piece_sums_[at] = sum_of_squares(values + pieces_[at].first, pieces_[at].count);
  });
  std::ranges::fill(sums, 0.0);
  for (std::size_t index = 0; index < pieces_.size(); ++index) sums[pieces_[index].run] += piece_sums_[index];
}

}  // namespace lockstep::cpu
