// torchvision's networks for 224 pixels, as torchvision itself has them: names, shapes and layouts of all parameters
// and running statistics, and what they answer.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "models/counter_weights.hpp"
#include "models/golden_file.hpp"
#include "models/net_values.hpp"
#include "models/test_net.hpp"

namespace lockstep::test::torchvision_test {

struct Network {
  std::string name;
  std::string last_norm_of_branch;
};

void PrintTo(const Network& network, std::ostream* stream) { *stream << network.name; }

class TorchvisionTest : public ::testing::TestWithParam<Network> {
 protected:
  const GoldenFile golden_{golden_path("torchvision")};
  TestNet net_{{.name = GetParam().name, .sample = {224, 224, 3}, .classes = 1000}};
};

TEST_P(TorchvisionTest, parameters_statistics_and_answers_are_torchvisions) {
  const Values letters = golden_.values(GetParam().name + "/entries");
  std::string entries;
  for (const ParameterStore::Entry& entry : net_.store.entries()) {
    entries += fmt::format("{} {}\n", entry.name, fmt::join(entry.dims, " "));
  }
  ASSERT_EQ(entries, std::string(letters.begin(), letters.end()));

  set_counter_weights(net_.store, GetParam().last_norm_of_branch);
  set_counter_statistics(net_.store);
  constexpr std::uint64_t image_stream = 1000;
  const Shape shape{1, 224, 224, 3};
  const Tensor images = make_images(*net_.device, shape, counter_uniform(image_stream, shape.count()));
  const Values logits = doubles(read(*net_.device, net_.model->forward(images, Mode::evaluate)));
  EXPECT_LE(largest_error(logits, golden_.values(GetParam().name + "/logits")), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(, TorchvisionTest,
                         ::testing::Values(Network{"resnet18", "bn2.weight"}, Network{"resnet34", "bn2.weight"},
                                           Network{"resnet50", "bn3.weight"}, Network{"resnet101", "bn3.weight"},
                                           Network{"resnet18-blur", "bn2.weight"},
                                           Network{"resnet50-blur", "bn3.weight"}),
                         [](const auto& one) {
                           std::string name = one.param.name;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace lockstep::test::torchvision_test
