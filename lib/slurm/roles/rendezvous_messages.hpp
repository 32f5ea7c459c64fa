// The messages of rendezvous.hpp. The parsers return an empty result for any other line.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "slurm/roles/cluster.hpp"

namespace lockstep {

struct JoinRequest {
  std::size_t step = 0;
  std::size_t rank = 0;
  std::int64_t slurm_step = 0;
};
std::string join_request_text(const JoinRequest& request);
std::optional<JoinRequest> parse_join_request(const std::string& line);

struct PortReservation {
  std::size_t place = 0;
  std::map<std::string, std::int64_t> ports;  // label and count
};
std::string reservation_text(const PortReservation& reservation);
std::optional<PortReservation> parse_reservation(const std::string& line);

// The host, address and ports of an instance.
std::string location_text(const ClusterInstance& one);
// Reads into `one`. Returns false if the line is no location, or its ports are not the requested ones.
bool read_location(const std::string& line, const std::map<std::string, std::int64_t>& ports, ClusterInstance& one);

}  // namespace lockstep
