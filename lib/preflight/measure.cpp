#include "preflight/measure.hpp"

#include <mpi.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/versions.hpp"
#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/text/json_text.hpp"
#include "base/text/number.hpp"
#include "comm/check_mpi.hpp"
#include "device/cpu/threads/threads.hpp"
#include "nn/initialize.hpp"
#include "nn/loss.hpp"
#include "preflight/all_reduce_check.hpp"
#include "preflight/folder_rate.hpp"
#include "preflight/links.hpp"
#include "runtime/watch/rank_status.hpp"
#include "step/metrics.hpp"
#include "step/model.hpp"
#include "step/noise.hpp"

namespace lockstep {
namespace {

// Repeats forward and backward on each rank.
double samples_per_second(const Session& session, Model& model, std::int64_t batch) {
  constexpr double seconds = 2;
  constexpr std::int64_t least_steps = 3;
  Device& device = session.device();
  const Batch noise = noise_batch(device, model.options.sample, batch, model.options.classes);
  DiscardGradients nowhere;
  const auto step = [&] {
    rank_status::enter(Phase::forward);
    model.statistics = {1.0F, Accumulate::overwrite, nullptr};
    const Tensor logits = model.network->forward(noise.images, Mode::train);
    const LossOptions loss{.scale = 1.0F / static_cast<float>(batch)};
    const Tensor gradient = softmax_cross_entropy(device, logits, {noise.labels, noise.others, noise.shares}, loss,
                                                  loss_sums(model.store), Accumulate::overwrite);
    rank_status::enter(Phase::backward);
    model.network->backward(gradient, nowhere);
    device.synchronize();
  };
  step();  // allocates memory, and selects kernels on a GPU
  rank_status::enter(Phase::meeting);
  session.world.barrier();
  const Stopwatch watch;
  std::int64_t steps = 0;
  while (steps < least_steps || watch.seconds() < seconds) {
    step();
    ++steps;
  }
  return static_cast<double>(steps * batch) / watch.seconds();
}

// The first round also warms up and chooses the number of all-reduces per round.
void look_at_sum(const Session& session, AllReducer& reducer, const Tensor& values, AllReduceFacts& facts) {
  const MPI_Comm world = session.world.handle();
  const auto seconds_of_one = [&] {
    check_mpi(MPI_Barrier(world), "meet");
    const Stopwatch watch;
    reducer.start_sum(values);
    reducer.wait();
    session.device().synchronize();
    return watch.seconds();
  };
  constexpr double seconds = 0.5 / AllReduceFacts::looks;
  constexpr int warm_up = 2;
  if (facts.seconds.empty()) {
    double estimate = 0;
    for (int i = 0; i < warm_up; ++i) estimate = seconds_of_one();
    facts.sums_of_a_look = std::clamp(static_cast<int>(seconds / session.world.max(estimate)), 1, 40);
  }
  std::vector<double> look;
  look.reserve(static_cast<std::size_t>(facts.sums_of_a_look));
  for (int i = 0; i < facts.sums_of_a_look; ++i) look.push_back(seconds_of_one());
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, look.data(), facts.sums_of_a_look, MPI_DOUBLE, MPI_MAX, world),
            "compare times");
  facts.seconds.insert(facts.seconds.end(), look.begin(), look.end());
}

struct Sums {
  std::vector<AllReduceFacts> facts;
  std::optional<int> wrong_contributor;
  std::string reducer;
};

// Small sizes show the latency. The size of all gradients shows the longest time that a training waits for.
Sums measure_all_reduces(const Session& session, std::int64_t gradients, const std::string& reduce) {
  rank_status::enter(Phase::reducing);
  const std::int64_t bytes = gradients * size_of(DType::f32);
  const std::unique_ptr<AllReducer> reducer = session.backend->make_reducer(reduce, session.world, bytes, DType::f32);
  const Tensor values = reducer->allocate(gradients);
  Sums sums;
  sums.reducer = reducer->description();
  sums.wrong_contributor =
      find_wrong_contributor(session.device(), *reducer, values, session.world.rank(), session.world.size());
  const std::vector<float> zeros(static_cast<std::size_t>(gradients));
  session.device().write(zeros, values);
  for (const std::int64_t size :
       {std::int64_t{1} << 10, std::int64_t{1} << 15, std::int64_t{1} << 20, std::int64_t{1} << 23}) {
    if (size < bytes) sums.facts.push_back({.bytes = size});
  }
  sums.facts.push_back({.bytes = bytes});
  // The sizes alternate, so that a short disturbance of the network affects one round of each size, not all of one
  // size.
  for (int look = 0; look < AllReduceFacts::looks; ++look) {
    for (AllReduceFacts& sum : sums.facts) {
      look_at_sum(session, *reducer, values.slice(0, sum.bytes / size_of(DType::f32)), sum);
    }
  }
  for (AllReduceFacts& sum : sums.facts) std::ranges::sort(sum.seconds);
  return sums;
}

// A GPU's description ends with its PCI address, which is unique.
void describe_device(const std::string& description, RankFacts& facts) {
  constexpr std::string_view before_address = ", at ";
  const std::size_t at = description.starts_with("cuda:") ? description.rfind(before_address) : std::string::npos;
  facts.device = description.substr(0, at);
  if (at != std::string::npos) facts.gpu = description.substr(at + before_address.size());
}

std::map<std::string, std::string> versions_here(const Session& session) {
  std::map<std::string, std::string> versions = versions_used(session.backend->libraries());
  versions["program's commit"] = session.invocation.commit;
  return versions;
}

}  // namespace

ClusterFacts measure_cluster(const Session& session, const PreflightOptions& options) {
  const Communicator& world = session.world;
  const Communicator node = world.node();
  const bool speaks = node.rank() == 0;
  const Communicator leaders = world.split(speaks ? 0 : 1, world.rank());

  NodeFacts own_node;
  own_node.host = log::host();
  own_node.versions = versions_here(session);
  constexpr NumberRange<int> any_rank{0, std::numeric_limits<int>::max()};
  for (const std::string& rank : node.gather(number_text(world.rank()), 0)) {
    own_node.ranks.push_back(parse_number(rank, any_rank).value());
  }
  const int node_index = parse_number(node.broadcast(number_text(leaders.rank()), 0), any_rank).value();
  log::info("measuring clocks and links between nodes");
  rank_status::enter(Phase::meeting);
  if (speaks) {
    const ClockFacts clock = compare_clocks(leaders);
    own_node.clock_ahead_seconds = clock.ahead_seconds;
    own_node.clock_error_seconds = clock.error_seconds;
    own_node.link = measure_link(leaders);
  }
  world.barrier();
  log::info("measuring the output folder");
  if (speaks) {
    rank_status::enter(Phase::saving);
    own_node.folder = try_folder(options.folder);
    rank_status::enter(Phase::meeting);
  }
  world.barrier();

  Model model(session.device(), options.model);
  model.store.allocate(session.device().make_persistent(model.store.gradient_buffer_count(), DType::f32));
  initialize(model.store, 0);
  RankFacts own;
  own.rank = world.rank();
  own.node = node_index;
  describe_device(session.device().description(), own);
  own.cores = cpu::observe_cores(node.size()).allowed_cores;
  log::info("measuring steps of {}", options.model.name);
  own.samples_per_second = samples_per_second(session, model, options.batch);
  Sums sums;
  if (world.size() > 1) {
    log::info("measuring all-reduces");
    sums = measure_all_reduces(session, model.store.gradient_buffer_count(), options.reducer);
    own.wrong_contributor = sums.wrong_contributor;
  }

  rank_status::enter(Phase::gathering);
  ClusterFacts facts;
  for (const std::string& text : world.gather(json_text(json_of(own)), 0)) facts.ranks.push_back(rank_facts(text));
  for (const std::string& text :
       speaks ? leaders.gather(json_text(json_of(own_node)), 0) : std::vector<std::string>()) {
    facts.nodes.push_back(node_facts(text));
  }
  facts.sums = std::move(sums.facts);
  facts.reducer = sums.reducer;
  facts.folder = options.folder.string();
  facts.model = options.model.name;
  // Weights and momentum. The running statistics are small.
  facts.checkpoint_bytes = 2.0 * static_cast<double>(model.store.values().bytes());
  return facts;
}

}  // namespace lockstep
