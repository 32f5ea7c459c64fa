// A value for each option of a training that is not its default: for tests that go through the table.
#pragma once

#include <map>
#include <string>

namespace lockstep {

inline const std::map<std::string, std::string>& field_examples() {
  static const std::map<std::string, std::string> examples = {{"data", "elsewhere"},
                                                              {"augment", "crop"},
                                                              {"data-on", "host"},
                                                              {"loader-threads", "3"},
                                                              {"model", "lenet"},
                                                              {"epochs", "3"},
                                                              {"seed", "18446744073709551615"},
                                                              {"zero-init-gamma", "true"},
                                                              {"label-smoothing", "0.2"},
                                                              {"global-batch", "64"},
                                                              {"batch-per-rank", "32"},
                                                              {"accumulate", "2"},
                                                              {"virtual-ranks", "8"},
                                                              {"optimizer", "adamw"},
                                                              {"momentum", "0.8"},
                                                              {"nesterov", "true"},
                                                              {"weight-decay", "0.1"},
                                                              {"no-decay-norm", "true"},
                                                              {"trust", "0.02"},
                                                              {"beta1", "0.8"},
                                                              {"beta2", "0.95"},
                                                              {"epsilon", "1e-06"},
                                                              {"clip-norm", "2.5"},
                                                              {"ema", "0.99"},
                                                              {"ema-every", "4"},
                                                              {"lr", "0.3"},
                                                              {"lr-batch", "0"},
                                                              {"schedule", "step"},
                                                              {"warmup", "0.5"},
                                                              {"warmup-from", "0.01"},
                                                              {"poly-power", "1"},
                                                              {"lr-end", "0.001"},
                                                              {"milestones", "2.5"},
                                                              {"lr-factor", "0.2"},
                                                              {"device", "cpu"},
                                                              {"precision", "bf16"},
                                                              {"threads", "2"},
                                                              {"instruction-set", "avx2"},
                                                              {"convolutions", "direct"},
                                                              {"tf32", "true"},
                                                              {"no-graphs", "true"},
                                                              {"deterministic", "true"},
                                                              {"plan-folder", "plans"},
                                                              {"verbose", "true"},
                                                              {"reduce", "shared"},
                                                              {"bucket-mib", "2"},
                                                              {"wire", "bf16"},
                                                              {"output", "out"},
                                                              {"report-every", "7"},
                                                              {"hang-timeout", "2.5"},
                                                              {"audit-every", "9"},
                                                              {"checkpoints", "saved"},
                                                              {"checkpoint-every", "500,10min"},
                                                              {"keep-latest", "3"},
                                                              {"keep-best", "0"},
                                                              {"resume", "never"},
                                                              {"init-from", "m.h5"},
                                                              {"new-head", "true"},
                                                              {"time-limit", "5400s"}};
  return examples;
}

}  // namespace lockstep
