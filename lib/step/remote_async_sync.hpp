// Asynchronous SGD on a server whose trainers are programs of their own (remote_rounds.hpp). What a push does is as
// with trainers in the server's world (async_sync.hpp), so a single trainer gets the same bits.
#pragma once

#include "step/async_server_sync.hpp"
#include "step/remote_rounds.hpp"

namespace lockstep {

class RemoteAsyncSync final : public AsyncServerSync {
 public:
  // `options.remote_trainers` and `options.async` are set; the first one outlives this.
  RemoteAsyncSync(const Communicator& world, ParameterStore& store, std::unique_ptr<AllReduce> all_reduce,
                  const WeightSyncOptions& options, std::vector<FlatPart> parts, int micro_batches);

  void begin_step(std::int64_t step) override { rounds_.begin_step(step); }
  Accumulate accumulate_metrics() const override { return Accumulate::overwrite; }
  // Serves trainers until the end of the step. After a loss that is not finite, the step ends at once.
  void contribute_nothing() override;
  void sum_gradients() override;
  void update() override;
  std::string description() const override { return "sealed TCP, asynchronous"; }

 private:
  std::optional<PushAnswer> apply_or_drop(const Push& push);
  void add_metrics() const;
  void count(const Push& push, bool is_applied);

  RemoteRounds rounds_;
};

}  // namespace lockstep
