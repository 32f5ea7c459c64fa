#include "train/observers/metrics_stream.hpp"

#include <utility>

#include "base/log.hpp"
#include "base/text/json_text.hpp"

namespace lockstep {

MetricsStream::MetricsStream(FolderLock* output, std::unique_ptr<EventLog> events)
    : lines_(output == nullptr ? nullptr : std::make_unique<MetricsLog>(*output)), events_(std::move(events)) {}

void MetricsStream::append(const char* kind, const TrainingView& training, std::int64_t steps, nlohmann::json fields) {
  fields["kind"] = kind;
  fields["epoch"] = training.length.epochs_begun(steps);
  fields["step"] = steps;
  fields["seconds"] = training.counters.seconds();
  if (lines_) lines_->append(json_text(fields));
  if (events_) events_->append(fields);
}

void MetricsStream::finish() {
  if (events_ && !events_->flush()) log::warning("the TensorBoard events of the end of the training are lost.");
  if (lines_) lines_->finish();
}

}  // namespace lockstep
