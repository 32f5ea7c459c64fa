#include "scaling/findings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace lockstep {
namespace {

constexpr double worth_mending = 0.05;  // of a step
constexpr double worth_telling = 0.01;
constexpr double worth_a_sentence = 0.02;
constexpr double too_uncertain = 0.15;  // half of the interval of a loss

double percent(double share) { return 100 * share; }

std::string count_of(int ranks) { return fmt::format("{} {}", ranks, ranks == 1 ? "rank" : "ranks"); }

// ", and 4 ranks share 2 cores" if a node has more ranks than cores.
std::string describe_crowd(const Study& study, const StudyPoint& point) {
  const int ranks = point.grid.ranks_per_node();
  return ranks > study.cores ? fmt::format(", and {} share {} cores", count_of(ranks), study.cores) : "";
}

double middle_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Cores of a node that other programs used; nullopt if not measured.
std::optional<double> other_cores(const StudyPoint& point) {
  return point.other_cores.empty() ? std::nullopt : std::optional(middle_of(point.other_cores));
}

// Whether other programs used at least 5 % of the cores that the ranks need.
bool is_disturbed(const StudyPoint& point) {
  constexpr double worth_naming = 0.05;
  const auto own = static_cast<double>(point.grid.ranks_per_node() * std::max<std::int64_t>(point.setup.threads, 1));
  return other_cores(point).value_or(0) >= worth_naming * own;
}

// A sentence to add; empty if the point was not disturbed or this was not measured.
std::string describe_disturbance(const Study& study, const StudyPoint& point) {
  if (!is_disturbed(point)) return "";
  return fmt::format(" Other programs used {:.1f} of the {} cores of a node. Repeat the study on idle nodes.",
                     *other_cores(point), study.cores);
}

// The comparison to judge, at the largest rank count of its kind of scaling.
struct Case {
  const Study& study;
  Scaling scaling;
  const StudyPoint& base;
  const StudyPoint& point;
  Loss loss;

  double step() const { return median_interval(point.step_seconds).middle; }
  double lost(StepPart part) const { return loss.parts[static_cast<std::size_t>(part)]; }
  double lost_to_computing() const { return lost(StepPart::forward) + lost(StepPart::backward); }
  ScalingFinding finding(LossCause cause, std::string sentence) const {
    return {scaling, point.grid.ranks, cause, std::move(sentence)};
  }
};

// Whether noise makes it unclear if the loss is worth improving, or what it is due to.
bool is_too_noisy(const Interval& loss) {
  return loss.half_width() > too_uncertain || (loss.half_width() > worth_mending && loss.includes(worth_mending));
}

std::string noise_sentence(const Case& of) {
  const std::string start =
      fmt::format("{} scaling at {} cannot be judged. ", name_of(of.scaling), count_of(of.point.grid.ranks));
  if (!of.loss.whole.is_bounded()) return start + "Each was measured only once. Use --repeats 3 or more.";
  return start + fmt::format(
                     "The noise is too large: the loss is {:.1f} % (± {:.1f}) of a rank's throughput over {} repeats. "
                     "Use idle nodes, more --repeats or longer --seconds.{}",
                     percent(of.loss.whole.middle), percent(of.loss.whole.half_width()), of.point.step_seconds.size(),
                     describe_disturbance(of.study, of.point));
}

std::string loss_sentence(const Case& of) {
  std::vector<std::pair<double, std::string>> parts = {{of.lost_to_computing(), "slower computation"}};
  for (const StepPart part :
       {StepPart::input, StepPart::exposed, StepPart::imbalance, StepPart::optimizer, StepPart::other}) {
    parts.emplace_back(of.lost(part), std::string(describe(part)));
  }
  std::ranges::sort(parts, std::greater());
  std::vector<std::string> words;
  for (const auto& [share, name] : parts) {
    if (share >= worth_telling) words.push_back(fmt::format("{:.1f} % {}", percent(share), name));
  }
  return fmt::format("{} scaling loses {:.1f} % (± {:.1f}) of a rank's throughput from {} to {}{}{}.{}",
                     name_of(of.scaling), percent(of.loss.whole.middle), percent(of.loss.whole.half_width()),
                     of.base.grid.ranks, count_of(of.point.grid.ranks), words.empty() ? "" : ": ",
                     of.point.has_parts() ? fmt::format("{}", fmt::join(words, ", "))
                                          : ". This device does not report the parts of a step",
                     describe_disturbance(of.study, of.point));
}

ScalingFinding sums_finding(const Case& of, const StepModel& model) {
  const StudyPoint& point = of.point;
  double seconds = 0;
  double bytes = 0;
  for (const Bucket& bucket : point.buckets) {
    seconds += model.sums.seconds(point.grid, static_cast<double>(bucket.bytes)).middle;
    bytes += static_cast<double>(bucket.bytes);
  }
  const auto count = static_cast<double>(point.buckets.size());
  const char* const buckets = point.buckets.size() == 1 ? "bucket" : "buckets";
  const double latency = seconds > 0 ? count * model.sums.latency_seconds(point.grid) / seconds : 0;
  const std::string start = fmt::format("at {}, gradient all-reduces expose {:.1f} ms of a step and are ",
                                        count_of(point.grid.ranks), 1e3 * point.part(StepPart::exposed));
  if (latency > 0.5) {
    const BucketAdvice advice = advise_bucket(model, {point.grid, point.batch_per_rank});
    const std::string remedy =
        advice.gain < worth_telling
            ? std::string("Other bucket sizes are not predicted to help. Use larger batches per rank.")
            : fmt::format("Buckets of {} MiB are predicted to shorten a step by {:.1f} % (--bucket-mib {}).",
                          advice.bytes >> 20, percent(advice.gain), advice.bytes >> 20);
    return of.finding(
        LossCause::latency,
        start + fmt::format("latency-bound: {} {} of {:.2f} MB on average, with {:.0f} % of the time as latency. {}",
                            point.buckets.size(), buckets, 1e-6 * bytes / count, percent(latency), remedy));
  }
  return of.finding(
      LossCause::bandwidth,
      start + fmt::format(
                  "bandwidth-bound: {:.1f} MB in {} {} at a bus bandwidth of {:.2f} GB/s ({}), with {:.0f} % of the "
                  "time as latency. Use larger batches per rank or a faster network. Larger buckets do not help.",
                  1e-6 * bytes, point.buckets.size(), buckets,
                  1e-9 * bus_bandwidth(point.grid.ranks, bytes, std::max(seconds, 1e-9)), of.study.reducer,
                  percent(latency)));
}

ScalingFinding imbalance_finding(const Case& of) {
  const StudyPoint& point = of.point;
  if (!point.by_rank.empty()) {
    const auto late = std::ranges::max_element(point.by_rank, {}, &RankTimes::arrival);
    std::vector<double> arrivals;
    std::vector<double> inputs;
    for (const RankTimes& rank : point.by_rank) {
      arrivals.push_back(rank.arrival);
      inputs.push_back(rank.input);
    }
    const double behind = late->arrival - middle_of(arrivals);
    if (behind >= worth_mending * of.step() && behind >= 0.5 * point.part(StepPart::imbalance)) {
      const bool reads_slowly = late->input - middle_of(inputs) >= 0.5 * behind;
      const bool is_one_node = std::ranges::all_of(
          point.by_rank, [&](const RankTimes& rank) { return rank.host == point.by_rank.front().host; });
      return of.finding(
          LossCause::slow_rank,
          fmt::format("rank {} on {} delays {}: it arrives {:.1f} ms ({:.1f} % of a step) later than {}, because it {}",
                      late - point.by_rank.begin(), late->host,
                      point.by_rank.size() == 2 ? "the other rank" : "the other ranks", 1e3 * behind,
                      percent(behind / of.step()), point.by_rank.size() == 2 ? "the other rank" : "the median rank",
                      reads_slowly  ? "waits longer for samples. Check the speed of its disk."
                      : is_one_node ? "computes more slowly. Check for other programs on its cores."
                                    : "computes more slowly. Check the load of that node."));
    }
  }
  return of.finding(
      LossCause::uneven_ranks,
      fmt::format("at {}, each rank waits {:.1f} ms of a step for other ranks, and no rank is always the last{}{}.",
                  count_of(point.grid.ranks), 1e3 * point.part(StepPart::imbalance),
                  is_disturbed(point) ? ", because other programs ran" : "", describe_crowd(of.study, point)));
}

ScalingFinding computing_finding(const Case& of) {
  const auto a_sample = [](const StudyPoint& point) {
    return (point.part(StepPart::forward) + point.part(StepPart::backward)) / static_cast<double>(point.batch_per_rank);
  };
  const double longer = a_sample(of.point) / a_sample(of.base) - 1;
  const char* const unmeasured = other_cores(of.point) ? "" : ", unless other programs ran (not measured)";
  const std::string sharing =
      of.point.batch_per_rank == of.base.batch_per_rank
          ? "ranks of a node share its memory and caches"
          : fmt::format("a rank has {} samples instead of {}, and shares memory with other ranks",
                        of.point.batch_per_rank, of.base.batch_per_rank);
  return of.finding(LossCause::slow_computing,
                    fmt::format("at {}, computing a sample takes {:.1f} % longer than at {}: {}{}.",
                                count_of(of.point.grid.ranks), percent(longer), count_of(of.base.grid.ranks),
                                is_disturbed(of.point) ? "other programs ran" : sharing + unmeasured,
                                describe_crowd(of.study, of.point)));
}

std::vector<ScalingFinding> causes_of(const Case& of, const std::optional<StepModel>& model) {
  std::vector<std::pair<double, ScalingFinding>> causes;
  if (of.lost(StepPart::exposed) >= worth_a_sentence && model) {
    causes.emplace_back(of.lost(StepPart::exposed), sums_finding(of, *model));
  }
  if (of.lost(StepPart::imbalance) >= worth_a_sentence) {
    causes.emplace_back(of.lost(StepPart::imbalance), imbalance_finding(of));
  }
  if (of.lost_to_computing() >= worth_a_sentence) causes.emplace_back(of.lost_to_computing(), computing_finding(of));
  if (of.lost(StepPart::optimizer) >= worth_a_sentence) {
    causes.emplace_back(
        of.lost(StepPart::optimizer),
        of.finding(LossCause::update,
                   fmt::format(
                       "at {}, the optimizer takes {:.1f} ms of a step at any batch size. Use larger batches per rank.",
                       count_of(of.point.grid.ranks), 1e3 * of.point.part(StepPart::optimizer))));
  }
  std::ranges::sort(causes, std::greater(), [](const auto& cause) { return cause.first; });
  std::vector<ScalingFinding> findings;
  for (auto& [share, finding] : causes) findings.push_back(std::move(finding));
  return findings;
}

std::optional<ScalingFinding> input_finding(const Case& of) {
  const double waited = of.point.part(StepPart::input);
  if (waited < worth_mending * of.step()) return std::nullopt;
  return of.finding(LossCause::slow_input,
                    fmt::format("at {}, a rank waits {:.1f} ms of a step ({:.1f} %) for samples. Use more "
                                "--loader-threads, or data on the node's local disk (--stage of a training).",
                                count_of(of.point.grid.ranks), 1e3 * waited, percent(waited / of.step())));
}

// "2 threads per rank", "buckets of 4 MiB", "bf16", "--sync ps --servers 2"
std::string describe(Sweep sweep, const StudySetup& setup) {
  switch (sweep) {
    case Sweep::threads:
      return fmt::format("{} {} per rank", setup.threads, setup.threads == 1 ? "thread" : "threads");
    case Sweep::buckets:
      return setup.bucket_mib == 0 ? std::string("buckets of a measured size")
                                   : fmt::format("buckets of {} MiB", setup.bucket_mib);
    case Sweep::exchange:
      return options_of(setup.exchange);
    case Sweep::precision:
      break;
  }
  return setup.precision;
}

std::string sweep_sentence(const Study& study, Sweep sweep, const StudyPoint& point, const StudyPoint& base) {
  const std::int64_t threads = point.grid.ranks_per_node() * point.setup.threads;
  const std::string oversubscription =
      threads > study.cores ? fmt::format(", and {} threads share {} cores", threads, study.cores) : "";
  const Interval ratio = speed_ratio(point, base);
  const std::string value = describe(sweep, point.setup);
  const std::string usual = describe(sweep, base.setup);
  const std::string place = count_of(point.grid.ranks);
  const std::string unsure = fmt::format("at {}, the difference between {} and {} is unclear. ", place, value, usual);
  if (!ratio.is_bounded()) return unsure + "Each was measured only once. Use --repeats 3 or more.";
  const double more = ratio.middle - 1;
  const std::string difference = fmt::format("{:.1f} % {}", percent(std::abs(more)), more < 0 ? "slower" : "faster");
  if (ratio.includes(1)) {
    return unsure + fmt::format("The first is {} (± {:.1f}) over {} repeats{}. Use more --repeats or longer --seconds.",
                                difference, percent(ratio.half_width()), point.step_seconds.size(), oversubscription);
  }
  if (sweep == Sweep::buckets) {
    return fmt::format("at {}, {} are {:.1f} % (± {:.1f}) {} than {}{}.", place, value, percent(std::abs(more)),
                       percent(ratio.half_width()), more < 0 ? "slower" : "faster", usual, oversubscription);
  }
  return fmt::format("at {}, {} {} {:.3f} times (± {:.3f}) as many samples per second as {}{}.", place, value,
                     sweep == Sweep::threads && point.setup.threads > 1 ? "process" : "processes", ratio.middle,
                     ratio.half_width(), usual, oversubscription);
}

std::string accuracy_sentence(const Study& study, const BatchAccuracy& batch, const BatchAccuracy& base) {
  const Interval difference = difference_of_means(batch.accuracies, base.accuracies);
  const double own = percent(mean_interval(batch.accuracies).middle);
  const double other = percent(mean_interval(base.accuracies).middle);
  const std::string unsure =
      fmt::format("the accuracy difference between global batches of {} and {} is unclear: {:.1f} % and {:.1f} %",
                  batch.global_batch, base.global_batch, own, other);
  if (!difference.is_bounded()) return unsure + ", with one seed. Use --accuracy-seeds 3 or more.";
  const std::string interval = fmt::format("(difference: {:+.1f} ± {:.1f} points)", percent(difference.middle),
                                           percent(difference.half_width()));
  if (difference.includes(0)) {
    return unsure + fmt::format(" over {} seeds {}. Use more --accuracy-seeds or --accuracy-epochs.",
                                std::min(batch.accuracies.size(), base.accuracies.size()), interval);
  }
  return fmt::format("a global batch of {} reaches {:.1f} % in {} {}, and one of {} reaches {:.1f} % {}. {}.",
                     batch.global_batch, own, study.accuracy_epochs, study.accuracy_epochs == 1 ? "epoch" : "epochs",
                     base.global_batch, other, interval,
                     difference.middle < 0 ? "It costs accuracy" : "It costs no accuracy here");
}

}  // namespace

std::vector<std::string> judge_accuracy(const Study& study) {
  std::vector<std::string> sentences;
  const BatchAccuracy* base = nullptr;
  for (const BatchAccuracy& batch : study.accuracies) {
    if (!batch.missing.empty()) {
      sentences.push_back(
          fmt::format("the accuracy with a global batch of {} is incomplete: {}.", batch.global_batch, batch.missing));
    }
    if (batch.accuracies.empty()) continue;
    if (base != nullptr) sentences.push_back(accuracy_sentence(study, batch, *base));
    if (base == nullptr) base = &batch;
  }
  return sentences;
}

std::vector<std::string> judge_sweeps(const Study& study) {
  std::vector<std::string> sentences;
  for (const Sweep sweep : sweeps) {
    const std::vector<const StudyPoint*> points = points_of(study, sweep);
    for (std::size_t index = 1; index < points.size(); ++index) {
      sentences.push_back(sweep_sentence(study, sweep, *points[index], *points[0]));
    }
  }
  return sentences;
}

Loss loss_between(const StudyPoint& base, const StudyPoint& point) {
  const Interval kept = efficiency_of(point, base);
  Loss loss;
  loss.whole = {1 - kept.middle, 1 - kept.high, 1 - kept.low};
  const double step = median_interval(point.step_seconds).middle;
  const double work = static_cast<double>(point.batch_per_rank) / static_cast<double>(base.batch_per_rank);
  for (std::size_t part = 0; part < step_part_count; ++part) {
    const auto kind = static_cast<StepPart>(part);
    loss.parts[part] = (point.part(kind) - work * base.part(kind)) / step;
  }
  return loss;
}

std::vector<ScalingFinding> judge(const Study& study) {
  std::vector<ScalingFinding> findings;
  const std::optional<StepModel> model = fit_steps(
      study, std::ranges::max(study.points, {}, [](const StudyPoint& point) { return point.grid.ranks; }).grid.ranks);
  for (const Scaling scaling : {Scaling::weak, Scaling::strong}) {
    const std::vector<const StudyPoint*> points = points_of(study, scaling);
    if (points.size() < 2) continue;
    const Case of{study, scaling, *points.front(), *points.back(), loss_between(*points.front(), *points.back())};
    if (is_too_noisy(of.loss.whole)) {
      findings.push_back(of.finding(LossCause::too_noisy, noise_sentence(of)));
      continue;
    }
    if (of.loss.whole.middle < worth_mending) {
      findings.push_back(
          of.finding(LossCause::none,
                     fmt::format("{} scaling is good: at {}, a rank keeps {:.1f} % (± {:.1f}) of its throughput at {}.",
                                 name_of(scaling), count_of(of.point.grid.ranks), percent(1 - of.loss.whole.middle),
                                 percent(of.loss.whole.half_width()), count_of(of.base.grid.ranks))));
    } else {
      findings.push_back(of.finding(LossCause::loss, loss_sentence(of)));
      if (of.point.has_parts() && of.base.has_parts())
        std::ranges::copy(causes_of(of, model), std::back_inserter(findings));
    }
    if (std::optional<ScalingFinding> slow = input_finding(of)) findings.push_back(std::move(*slow));
  }
  return findings;
}

std::string CheckedPrediction::sentence() const {
  const std::string interval = predicted.is_bounded()
                                   ? fmt::format(" ({:.1f} to {:.1f})", 1e3 * predicted.low, 1e3 * predicted.high)
                                   : std::string();
  return fmt::format(
      "{} scaling, predicted from up to {}: {:.1f} ms{} for a step at {}. Measured: {:.1f} ms. The prediction is off "
      "by {:+.1f} %{}.",
      name_of(scaling), count_of(fitted_up_to), 1e3 * predicted.middle, interval, count_of(grid.ranks), 1e3 * measured,
      100 * error(), oversubscription);
}

std::vector<CheckedPrediction> check_predictions(const Study& study) {
  std::vector<CheckedPrediction> predictions;
  for (const Scaling scaling : {Scaling::weak, Scaling::strong}) {
    const std::vector<const StudyPoint*> points = points_of(study, scaling);
    if (points.size() < 3) continue;
    const StudyPoint& last = *points.back();
    const std::optional<StepModel> model = fit_steps(study, points[points.size() - 2]->grid.ranks);
    if (!model || !model->covers(last.grid)) continue;
    predictions.push_back({scaling, last.grid, model->max_ranks, model->predict({last.grid, last.batch_per_rank}).step,
                           median_interval(last.step_seconds).middle, describe_crowd(study, last)});
  }
  return predictions;
}

}  // namespace lockstep
