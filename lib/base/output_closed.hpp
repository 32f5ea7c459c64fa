// Thrown by log::plain() if nobody reads standard output any more (EPIPE), as after `| head -1`. The program should end
// without a message, like programs that SIGPIPE ends.
#pragma once

#include <exception>

namespace lockstep {

class OutputClosed : public std::exception {};

}  // namespace lockstep
