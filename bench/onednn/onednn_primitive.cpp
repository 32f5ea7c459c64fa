#include "onednn/onednn_primitive.hpp"

#include <utility>

#include "base/error.hpp"
#include "device/arena.hpp"
#include "device/cpu/threads/parallel.hpp"
#include "device/host_device.hpp"

namespace lockstep::cpu {
namespace {

using dnnl::memory;

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + Arena::alignment - 1) / Arena::alignment * Arena::alignment;
}

std::int64_t bytes_of(const memory::desc& format) { return static_cast<std::int64_t>(format.get_size()); }

memory unbound(const memory::desc& format) { return {format, onednn_runtime().engine, nullptr}; }

void widen(const std::uint16_t* bf16, std::int64_t count, float* values) {
  parallel_parts(loop_threads(), count, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) values[i] = from_bf16(bf16[i]);
  });
}

void narrow(const float* values, std::int64_t count, std::uint16_t* bf16) {
  parallel_parts(loop_threads(), count, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) bf16[i] = to_bf16(values[i]);
  });
}

enum class Use : std::uint8_t { input, output };

Operand make_operand(const StoredFormat& format, const memory::desc& wanted, Use use) {
  Operand operand;
  operand.stored_dtype = format.dtype;
  operand.count = bytes_of(format.f32) / size_of(DType::f32);
  operand.stored = unbound(format.stored());
  if (wanted == format.stored()) {
    operand.wanted = operand.stored;
    return operand;
  }
  operand.wanted = unbound(wanted);
  operand.staging_bytes = aligned(bytes_of(wanted));
  if (wanted == format.converted()) {
    operand.conversion = Conversion::element_type;
    return operand;
  }
  operand.conversion = Conversion::layout;
  const memory::desc& from = use == Use::input ? format.stored() : wanted;
  const memory::desc& to = use == Use::input ? wanted : format.stored();
  const dnnl::engine& engine = onednn_runtime().engine;
  operand.reorder = dnnl::reorder(dnnl::reorder::primitive_desc(engine, from, engine, to));
  return operand;
}

void convert(const Operand& operand, Use use) {
  memory from = use == Use::input ? operand.stored : operand.wanted;
  memory to = use == Use::input ? operand.wanted : operand.stored;
  switch (operand.conversion) {
    case Conversion::none:
      return;
    case Conversion::layout:
      operand.reorder.execute(onednn_runtime().stream, from, to);
      return;
    case Conversion::element_type:
      break;
  }
  const bool widens = (operand.stored_dtype == DType::bf16) == (use == Use::input);
  if (widens) {
    widen(static_cast<const std::uint16_t*>(from.get_data_handle()), operand.count,
          static_cast<float*>(to.get_data_handle()));
  } else {
    narrow(static_cast<const float*>(from.get_data_handle()), operand.count,
           static_cast<std::uint16_t*>(to.get_data_handle()));
  }
}

// Sets every memory object to this call's addresses.
void bind(OneDnnKernel::Parts& parts, const std::array<std::byte*, 3>& operands, std::byte* scratch) {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    Operand& operand = parts.operands[i];
    operand.stored.set_data_handle(operands[i]);
    if (operand.conversion == Conversion::none) continue;
    operand.wanted.set_data_handle(scratch);
    scratch += operand.staging_bytes;
  }
  if (parts.scratchpad_bytes > 0) parts.scratchpad.set_data_handle(scratch);
}

}  // namespace

std::string onednn_version() {
  const dnnl_version_t& version = *dnnl_version();
  return fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
}

const OneDnnRuntime& onednn_runtime() {
  static const OneDnnRuntime runtime = [] {
    OneDnnRuntime made;
    made.attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return made;
  }();
  return runtime;
}

std::unique_ptr<OneDnnKernel> compile_kernel(const dnnl::primitive_desc& description,
                                             const std::array<int, 3>& arguments,
                                             const std::array<StoredFormat, 3>& formats) {
  try {
    auto parts = std::make_unique<OneDnnKernel::Parts>();
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const memory::desc wanted = description.query_md(dnnl::query::exec_arg_md, arguments[i]);
      parts->operands[i] = make_operand(formats[i], wanted, i == 2 ? Use::output : Use::input);
      parts->arguments.emplace(arguments[i], parts->operands[i].wanted);
    }
    parts->scratchpad_bytes = bytes_of(description.scratchpad_desc());
    if (parts->scratchpad_bytes > 0) {
      parts->scratchpad = unbound(description.scratchpad_desc());
      parts->arguments.emplace(DNNL_ARG_SCRATCHPAD, parts->scratchpad);
    }
    parts->primitive = dnnl::primitive(description);
    return std::make_unique<OneDnnKernel>(std::move(parts));
  } catch (const dnnl::error&) {
    return nullptr;
  }
}

OneDnnKernel::OneDnnKernel(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
OneDnnKernel::~OneDnnKernel() = default;

std::int64_t OneDnnKernel::scratch_bytes() const {
  std::int64_t bytes = parts_->scratchpad_bytes;
  for (const Operand& operand : parts_->operands) bytes += operand.staging_bytes;
  return bytes;
}

void OneDnnKernel::run(const std::array<std::byte*, 3>& operands, std::byte* scratch) {
  try {
    bind(*parts_, operands, scratch);
    convert(parts_->operands[0], Use::input);
    convert(parts_->operands[1], Use::input);
    parts_->primitive.execute(onednn_runtime().stream, parts_->arguments);
    convert(parts_->operands[2], Use::output);
    dnnl::stream(onednn_runtime().stream).wait();
  } catch (const dnnl::error& error) {
    throw Error(fmt::format("oneDNN could not run a kernel it had built: {}.", error.message));
  }
}

}  // namespace lockstep::cpu
