#include "preflight/floors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "made_cluster.hpp"
#include "support/message_of.hpp"
#include "support/messages.hpp"

namespace lockstep::floors_test {

TEST(Floors, what_is_written_is_read_again) {
  const Floors written = floors_below(made_cluster(2));
  EXPECT_DOUBLE_EQ(written.samples_per_second, 800);
  EXPECT_DOUBLE_EQ(written.write_bytes_per_second, 720e6);
  EXPECT_DOUBLE_EQ(written.read_bytes_per_second, 1.6e9);
  EXPECT_DOUBLE_EQ(written.bus_bytes_per_second, 0.8 * 6.9e9);
  const Floors read = parse_floors(floors_text(written), "floors.json");
  EXPECT_EQ(read.samples_per_second, written.samples_per_second);
  EXPECT_EQ(read.bus_bytes_per_second, written.bus_bytes_per_second);
  EXPECT_EQ(read.compute_share, 0.8);
}

TEST(Floors, the_settings_are_kept) {
  Floors written = floors_below(made_cluster(2));
  EXPECT_TRUE(parse_floors(floors_text(written), "floors.json").settings.is_null());
  written.settings = {{"model", "lenet"}, {"batch", 4}};
  EXPECT_EQ(parse_floors(floors_text(written), "floors.json").settings, written.settings);
  expect_error(Failure::usage, {"'floors.json'", "'settings'"},
               [] { parse_floors(R"({"settings": 1})", "floors.json"); });
}

TEST(Floors, what_is_left_out_keeps_its_default) {
  const Floors floors = parse_floors(R"({"clock_seconds": 0.1})", "floors.json");
  EXPECT_EQ(floors.clock_seconds, 0.1);
  EXPECT_EQ(floors.link_share, 0.5);
  EXPECT_EQ(floors.samples_per_second, 0);
}

TEST(Floors, anything_else_is_refused) {
  const auto message = [](const std::string& text) {
    return message_of(Failure::usage, [&] { parse_floors(text, "floors.json"); });
  };
  for (const char* text : {"", "[]", "7", "{", "\"x\"", "{\"clock_seconds\": 1}}"}) {
    expect_message(message(text), {"--write-floors", "floors.json"});
  }
  expect_message(message(R"({"clock_second": 1})"), {"floors.json", "clock_second"});
  for (const char* value : {"-1", "1.5", "null", "\"1\"", "[1]", "1e999"}) {
    SCOPED_TRACE(value);
    const bool is_json = value != std::string("1e999");
    expect_message(message(std::string("{\"compute_share\": ") + value + "}"),
                   {"'floors.json'", is_json ? "'compute_share'" : "--write-floors"});
  }
}

}  // namespace lockstep::floors_test
