// A scaling study whose computing is waiting, so that more ranks than cores disturb each other no more than ranks on
// cores of their own would: forward waits, backward waits before each gradient, and sums are real.
//
//   mpirun -n 8 waiting_study FOLDER             writes FOLDER/study.json
//   waiting_study FOLDER predict UP_TO           what the points of so many ranks tell of the others; 1 where one of
//   those
//                                                is off by more than 15 %
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ranges>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "base/io/file.hpp"
#include "base/log.hpp"
#include "comm/mpi_session.hpp"
#include "scaling/measuring/measure_point.hpp"
#include "scaling/step_model.hpp"
#include "scaling/study_file.hpp"

using namespace lockstep;

namespace {

constexpr double forward_seconds = 0.024;
constexpr double backward_seconds = 0.048;
constexpr int gradients = 12;
constexpr std::int64_t gradient_count = 32'768;  // 128 KiB each
constexpr std::int64_t side = 8;
constexpr std::int64_t batch = 8;
constexpr std::int64_t classes = 4;
constexpr double tolerance = 0.15;

void wait_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

class WaitingNetwork final : public Network {
 public:
  explicit WaitingNetwork(const LayerContext& context) : device_(context.device) {
    for (int index = 0; index < gradients; ++index) {
      parameters_.push_back(&context.store.add("waiting" + std::to_string(index) + ".bias", {gradient_count},
                                               ParameterKind::channel_vector, ParameterRole::bias,
                                               {Initial::Kind::constant, 0}));
    }
  }

  Tensor forward(const Tensor& images, Mode /*mode*/) override {
    wait_for(forward_seconds);
    const Tensor y = device_.make({images.shape()[0], classes}, DType::f32, Layout::plain);
    device_.write(std::vector<float>(static_cast<std::size_t>(y.shape().count())), y);
    return y;
  }
  Tensor backward(const Tensor& /*d_logits*/, GradientSink& sink) override {
    for (const Parameter* const parameter : std::ranges::reverse_view(parameters_)) {
      wait_for(backward_seconds / gradients);
      sink.ready(*parameter);
    }
    return {};
  }

 private:
  Device& device_;
  std::vector<const Parameter*> parameters_;
};

PointSettings settings_of(const Communicator& world) {
  PointSettings settings;
  settings.model = {"waiting", {side, side, 3}, classes};
  settings.make_network = [](const ModelOptions&, const LayerContext& context) {
    return std::make_unique<WaitingNetwork>(context);
  };
  settings.device.name = "cpu";
  settings.device.threads = 1;
  settings.device.local_rank = world.local_rank();
  settings.device.local_size = world.local_size();
  settings.sums.bucket_bytes = std::int64_t{512} << 10;
  settings.batch_per_rank = batch;
  settings.seconds = 1;
  return settings;
}

void measure(const Communicator& world, const std::filesystem::path& folder) {
  constexpr int repeats = 3;
  struct Measured {
    int ranks;
    Exchange exchange = {};
  };
  constexpr std::array<Measured, 9> measured_points = {
      {{1}, {2}, {3}, {4}, {6}, {8}, {8, {.local_steps = 4}}, {4, {.servers = 1}}, {8, {.servers = 1}}}};
  PointSettings settings = settings_of(world);
  Study study;
  study.model = "waiting";
  study.image_height = study.image_width = side;
  study.input = "noise";
  study.cores = 1;
  study.weak_batch = study.strong_batch = batch;
  study.hosts = world.all_gather(log::host());
  study.points.resize(measured_points.size());
  for (int repeat = 0; repeat < repeats; ++repeat) {
    for (std::size_t index = 0; index < measured_points.size(); ++index) {
      const int ranks = measured_points[index].ranks;
      settings.exchange = measured_points[index].exchange;
      const Communicator part = world.split(world.rank() < ranks ? 0 : 1, world.rank());
      if (world.rank() < ranks) {
        const MeasuredPoint measured = measure_point(part, settings);
        add_repeat(study.points[index], measured.point);
        study.parameters = measured.parameters;
        study.device = measured.device;
        study.reducer = measured.reducer;
      }
      world.barrier();
    }
  }
  if (world.rank() == 0) write_file_atomically(folder / "study.json", study_text(study));
}

int predict(const std::filesystem::path& folder, int up_to, const std::set<int>& asked) {
  const Study study = read_study(folder / "study.json");
  const std::optional<StepModel> model = fit_steps(study, up_to);
  if (!model) return 2;
  constexpr RankGrid pair = {2, 2};
  if (model->covers(pair)) {
    log::plain(fmt::format("a round between nodes takes {:.2f} ms beside its bytes",
                           1e3 * model->sums.latency_seconds(pair) / 2));
  }
  int code = 0;
  for (const StudyPoint& point : study.points) {
    const Exchange& exchange = point.setup.exchange;
    const StepPrediction prediction = model->predict({point.grid, point.batch_per_rank, {}, exchange});
    const double measured = median_interval(point.step_seconds).middle;
    const double off = prediction.step.middle / measured - 1;
    log::plain(fmt::format(
        "{} ranks on {} nodes, {}: {:.2f} ms ({:.2f} to {:.2f}) {}, {:.2f} ms measured, off by {:+.1f} %; "
        "exposed {:.2f} ms, "
        "measured {:.2f}",
        point.grid.ranks, point.grid.nodes, name_of(exchange), 1e3 * prediction.step.middle, 1e3 * prediction.step.low,
        1e3 * prediction.step.high, point.grid.ranks > up_to ? "predicted" : "fitted", 1e3 * measured, 100 * off,
        1e3 * prediction.exposed, 1e3 * point.part(StepPart::exposed)));
    if (asked.contains(point.grid.ranks) && std::abs(off) > tolerance) code = 1;
  }
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  const MpiSession mpi(argc, argv);
  const Communicator world(MPI_COMM_WORLD);
  const std::span<char*> words(argv, static_cast<std::size_t>(argc));
  if (words.size() < 2) return 2;
  const std::filesystem::path folder = words[1];
  log::set_identity(world.rank(), log::host());
  if (words.size() > 4 && std::string(words[2]) == "predict") {
    std::set<int> asked;
    for (char* const word : words.subspan(4)) asked.insert(std::atoi(word));
    return predict(folder, std::atoi(words[3]), asked);
  }
  require(world.size() >= 8, Failure::usage, "start 8 ranks");
  measure(world, folder);
  return 0;
}
