#include "device/cpu/passes/square_sums.hpp"

#include <algorithm>
#include <cassert>

#include "device/cpu/threads/parallel.hpp"

namespace lockstep::cpu {
namespace {

constexpr std::int64_t piece_size = 8192;  // balances work per thread against the number of sums to add

}  // namespace

SquareSums::SquareSums(const CpuContext& context, const VectorLoops& loops, const std::vector<UpdateRun>& runs)
    : context_(context), loops_(loops), runs_(runs.size()) {
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
    piece_sums_[at] = loops_.sum_of_squares(values + pieces_[at].first, pieces_[at].count);
  });
  std::ranges::fill(sums, 0.0);
  for (std::size_t index = 0; index < pieces_.size(); ++index) sums[pieces_[index].run] += piece_sums_[index];
}

}  // namespace lockstep::cpu
