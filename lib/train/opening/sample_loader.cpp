#include "train/opening/sample_loader.hpp"

namespace lockstep {

std::unique_ptr<Loader> load_samples(const Session& session, const Recipe& recipe, const RunOptions& run,
                                     const TrainingData& data, const WeightSync& sync, std::int64_t step) {
  if (data.share.micro_batches == 0) return make_idle_loader();
  const std::int64_t steps_per_epoch = data.length.steps_per_epoch;
  LoaderShare share = data.share;
  std::int64_t first = step;
  const bool is_on_request = sync.hands_out_micro_batches();
  if (is_on_request) {
    share.first_micro_batch = 0;
    share.micro_batches = share.total_micro_batches;
    first = 0;
  }
  LoaderSource source =
      training_source(*data.train, share, training_rules(recipe.images, data.manifest(), step / steps_per_epoch),
                      recipe.seed, first / steps_per_epoch, first % steps_per_epoch, run.loader_threads,
                      block_shuffle(recipe.order, data.manifest(), share.global_batch));
  source.on_request = is_on_request;
  return session.backend->load_onto(source, run.data_place);
}

}  // namespace lockstep
