#include "scaling/measuring/all_reduce_log.hpp"

#include <utility>

namespace lockstep {
namespace {

class LoggedReducer final : public AllReducer {
 public:
  LoggedReducer(std::unique_ptr<AllReducer> inner, AllReduceLog& log) : inner_(std::move(inner)), log_(log) {
    log_.reducer = inner_.get();
    log_.values = {};
  }

  Tensor allocate(std::int64_t count, DType dtype) override {
    Tensor made = inner_->allocate(count, dtype);
    if (!log_.values) log_.values = made;
    return made;
  }
  void start_sum(const Tensor& values) override {
    log_.begins.push_back({values.bytes(), std::chrono::steady_clock::now()});
    inner_->start_sum(values);
  }
  void start_rounded_sum(const Tensor& values) override {
    log_.begins.push_back({values.bytes(), std::chrono::steady_clock::now()});
    inner_->start_rounded_sum(values);
  }
  SlicePart part_of(const Tensor& values, int rank) const override { return inner_->part_of(values, rank); }
  void start_reduce_scatter(const Tensor& values) override {
    log_.begins.push_back({values.bytes(), std::chrono::steady_clock::now()});
    inner_->start_reduce_scatter(values);
  }
  void start_rounded_reduce_scatter(const Tensor& values) override {
    log_.begins.push_back({values.bytes(), std::chrono::steady_clock::now()});
    inner_->start_rounded_reduce_scatter(values);
  }
  void start_all_gather(const Tensor& values) override { inner_->start_all_gather(values); }
  void wait() override { inner_->wait(); }
  bool needs_host() const override { return inner_->needs_host(); }
  void check() override { inner_->check(); }
  SumMarks* marks() const override { return inner_->marks(); }
  std::string description() const override { return inner_->description(); }

 private:
  std::unique_ptr<AllReducer> inner_;
  AllReduceLog& log_;
};

class LoggedBackend final : public Backend {
 public:
  LoggedBackend(std::unique_ptr<Backend> inner, AllReduceLog& log) : inner_(std::move(inner)), log_(log) {}

  Device& device() override { return inner_->device(); }
  std::vector<LibraryVersion> libraries() const override { return inner_->libraries(); }
  std::unique_ptr<AllReducer> make_reducer(const std::string& name, const Communicator& world, std::int64_t bytes,
                                           DType wire) override {
    return std::make_unique<LoggedReducer>(inner_->make_reducer(name, world, bytes, wire), log_);
  }
  std::unique_ptr<Loader> load_onto(const LoaderSource& source, DataPlace place) override {
    return inner_->load_onto(source, place);
  }

 private:
  std::unique_ptr<Backend> inner_;
  AllReduceLog& log_;
};

}  // namespace

std::unique_ptr<Backend> with_all_reduce_log(std::unique_ptr<Backend> inner, AllReduceLog& log) {
  return std::make_unique<LoggedBackend>(std::move(inner), log);
}

}  // namespace lockstep
