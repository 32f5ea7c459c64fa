// Trains the network of PaddlePaddle's demo "recommendation" (recommendation/rating_network.hpp) on ratings of movies.
//
//   train_recommendation --max-steps 5000 --width 32 --output runs/ratings         on synthetic ratings
//   train_recommendation --data data/ml-1m --max-steps 5650 --output runs/ml-1m    ten passes over MovieLens 1M
//   mpirun -n 6 train_recommendation --sync ps --servers 2 ...                     tables on two parameter servers
//
// After each pass, the output folder gets the model of the pass, pass-00001.h5, ... The best one has the lowest error
// on the test ratings.
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/io/file.hpp"
#include "base/log.hpp"
#include "base/text/counted.hpp"
#include "comm/agreed_error.hpp"
#include "comm/server_all_reducer.hpp"
#include "files/predictions_table.hpp"
#include "launch/choice_option.hpp"
#include "launch/custom_loop.hpp"
#include "launch/hang_timeout.hpp"
#include "launch/result_options.hpp"
#include "recommendation/rating_pairs.hpp"
#include "recommendation/rating_shards.hpp"
#include "recommendation/rating_training.hpp"
#include "run/run_file.hpp"
#include "runtime/failure/contained_failure.hpp"

using namespace lockstep;

namespace {

constexpr std::array<Choice<RowOptimizerKind>, 4> optimizers{{{"rmsprop", RowOptimizerKind::rmsprop},
                                                              {"adamw", RowOptimizerKind::adamw},
                                                              {"adagrad", RowOptimizerKind::adagrad},
                                                              {"sgd", RowOptimizerKind::sgd}}};

enum class TableSync : std::uint8_t { all_reduce, servers };
constexpr std::array<Choice<TableSync>, 2> syncs{{{"all-reduce", TableSync::all_reduce}, {"ps", TableSync::servers}}};

constexpr std::array<Choice<Schedule>, 3> schedules{
    {{"constant", Schedule::constant}, {"cosine", Schedule::cosine}, {"one-cycle", Schedule::one_cycle}}};

struct RecommendationOptions {
  static constexpr std::array<std::string_view, 2> metrics{"error", "error_in_stars"};
  static constexpr std::array<std::string_view, 10> may_change{
      "data", "pairs",   "predictions", "report-every", "checkpoint-every",
      "sync", "servers", "device",      "threads",      "hang-timeout"};
  static constexpr RestoredArrays restored_arrays = RestoredArrays::on_rank_0;

  std::filesystem::path data;  // empty: synthetic
  SyntheticRatings synthetic;
  RatingTrainingOptions training{.optimizer = {.kind = RowOptimizerKind::rmsprop, .learning_rate = 1e-3F}};
  TableSync sync = TableSync::all_reduce;
  std::optional<int> servers;
  std::filesystem::path pairs;
  std::filesystem::path predictions;
  std::int64_t report_every = 100;
  std::int64_t checkpoint_every = 1000;
  DeviceOptions device{.name = "cpu"};
  HangTimeout hang_timeout;

  void declare(CLI::App& app) {
    app.description("Trains a network that predicts how users rate movies.");
    app.add_option("--data", data, "Ratings made by `make_shards movielens` (default: synthetic ratings)")
        ->type_name("FOLDER");
    declare_synthetic(app);
    declare_training(app);
    declare_sync(app);
    CLI::Option* const table = add_result(
        app, "--predictions", predictions, require_place_for_table,
        "Write the stars that the best model predicts for --pairs: CSV, or tab-separated if it ends in .tsv");
    table->needs(app.add_option("--pairs", pairs, "File with a user and a movie per line, such as 12,345")
                     ->type_name("FILE")
                     ->needs(table));
    add_number(app, "--report-every", report_every, {1, 1'000'000}, "Steps between two reports of the loss");
    add_number(app, "--checkpoint-every", checkpoint_every, {1, RowTable::max_steps},
               "Steps between two checkpoints; each pass ends with one");
    app.add_option("--device", device.name, "cpu: there is no other device for embedding tables")->type_name("NAME");
    add_number(app, "--threads", device.threads, {0, 4096},
               "Threads per rank; 0: an equal share of the available cores");
    hang_timeout.declare(app);
    app.footer(
        "Examples:\n  train_recommendation --max-steps 2000 --width 32 --output runs/synthetic\n"
        "  train_recommendation --data data/ml-1m --max-steps 5650 --output runs/ml-1m");
  }

  // Called after parsing, before a device is opened.
  DeviceOptions device_options() const {
    require(device.name == "cpu" || device.name == "auto", Failure::usage,
            "train_recommendation computes on CPUs only, not on --device '{}'. Leave out --device.", device.name);
    require(!servers || sync == TableSync::servers, Failure::usage,
            "--servers {} has no effect with --sync {}. Add --sync ps, or leave out --servers.", servers.value_or(0),
            choice_name(syncs, sync));
    DeviceOptions options = device;
    options.name = "cpu";
    return options;
  }

 private:
  void declare_schedule(CLI::App& app) {
    RateOptions& rate = training.rate;
    add_choice(app, "--schedule", schedules, rate.schedule,
               "Learning rate schedule over --max-steps, of tables and fc layers: " + choice_names(schedules));
    add_number(app, "--warmup", rate.warmup_passes, {0, 1'000'000},
               "Passes of linear warm-up, fractions allowed (default: a fifth of the steps with one-cycle, else none)");
  }
  void declare_sync(CLI::App& app) {
    add_choice(
        app, "--sync", syncs, sync,
        "How ranks keep embedding tables. all-reduce: every rank has whole tables, and adds the gradients of all; "
        "ps: parameter servers, which are the last ranks, have blocks of their rows, and other ranks have none");
    add_number(app, "--servers", servers, {1, 65536},
               "With --sync ps: parameter servers, which have no ratings (default: 1)")
        ->type_name("RANKS");
  }
  void declare_synthetic(CLI::App& app) {
    constexpr const char* group = "Synthetic ratings";
    add_number(app, "--users", synthetic.users, {1, 1 << 24}, "Number of users")->group(group);
    add_number(app, "--movies", synthetic.movies, {1, 1 << 24}, "Number of movies")->group(group);
    add_number(app, "--ratings", synthetic.ratings, {20, std::int64_t{1} << 32},
               "Number of ratings; a tenth is for the test")
        ->group(group);
    add_number(app, "--rank", synthetic.rank, {1, 1024}, "Rank of the matrix of scores without noise")->group(group);
    add_number(app, "--noise", synthetic.noise, {0, 5},
               "Standard deviation of scores; its square is the best possible error")
        ->group(group);
  }
  void declare_training(CLI::App& app) {
    RowOptimizerOptions& optimizer = training.optimizer;
    add_number(app, "--width", training.width, {1, 4096}, "Width of embeddings, fc layers and vectors");
    add_number(app, "--global-batch", training.batch, {1, 1 << 20}, "Ratings per step, over all ranks");
    add_number(app, "--virtual-ranks", training.virtual_ranks, {1, 4096},
               "Micro-batches per step; weights have the same bits on any number of ranks that divides it");
    add_number(app, "--seed", training.seed, {0, std::numeric_limits<std::uint64_t>::max()},
               "Seed of weights, order and synthetic ratings");
    add_choice(app, "--optimizer", optimizers, optimizer.kind, "Optimizer: " + choice_names(optimizers));
    add_number(app, "--lr", optimizer.learning_rate, {0, 1000, LeastIs::excluded},
               "Learning rate, the peak of --schedule");
    declare_schedule(app);
    add_number(app, "--weight-decay", optimizer.weight_decay, {0, 1}, "Weight decay, with sgd and adamw");
  }
};

// The best test so far, as checkpoints record it.
struct BestTest {
  std::int64_t step = 0;  // 0: none
  double error = 0;

  BestTest() = default;
  explicit BestTest(const nlohmann::json& metadata)
      : step(count_in(metadata, "best_step").value_or(0)), error(number_in(metadata, "best_error").value_or(0)) {}
  void note(std::int64_t of_step, double of_error) {
    if (step == 0 || of_error < error) step = of_step, error = of_error;
  }
};

RatingTrainingOptions training_options(const RecommendationOptions& options) {
  RatingTrainingOptions training = options.training;
  training.servers = options.sync == TableSync::servers ? options.servers.value_or(1) : 0;
  return training;
}

RatingTrainingOptions over(std::int64_t steps, RatingTrainingOptions options) {
  options.rate.steps = steps;
  return options;
}

// The demo's unit: the root of half of the error in stars, because a score is twice as many.
double in_stars(double error) { return std::sqrt(error) / 2; }

class Recommendation {
 public:
  // Collective. Refuses all that it can, because the results of an earlier training are still untouched.
  Recommendation(CustomRun& run, const RecommendationOptions& options)
      : run_(run),
        options_(options),
        data_(load(run.world(), options)),
        training_(run.session(), data_, over(run.max_steps(), training_options(options))),
        data_hash_(hash_of(data_)),
        best_(run.restored().metadata) {
    on_all_ranks(run.world(), [&] {
      if (!options.pairs.empty()) pairs_ = read_pairs(options.pairs, data_.catalogue);
      require(run.max_steps() <= RowTable::max_steps, Failure::usage, "--max-steps {} is more than {}. Lower it.",
              run.max_steps(), RowTable::max_steps);
      if (run.steps_completed() == 0) return;
      require(
          text_in(run.restored().metadata, "data_hash") == data_hash_, Failure::usage,
          "the checkpoint of step {} was made with other ratings than those of '{}'. Use the earlier --data, another "
          "--output, or --resume never.",
          run.steps_completed(), data_.name);
      require_same_length();
    });
    if (run.steps_completed() > 0) training_.assign(run.take_restored_arrays());
    forget_absent_model();
    const bool only_predicts = run.steps_completed() == run.max_steps() && best_.step > 0 && !pairs_.empty();
    if (only_predicts) training_.assign_weights(best_model());
  }

  Recommendation(const Recommendation&) = delete;
  Recommendation& operator=(const Recommendation&) = delete;

  // Whether all steps are done.
  bool train() {
    log_start();
    for (std::int64_t step = run_.steps_completed() + 1; step <= run_.max_steps(); ++step) {
      const double loss = training_.step(step);
      if (is_first() && step % options_.report_every == 0) run_.report_training_metrics(step, {{"loss", loss}});
      const bool ends_pass = step % training_.steps_per_pass() == 0 || step == run_.max_steps();
      if (ends_pass) end_pass(step);
      const bool stops = run_.should_preempt();
      if (stops || ends_pass || step % options_.checkpoint_every == 0) save(step);
      if (stops) return false;
    }
    if (best_.step == 0) end_pass(run_.max_steps());
    require_model();
    return true;
  }

  // On rank 0.
  void report_best() const {
    log::info("the best error{} is {:.6g}, which means {:.4f} stars: '{}'",
              !why_model_is_lost_.empty() ? " of a model that could be written" : "", best_.error,
              in_stars(best_.error), run_.result(model_name(best_.step)).string());
  }
  // Collective, after train(). Does nothing without --pairs.
  void write_predictions() {
    if (options_.predictions.empty()) return;
    training_.assign_weights(best_model());
    const std::vector<float> stars = training_.predict(pairs_);
    on_rank_0(run_.world(), [&] {
      try {
        write_file_atomically(options_.predictions,
                              ratings_table(pairs_, stars, table_format_of(options_.predictions)));
      } catch (const Error& error) {
        throw Error(error.failure(), fmt::format("all steps are done, but the predictions could not be written: {} {}",
                                                 error.what(), run_.what_follows()));
      }
      log::info("wrote {} predictions to '{}'", pairs_.size(), options_.predictions.string());
    });
  }

 private:
  static RatingData load(const Communicator& world, const RecommendationOptions& options) {
    RatingData data;
    on_all_ranks(world, [&] {
      SyntheticRatings synthetic = options.synthetic;
      synthetic.seed = options.training.seed;
      data = options.data.empty() ? make_synthetic_ratings(synthetic) : read_rating_shards(options.data);
    });
    return data;
  }

  bool is_first() const { return run_.world().rank() == 0; }
  // Collective. On rank 0: the weights of the best model's file.
  NamedArrays best_model() const {
    NamedArrays weights;
    on_rank_0(run_.world(), [&] {
      const std::filesystem::path file = run_.result(model_name(best_.step));
      std::string image = read_file(file, tensor_file_limits::file_bytes);
      CustomCheckpoint model = parse_custom_checkpoint(file, image);
      require(
          model.steps_completed == best_.step && model.metadata == about_model(best_.error), Failure::bad_data,
          "'{}' is not the model of step {} of this training. Put the right file there, or remove it: then the best "
          "of the following tests takes its place.",
          file.string(), best_.step);
      weights = std::move(model.arrays);
    });
    return weights;
  }
  nlohmann::json metadata() const {
    return {
        {"best_step", best_.step}, {"best_error", best_.error}, {"data_hash", data_hash_}, {"steps", run_.max_steps()}};
  }

  nlohmann::json about_model(double error) const {
    return {{"error", error}, {"data_hash", data_hash_}, {"width", options_.training.width}};
  }

  // Other past rates mean other decays of rows that were not touched since.
  void require_same_length() const {
    if (options_.training.rate.is_constant()) return;
    const std::optional<std::int64_t> steps = count_in(run_.restored().metadata, "steps");
    require(steps == run_.max_steps(), Failure::usage,
            "the checkpoint of step {} has a learning rate schedule over --max-steps {}, not {}. Use the earlier "
            "--max-steps, another --output, or --resume never.",
            run_.steps_completed(), steps ? std::to_string(*steps) : "?", run_.max_steps());
  }

  // The checkpoint may be of another output folder, whose models are not here.
  void forget_absent_model() {
    const bool is_here = run_.keeps_results() && !is_absent(run_.result(model_name(best_.step)));
    const bool is_absent_here = is_first() && best_.step > 0 && !is_here;
    if (is_absent_here) {
      log::warning("'{}' is absent, the best model so far. The best of the following tests takes its place.",
                   run_.result(model_name(best_.step)).string());
    }
    if (run_.world().max(is_absent_here ? 1 : 0) > 0) best_ = {};
  }

  // The last pass may end early, at --max-steps: a longer training does not replace its model.
  std::string model_name(std::int64_t step) const {
    const std::int64_t per_pass = training_.steps_per_pass();
    return step % per_pass == 0 ? fmt::format("pass-{:05}.h5", step / per_pass) : fmt::format("step-{:08}.h5", step);
  }

  void log_start() const {
    if (!is_first()) return;
    log::info(
        "data: {}, user ids below {}, movie ids below {}, {} ratings for training, {} for the test; {} steps per pass",
        data_.name, data_.catalogue.users(), data_.catalogue.movies(), data_.train.size(), data_.test.size(),
        training_.steps_per_pass());
    log_roles();
    if (data_.best_error) log::info("no predictor has an error below {:.5g} on average", *data_.best_error);
  }

  void log_roles() const {
    const int ranks = run_.world().size();
    const int servers = training_options(options_).servers;
    if (servers == 0) return;
    log::info("roles: {} (the first ranks), {} (--sync ps), which have the tables",
              counted(trainers_of(ranks, servers), "trainer"), counted(servers, "parameter server"));
  }

  // All ranks have the same best_.
  void require_model() const {
    if (best_.step > 0) return;
    throw_on_all_ranks(
        run_.world(), 0,
        Error(Failure::other, fmt::format("no model could be written: {} Then the same command continues from the last "
                                          "checkpoint, if there is one.",
                                          why_model_is_lost_)));
  }

  void end_pass(std::int64_t step) {
    const double error = training_.test_error();
    on_rank_0(run_.world(), [&] {
      run_.report_validation_metrics(step, {{"error", error}, {"error_in_stars", in_stars(error)}});
    });
    const std::string failure =
        run_.stream_result(model_name(step), {step, {}, about_model(error)}, training_.weights());
    if (failure.empty()) {
      best_.note(step, error);
    } else {
      why_model_is_lost_ = failure;
    }
  }

  void save(std::int64_t step) { run_.stream_checkpoint(step, training_.state(), metadata()); }

  CustomRun& run_;
  const RecommendationOptions& options_;
  RatingData data_;
  std::vector<Rating> pairs_;
  RatingTraining training_;
  std::string data_hash_;
  BestTest best_;
  std::string why_model_is_lost_;  // in this attempt; empty: none is
};

Recommendation prepare(CustomRun& run, const RecommendationOptions& options) { return {run, options}; }

// The training is done before it predicts: if the predictions fail, its results are still complete.
Ending train(CustomRun& run, const RecommendationOptions&, Recommendation& recommendation) {
  const bool is_done = recommendation.train();
  if (is_done) on_rank_0(run.world(), [&] { recommendation.report_best(); });
  Ending ending = run.conclude();
  if (is_done && ending.code == 0) recommendation.write_predictions();
  return ending;
}

}  // namespace

int main(int argc, char** argv) { return run_custom_loop<RecommendationOptions>(argc, argv, prepare, train); }
