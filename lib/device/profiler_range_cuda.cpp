// NVTX 3, which is headers alone. At its first call it loads the profiler's library, if NVTX_INJECTION64_PATH names
// one.
#include <nvtx3/nvToolsExt.h>

#include <string>

#include "device/profiler_range.hpp"

namespace lockstep {
namespace {

// Null without a profiler.
nvtxDomainHandle_t domain() noexcept {
  static nvtxDomainHandle_t const made = nvtxDomainCreateA("lockstep");
  return made;
}

nvtxEventAttributes_t named(const std::string& name) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name.c_str();
  return attributes;
}

}  // namespace

ProfilerRange::ProfilerRange(std::string_view name) noexcept {
  if (domain() == nullptr) return;
  const std::string ended(name);  // NVTX reads to a null character
  const nvtxEventAttributes_t attributes = named(ended);
  nvtxDomainRangePushEx(domain(), &attributes);
}

ProfilerRange::~ProfilerRange() {
  if (domain() != nullptr) nvtxDomainRangePop(domain());
}

void ProfilerPhases::enter(std::string_view name) noexcept {
  leave();
  if (domain() == nullptr) return;
  const std::string ended(name);
  const nvtxEventAttributes_t attributes = named(ended);
  current_ = nvtxDomainRangeStartEx(domain(), &attributes);
}

void ProfilerPhases::leave() noexcept {
  if (current_ != 0) nvtxDomainRangeEnd(domain(), current_);
  current_ = 0;
}

}  // namespace lockstep
