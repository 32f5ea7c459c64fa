// The network and the initial weights of a training whose model is an ONNX file (--model NET.onnx).
#pragma once

#include <string>
#include <vector>

#include "dataset/shards/manifest.hpp"
#include "files/model_file.hpp"
#include "models/model_zoo.hpp"
#include "nn/parameter_store.hpp"
#include "recipe/recipe.hpp"

namespace lockstep {

struct GivenNetwork {
  std::string text;                   // its description (ModelOptions::network)
  std::vector<std::string> warnings;  // for rank 0 to print
};

// For the sample size and classes of `options`. `earlier`: the model of the checkpoint to resume from, for which the
// file may be absent; null: a new training. Throws Error(usage) if the network does not fit the data, or is not the one
// of `earlier`.
GivenNetwork given_network(const Recipe& recipe, const ModelOptions& options, const Manifest& data,
                           const ModelFile* earlier);

// Its weights and statistics. Throws Error(usage) if the file does not have the network of `model`.
std::vector<ParameterStore::Entry> given_weights(const Recipe& recipe, const ModelOptions& model);

}  // namespace lockstep
