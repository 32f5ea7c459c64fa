#include "slurm/retry/text_cause.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <ranges>
#include <string_view>
#include <vector>

#include "slurm/retry/pattern.hpp"

namespace lockstep {
namespace {

constexpr std::size_t last_lines = 20;  // among which the error must be

enum class FoundIn : std::uint8_t { exception, line };

struct TextSign {
  Cause cause;
  FoundIn where;
  const char* pattern;
};

// The first line of a Python exception, or a line of any program.
constexpr std::array<TextSign, 10> text_signs{{
    {Cause::out_of_memory, FoundIn::exception,
     R"(CUDA out of memory|CUDA error: out of memory|CUDA_ERROR_OUT_OF_MEMORY)"},
    {Cause::out_of_memory, FoundIn::exception, R"(cuda runtime error \(2\)|OOM when allocating tensor)"},
    {Cause::out_of_memory, FoundIn::line, R"(^  what\(\): .*(CUDA out of memory|CUDA error: out of memory))"},
    {Cause::out_of_memory, FoundIn::line, R"(^(CUDA|Cuda|cuda) (error|failure)(:| .*:) '?out of memory)"},
    {Cause::driver_too_old, FoundIn::exception,
     R"(CUDA driver version is insufficient|NVIDIA driver on your system is too old)"},
    {Cause::driver_too_old, FoundIn::line,
     R"(^(  what\(\): .*|-> |(CUDA|Cuda|cuda) (error|failure)(:| .*:) '?)?CUDA driver version is insufficient)"},
    {Cause::import_error, FoundIn::exception, R"(^([A-Za-z0-9_]+\.)*(ImportError|ModuleNotFoundError)(:|$))"},
    {Cause::import_error, FoundIn::line, R"(^[^ ]*python[0-9.]*: No module named )"},
    {Cause::disk_full, FoundIn::exception, R"((\[Errno 28\]|: |= ') ?No space left on device)"},
    {Cause::disk_full, FoundIn::line, R"(: (\[Errno 28\] )?No space left on device( \[.*\])?\.?$)"},
}};

// PyTorch, torchrun and mpirun mark lines with a rank: "[rank0]: ", "[default1]:", "[1,0]<stderr>:".
std::string_view without_rank(std::string_view line) {
  const std::size_t end = line.find(']');
  if (!line.starts_with('[') || end == std::string_view::npos) return line;
  const bool is_name = std::ranges::all_of(
      line.substr(1, end - 1), [](unsigned char letter) { return std::isalnum(letter) != 0 || letter == ','; });
  std::string_view rest = line.substr(end + 1);
  for (const std::string_view stream : {"<stdout>", "<stderr>"}) {
    if (rest.starts_with(stream)) rest.remove_prefix(stream.size());
  }
  if (!is_name || !rest.starts_with(':')) return line;
  rest.remove_prefix(1);
  if (rest.starts_with(' ')) rest.remove_prefix(1);
  return rest;
}

// Without blank lines, messages of launchers, stacks of C++ and what progress bars have overwritten.
std::vector<std::string_view> errors_and_output(std::span<const std::string> lines) {
  std::vector<std::string_view> kept;
  for (std::string_view line : lines) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    line = without_rank(line.substr(line.rfind('\r') + 1));
    const bool is_noise = line.find_first_not_of(' ') == std::string_view::npos || line.starts_with("srun: ") ||
                          line.starts_with("slurmstepd") || line.starts_with("frame #");
    if (!is_noise) kept.push_back(line);
  }
  return kept;
}

using Lines = std::span<const std::string_view>;

struct Traceback {
  std::size_t begin = 0;  // index of its first line
  std::size_t end = 0;    // of the exception, in the first line that is not indented
};

std::optional<Traceback> last_traceback(Lines lines) {
  constexpr std::string_view first_line = "Traceback (most recent call last):";
  const auto found = std::ranges::find(std::views::reverse(lines), first_line);
  if (found == lines.rend()) return std::nullopt;
  const auto begin = static_cast<std::size_t>(lines.rend() - found) - 1;
  std::size_t end = begin + 1;
  while (end < lines.size() && lines[end].starts_with(' ')) ++end;
  return end < lines.size() ? std::optional(Traceback{begin, end}) : std::nullopt;
}

// Exceptions of a process that starts others, about one of those, which has printed why it failed.
bool is_about_another_process(std::string_view exception) {
  constexpr std::array<std::string_view, 3> names = {
      "torch.distributed.elastic.multiprocessing.errors.ChildFailedError", "subprocess.CalledProcessError",
      "torch.multiprocessing.spawn.ProcessExitedException"};
  return std::ranges::any_of(names, [&](std::string_view name) { return exception.starts_with(name); });
}

bool joins_a_chain(std::string_view line) {
  return line == "During handling of the above exception, another exception occurred:" ||
         line == "The above exception was the direct cause of the following exception:";
}

// The exception's text in one line. Old versions of PyTorch begin it on the next line.
std::string exception_text(Lines lines, std::size_t at) {
  std::string text(lines[at]);
  const bool continues = (text.ends_with(':') || text.ends_with(": ")) && at + 1 < lines.size();
  if (!continues) return text;
  if (text.back() == ':') text += ' ';
  return text.append(lines[at + 1]);
}

// The exceptions of a chain, the last one first.
std::vector<std::string> chain_that_ends_with(std::optional<Traceback> last, Lines lines) {
  std::vector<std::string> texts;
  while (last) {
    texts.push_back(exception_text(lines, last->end));
    if (last->begin == 0 || !joins_a_chain(lines[last->begin - 1])) break;
    lines = lines.first(last->begin - 1);
    last = last_traceback(lines);
  }
  return texts;
}

bool is_warning(std::string_view line) {
  std::string small(line);
  std::ranges::transform(small, small.begin(), [](unsigned char letter) { return std::tolower(letter); });
  return small.find("warn") != std::string::npos;
}

std::optional<Cause> sign_in(const std::string& text, FoundIn where) {
  const auto found = std::ranges::find_if(
      text_signs, [&](const TextSign& sign) { return sign.where == where && Pattern(sign.pattern).matches(text); });
  return found == text_signs.end() ? std::nullopt : std::optional(found->cause);
}

std::optional<TextCause> first_sign(const std::vector<std::string>& texts, FoundIn where) {
  for (const std::string& text : texts) {
    if (const std::optional<Cause> cause = sign_in(text, where)) return TextCause{*cause, text};
  }
  return std::nullopt;
}

}  // namespace

std::optional<TextCause> find_text_cause(int code, std::span<const std::string> lines) {
  const Cause own = cause_of_code(code);
  if (own != Cause::failed && own != Cause::crashed && own != Cause::other_code) return std::nullopt;
  const std::vector<std::string_view> all = errors_and_output(lines);
  Lines rest = all;
  std::optional<Traceback> last = last_traceback(rest);
  while (last && is_about_another_process(rest[last->end])) {
    rest = rest.first(last->begin);
    last = last_traceback(rest);
  }
  if (last && rest.size() - last->end <= last_lines) {
    return first_sign(chain_that_ends_with(last, rest), FoundIn::exception);
  }
  std::vector<std::string> texts;
  for (const std::string_view line : std::views::reverse(rest.last(std::min(rest.size(), last_lines)))) {
    if (!is_warning(line)) texts.emplace_back(line);
  }
  return first_sign(texts, FoundIn::line);
}

std::optional<Cause> cause_in_line(const std::string& line) {
  const std::optional<Cause> of_exception = sign_in(line, FoundIn::exception);
  return of_exception ? of_exception : sign_in(line, FoundIn::line);
}

}  // namespace lockstep
