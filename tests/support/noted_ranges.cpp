// The library of a profiler for NVTX (NVTX_INJECTION64_PATH): it appends a line for each call to the file that
// LOCKSTEP_NOTED_RANGES names, with the thread's number: "12 push forward conv1", "12 pop", "12 start in forward", "12
// end in forward". Domains of other names have no profiler.
#include <fmt/format.h>
#include <nvtx3/nvToolsExt.h>

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "support/noted_line.hpp"

namespace {

std::mutex started_mutex;
std::vector<std::string> started;  // names by id - 1; guarded by started_mutex

using lockstep::note_line;

nvtxDomainHandle_t create_domain(const char* name) {
  static int domain = 0;
  return std::string_view(name) == "lockstep" ? reinterpret_cast<nvtxDomainHandle_t>(&domain) : nullptr;
}

int push(nvtxDomainHandle_t /*domain*/, const nvtxEventAttributes_t* attributes) {
  note_line(fmt::format("push {}", attributes->message.ascii));
  return 0;
}

int pop(nvtxDomainHandle_t /*domain*/) {
  note_line("pop");
  return 0;
}

nvtxRangeId_t start(nvtxDomainHandle_t /*domain*/, const nvtxEventAttributes_t* attributes) {
  const std::lock_guard lock(started_mutex);
  started.emplace_back(attributes->message.ascii);
  note_line("start " + started.back());
  return started.size();
}

void end(nvtxDomainHandle_t /*domain*/, nvtxRangeId_t id) {
  const std::lock_guard lock(started_mutex);
  note_line("end " + started.at(id - 1));
}

template <typename Function>
NvtxFunctionPointer erased(Function* function) {
  return reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): NVTX's name
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t table_of) {
  const auto* const callbacks = static_cast<const NvtxExportTableCallbacks*>(table_of(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) return 0;
  *table[NVTX_CBID_CORE2_DomainCreateA] = erased(create_domain);
  *table[NVTX_CBID_CORE2_DomainRangePushEx] = erased(push);
  *table[NVTX_CBID_CORE2_DomainRangePop] = erased(pop);
  *table[NVTX_CBID_CORE2_DomainRangeStartEx] = erased(start);
  *table[NVTX_CBID_CORE2_DomainRangeEnd] = erased(end);
  return 1;
}
