// Options of initial weights that contradict each other.
#include <gtest/gtest.h>

#include "recipe/run_options.hpp"
#include "support/messages.hpp"

namespace lockstep::initialization_options_test {

Settings settings_of(const char* model) {
  Settings settings;
  settings.recipe.model = model;
  return settings;
}

TEST(InitializationOptionsTest, a_network_with_weights_has_no_other_start) {
  Settings whitened = settings_of("net.onnx");
  whitened.recipe.first_convolution = FirstConvolution::whitened;
  expect_error(Failure::usage, {"--whiten", "net.onnx"}, [&] { ValidSettings{whitened}; });
  Settings identities = settings_of("net.onnx");
  identities.recipe.filter_init = FilterInit::identity;
  expect_error(Failure::usage, {"--dirac-init", "net.onnx"}, [&] { ValidSettings{identities}; });
}

TEST(InitializationOptionsTest, a_first_convolution_is_either_whitened_or_loaded) {
  Settings settings = settings_of("airbench");
  settings.recipe.first_convolution = FirstConvolution::whitened;
  ValidSettings{settings};
  settings.recipe.init.file = "model.h5";
  expect_error(Failure::usage, {"--whiten", "--init-from"}, [&] { ValidSettings{settings}; });
}

}  // namespace lockstep::initialization_options_test
