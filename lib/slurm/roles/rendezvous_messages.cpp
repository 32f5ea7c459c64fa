#include "slurm/roles/rendezvous_messages.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text/json_text.hpp"
#include "slurm/roles/role_json.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::json;

constexpr int message_nesting = 4;
constexpr std::int64_t most = std::int64_t{1} << 40;

// Returns null if the line is not a JSON object.
Json object_in(const std::string& line) {
  try {
    Json value = parse_shallow_json(line, message_nesting);
    return value.is_object() ? value : Json();
  } catch (const Error&) {
    return {};
  }
}

std::optional<std::int64_t> count_of(const Json& value, std::int64_t limit) {
  const bool fits = value.is_number_unsigned() && value.get<std::uint64_t>() <= static_cast<std::uint64_t>(limit);
  return fits ? std::optional(value.get<std::int64_t>()) : std::nullopt;
}

}  // namespace

std::string join_request_text(const JoinRequest& request) {
  return json_text({{"step", request.step}, {"rank", request.rank}, {"slurm_step", request.slurm_step}});
}

std::optional<JoinRequest> parse_join_request(const std::string& line) {
  const Json object = object_in(line);
  if (!object.is_object()) return std::nullopt;
  const auto step = count_of(object.value("step", Json()), most);
  const auto rank = count_of(object.value("rank", Json()), most);
  const auto slurm_step = count_of(object.value("slurm_step", Json()), most);
  if (!step || !rank || !slurm_step) return std::nullopt;
  return JoinRequest{static_cast<std::size_t>(*step), static_cast<std::size_t>(*rank), *slurm_step};
}

std::string reservation_text(const PortReservation& reservation) {
  return json_text({{"place", reservation.place}, {"ports", reservation.ports}});
}

std::optional<PortReservation> parse_reservation(const std::string& line) {
  const Json object = object_in(line);
  if (!object.is_object()) return std::nullopt;
  const auto place = count_of(object.value("place", Json()), max_instances - 1);
  const Json ports = object.value("ports", Json());
  if (!place || !ports.is_object() || ports.size() > max_ports + 3) return std::nullopt;
  PortReservation reservation{static_cast<std::size_t>(*place), {}};
  for (const auto& [label, value] : ports.items()) {
    const auto count = count_of(value, max_ports);
    if (!count || !is_role_name(label)) return std::nullopt;
    reservation.ports[label] = *count;
  }
  return reservation;
}

std::string location_text(const ClusterInstance& one) {
  return json_text({{"host", one.host}, {"address", one.address}, {"ports", one.ports}});
}

bool read_location(const std::string& line, const std::map<std::string, std::int64_t>& ports, ClusterInstance& one) {
  try {
    read_location(object_in(line), ports, one);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace lockstep
