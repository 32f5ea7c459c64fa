// A training whose trainers are programs of their own, in one test: rank 0 is the server, and all other ranks are
// trainers that know it by its port only.
#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/net/link_seal.hpp"
#include "step/micro_batch_loader.hpp"
#include "step/named_model.hpp"
#include "step/remote_trainer_sync.hpp"
#include "step/whole_step.hpp"

namespace lockstep {

// Its `failing` call of next() throws.
class FailingLoader final : public Loader {
 public:
  FailingLoader(Loader& loader, int failing) : loader_(loader), left_(failing) {}
  void request(std::int64_t micro_batch) override { loader_.request(micro_batch); }
  const Batch& next() override {
    require(--left_ != 0, Failure::other, "this trainer fails");
    return loader_.next();
  }
  double waited_ms() const override { return 0; }

 private:
  Loader& loader_;
  int left_;
};

class ServedTrainingTest : public testing::Test {
 protected:
  static constexpr SampleShape shape{16, 16, 3};
  static constexpr std::int64_t steps = 3;

  struct Training {
    std::string model;
    WeightSyncOptions options;
    int micro_batches;          // of a step
    std::vector<double> rates;  // of its updates
  };

  int trainers() const { return world_.size() - 1; }
  bool is_server() const { return world_.rank() == 0; }

  // Rank 0 returns its step after all steps, the others null once they were ended.
  std::unique_ptr<WholeStep> train(const Training& training) {
    const std::string token = world_.broadcast(draw_secret(), 0);
    if (!is_server()) {
      const std::string port = world_.broadcast("", 0);
      compute(training, token, std::stoi(port));
      world_.barrier();
      return nullptr;
    }
    remote_ = std::make_unique<RemoteTrainers>(token, 60);
    auto step = make(training, remote_.get(), nullptr);
    world_.broadcast(std::to_string(remote_->port()), 0);
    const std::unique_ptr<Loader> idle = make_idle_loader();
    for (std::int64_t index = 0; index < steps && (results_.empty() || results_.back().divergence.empty()); ++index) {
      if (index == stop_before_) step->own_sync->request_stop();
      step->start(*idle, index, training.rates);
      results_.push_back(step->finish());
    }
    remote_->end(0, "");
    world_.barrier();
    return step;
  }

  const Communicator world_{MPI_COMM_WORLD};
  const Communicator self_{MPI_COMM_SELF};
  const Communicator trainers_world_{world_.split(is_server() ? 0 : 1, world_.rank())};
  const Session session_{self_, open_backend({.name = "cpu", .threads = 1})};
  std::unique_ptr<RemoteTrainers> remote_;
  std::vector<StepResult> results_;  // of the server
  bool has_lost_weights_ = false;    // trainers compute with a weight that is NaN
  int failing_batch_ = 0;            // of rank 1, counted from 1; 0: none
  std::int64_t stop_before_ = -1;    // the step before which the server asks for a stop

 private:
  std::unique_ptr<WholeStep> make(const Training& training, RemoteTrainers* server_end,
                                  RemoteServer* trainer_end) const {
    WeightSyncOptions options = training.options;
    options.remote_trainers = server_end;
    options.expected_trainers = trainers();
    options.remote_server = trainer_end;
    return std::make_unique<WholeStep>(session_, named_model(training.model, shape), share(training), options, 0.1F, 3);
  }
  LoaderShare share(const Training& training) const {
    const int all = training.micro_batches;
    return {micro_batch_size * all, all, is_server() ? all : 0, is_server() ? 0 : all,
            static_cast<int>(training.rates.size())};
  }
  void compute(const Training& training, const std::string& token, int port) {
    std::optional<AuthenticatedPeer> peer = connect_to_node({"127.0.0.1"}, port, token, std::chrono::seconds(20));
    ASSERT_TRUE(peer.has_value()) << "the server does not answer";
    RemoteServer server(std::move(peer->socket), "n1", [](TrainerWait, double) {});
    server.offer();
    trainers_world_.barrier();  // so that a fast trainer does not complete the training before others have joined
    const auto step = make(training, nullptr, &server);
    MicroBatchLoader samples(session_.device(), shape, share(training));
    FailingLoader loader(samples, world_.rank() == 1 ? failing_batch_ : 0);
    auto& sync = dynamic_cast<RemoteTrainerSync&>(*step->own_sync);
    try {
      while (true) {
        const std::int64_t index = sync.take_work();
        if (has_lost_weights_) step->model().store.values().as<float>()[0] = std::numeric_limits<float>::quiet_NaN();
        step->start(loader, index, training.rates);
        step->finish();
      }
    } catch (const TrainingEnded& end) {
      EXPECT_EQ(end.code(), 0) << end.what();
    } catch (const Error& error) {
      EXPECT_GT(failing_batch_, 0) << error.what();
      server.say_goodbye(error.what());
    }
  }
};

}  // namespace lockstep
