// The log, the only place that prints. Every line of a log starts with [rank N, host]. On a terminal a progress line is
// redrawn in place. Only rank 0 prints unless something is wrong.
//
// Printed text may come from files. It goes through base/text/printable, so that no class name can control a terminal
// or look like a line of its own.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace lockstep::log {

// Call before any file is opened. Opens standard streams that were closed at the program's start, so that a write to
// them fails. Otherwise a file would get the stream's number, and everything that is printed.
void fill_closed_streams();

// Sets the rank and the host of this process, once, when the rank is known. Until then: rank 0 of this host.
void set_identity(int rank, std::string host);
std::string prefix();  // "[rank 3, gpu07]"
std::string host();    // "gpu07"

// Prints one line on standard output, on rank 0 only.
void info(std::string_view text);
// As info(), but writes to the user's terminal directly: mpirun forwards no output while it ends its ranks. Without
// such a terminal the same as info().
void info_to_terminal(std::string_view text);
// Any rank: prints one line on standard error. error() is the last output: nothing prints after it.
void warning(std::string_view text);
void error(std::string_view text);
// Prints a result without a prefix on standard output (rank 0 only): tables, JSON lines. Newlines and tabs stay, so
// pass each field that comes from a file through printable() first. Throws as system_failure() if the write fails: a
// lost result is a failure, unless its reader has gone (OutputClosed). Lines of the log, in contrast, may be lost.
void plain(std::string_view text);
// As plain(), for a line of another program's log: does not throw, and the line may be lost.
void forwarded(std::string_view text);

template <typename... Args>
void info(fmt::format_string<Args...> text, Args&&... args) {
  info(std::string_view(fmt::format(text, std::forward<Args>(args)...)));
}
template <typename... Args>
void warning(fmt::format_string<Args...> text, Args&&... args) {
  warning(std::string_view(fmt::format(text, std::forward<Args>(args)...)));
}

// The progress line of a terminal (rank 0). Redrawn at most ten times a second, cut to the window's width, and cleared
// before other lines are printed. Does nothing if standard output is not a terminal: use info() at intervals.
void progress(std::string_view text);
bool is_terminal();
std::size_t progress_columns();  // width of a progress line
// Flushes buffered output. Gives up after one second without progress, or after ten seconds. Runs at exit by itself.
void flush();
void end_progress();  // keeps the last text on the screen and ends its line

}  // namespace lockstep::log
