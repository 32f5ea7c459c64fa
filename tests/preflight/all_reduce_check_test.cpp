#include "preflight/all_reduce_check.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.hpp"

namespace lockstep::all_reduce_check_test {

constexpr int ranks = 4;
constexpr std::int64_t count = 10'000;

// Sums what four ranks would give, of which this is one, and spoils one value on the way.
class SpoilingReducer final : public AllReducer {
 public:
  SpoilingReducer(Device& device, std::optional<std::size_t> spoiled) : device_(device), spoiled_(spoiled) {}

  Tensor allocate(std::int64_t values, DType dtype) override { return device_.make_persistent(values, dtype); }
  void start_sum(const Tensor& values) override {
    std::vector<float> sums(static_cast<std::size_t>(count));
    device_.read(values, sums);
    for (std::size_t at = 0; at < sums.size(); ++at) {
      for (int other = 1; other < ranks; ++other) sums[at] += checked_contribution(other, ranks, at, sums.size());
    }
    if (spoiled_) sums[*spoiled_] += 1.0F;
    device_.write(sums, values);
  }
  SlicePart part_of(const Tensor& values, int) const override { return {0, values.shape()[0]}; }
  void start_reduce_scatter(const Tensor& values) override { start_sum(values); }
  void start_all_gather(const Tensor&) override {}
  void wait() override {}
  std::string description() const override { return "a made one"; }

 private:
  Device& device_;
  std::optional<std::size_t> spoiled_;
};

std::optional<int> found(std::optional<std::size_t> spoiled) {
  DeviceOptions options;
  options.name = "cpu";
  const std::unique_ptr<Backend> backend = open_backend(options);
  SpoilingReducer reducer(backend->device(), spoiled);
  const Tensor values = reducer.allocate(count, DType::f32);
  return find_wrong_contributor(backend->device(), reducer, values, 0, ranks);
}

TEST(SumCheck, a_right_sum_is_right) { EXPECT_EQ(found(std::nullopt), std::nullopt); }

TEST(SumCheck, one_wrong_value_names_the_rank_whose_stretch_it_lies_in) {
  EXPECT_EQ(found(0), 0);
  EXPECT_EQ(found(2'500), 1);
  EXPECT_EQ(found(4'999), 1);
  EXPECT_EQ(found(9'999), 3);
}

}  // namespace lockstep::all_reduce_check_test
