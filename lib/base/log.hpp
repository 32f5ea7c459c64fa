// The only place that prints. Every line of a log starts with [rank N, host]; on a terminal a progress line is redrawn
// in place. Rank 0 alone speaks unless something is wrong.
//
// What is printed may come from files: it is shown as base/text/printable has it, so that no name of a class steers a
// terminal or passes for a line of its own.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace lockstep::log {

// Call before anything is opened. A stream that was closed when the program was started is filled with one that cannot
// be written: else a file would get its number, and what is printed.
void fill_closed_streams();

// Who speaks: set once, when the rank is known. Before that: rank 0 of this host.
void set_node_leader(int rank, std::string host);
std::string prefix();  // "[rank 3, gpu07]"
std::string host();    // "gpu07"

// Rank 0: one line on standard output. Other ranks: nothing.
void info(std::string_view text);
// The same, on the terminal that people see, at once: mpirun passes on nothing while it ends its ranks. Without such a
// terminal as info().
void at_once(std::string_view text);
// Any rank: one line on standard error. `error` lines end the program; nothing prints after them.
void warning(std::string_view text);
void error(std::string_view text);
// A result for people or scripts, without a prefix, on standard output (rank 0 only): tables, JSON lines. New lines
// and tabs stay: a field that comes from a file goes through printable() before. Throws as system_failure() where it
// cannot be written: a result that is lost is no success. Lines of a log are no results, and may be lost.
void plain(std::string_view text);
void relayed(std::string_view text);  // likewise, but a line of another program's log

template <typename... Args>
void info(fmt::format_string<Args...> text, Args&&... args) {
  info(std::string_view(fmt::format(text, std::forward<Args>(args)...)));
}
template <typename... Args>
void warning(fmt::format_string<Args...> text, Args&&... args) {
  warning(std::string_view(fmt::format(text, std::forward<Args>(args)...)));
}

// A live line on a terminal (rank 0): redrawn at most ten times a second, cut to the window's width, cleared before
// other lines are printed. Where standard output is no terminal: nothing, use info() at intervals.
void progress(std::string_view text);
bool is_terminal();
std::size_t progress_columns();  // that such a line has
// What a terminal or a pipe has had no room for yet: waits as long as it is being read, a second where it is not. A
// program that ends does so by itself.
void let_out();
void end_progress();  // leaves the last text standing and ends its line

}  // namespace lockstep::log
