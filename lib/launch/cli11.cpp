// The parts of CLI11 that its class App needs when it runs. Each source that includes them compiles them anew, which
// takes seconds. So the headers of this folder include <CLI/App.hpp> alone.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
