#include "slurm/roles/arrival.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <future>
#include <set>
#include <thread>

#include "slurm/roles/arrival_lines.hpp"
#include "slurm/roles/small_cluster.hpp"
#include "support/mutation.hpp"
#include "support/words_of.hpp"

namespace lockstep {
namespace {

// Attends until `is_enough`, for ten seconds at most.
template <typename IsEnough>
bool attend_until(ArrivalDesk& desk, IsEnough is_enough) {
  for (int tries = 0; tries < 1000 && !is_enough(); ++tries) {
    desk.attend();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return is_enough();
}

std::future<Arrived> start_task(const ArrivalPoint& point, std::int64_t rank) {
  return std::async(std::launch::async, [=] { return arrive(point, rank, 40 + std::int64_t(point.step), "n1", ""); });
}

TEST(ArrivalTest, all_tasks_learn_of_all_others_and_no_port_is_promised_twice) {
  const std::vector<Role> roles = small_cluster().roles;  // two servers by themselves, a world of three workers
  ArrivalDesk desk(roles, steps_of(roles));
  std::vector<std::future<Arrived>> tasks;
  tasks.push_back(start_task(desk.point_of(1), 0));
  for (const int rank : {2, 0, 1}) tasks.push_back(start_task(desk.point_of(2), rank));
  ASSERT_TRUE(attend_until(desk, [&] { return desk.has_arrived(1) && desk.has_arrived(2); }));
  EXPECT_FALSE(desk.all_have_arrived());
  EXPECT_EQ(desk.missing_words(), "ps[0]");
  EXPECT_EQ(desk.slurm_step(2), 42);
  EXPECT_FALSE(desk.slurm_step(0));
  tasks.push_back(start_task(desk.point_of(0), 0));
  ASSERT_TRUE(attend_until(desk, [&] { return desk.all_have_arrived(); }));
  Cluster cluster = small_cluster();
  desk.fill_in(cluster);
  desk.begin(cluster);
  std::set<int> ports;
  std::size_t reserved = 0;
  for (const ClusterInstance& one : cluster.instances) {
    for (const auto& [label, numbers] : one.ports) {
      ports.insert(numbers.begin(), numbers.end());
      reserved += numbers.size();
    }
  }
  EXPECT_EQ(reserved, 15U);  // ssh and http of five, two of rpc of two servers, one of the master
  EXPECT_EQ(ports.size(), reserved);
  const std::vector<std::size_t> places = {1, 4, 2, 3, 0};
  for (std::size_t task = 0; task < tasks.size(); ++task) {
    const Arrived arrived = tasks[task].get();
    EXPECT_EQ(arrived.place, places[task]);
    EXPECT_EQ(arrived.cluster.instances, cluster.instances);
  }
}

TEST(ArrivalTest, a_stranger_and_a_task_that_leaves_have_not_arrived) {
  const std::vector<Role> roles = {{.name = "worker", .instances = 12, .command = {"x"}}};
  ArrivalDesk desk(roles, steps_of(roles));
  ArrivalPoint wrong = desk.point_of(0);
  wrong.token[0] = wrong.token[0] == '0' ? '1' : '0';
  std::future<Arrived> stranger = start_task(wrong, 0);
  attend_until(desk, [&] { return stranger.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  EXPECT_EQ(words_of(Failure::out_of_step, [&] { stranger.get(); }),
            "this task cannot become an instance: run_roles has given up (run_roles waits for all of them). Its own "
            "words say "
            "more.");
  EXPECT_EQ(
      desk.missing_words(),
      "worker[0], worker[1], worker[2], worker[3], worker[4], worker[5], worker[6], worker[7], worker[8], worker[9] "
      "and 2 others");
  const ArrivalPoint point = desk.point_of(0);
  {
    const auto socket = connect_to("127.0.0.1", point.port, std::chrono::seconds(5), 1 << 20);
    ASSERT_NE(socket, nullptr);
    socket->send(greeting_text({point.token, 0, 0, 7}));
    ClusterInstance here{.role = 0, .instance = 0, .host = "n1", .address = "10.0.0.1", .ports = {}};
    here.ports = {{"ssh", {1}}, {"http", {2}}, {"master", {3}}};
    socket->send(whereabouts_text(here));
    EXPECT_TRUE(attend_until(desk, [&] { return desk.has_arrived(0); }));
  }
  EXPECT_TRUE(attend_until(desk, [&] { return !desk.has_arrived(0); }));
}

TEST(ArrivalTest, a_desk_that_nobody_answers_at_is_told) {
  ArrivalPoint point;
  {
    const std::vector<Role> roles = {{.name = "worker", .command = {"x"}}};
    point = ArrivalDesk(roles, steps_of(roles)).point_of(0);
  }
  point.addresses = {"127.0.0.1"};
  EXPECT_EQ(words_of(Failure::out_of_step, [&] { arrive(point, 0, 0, "n1", ""); }),
            "this task cannot become an instance: nobody answers at port " + std::to_string(point.port) +
                " of 127.0.0.1 (run_roles waits for all of them). Its own words say more.");
}

TEST(ArrivalTest, the_interface_of_a_users_choice_has_to_have_an_address) {
  const std::vector<Role> roles = {{.name = "worker", .command = {"x"}}};
  ArrivalDesk desk(roles, steps_of(roles));
  auto task = std::async(std::launch::async, [&] { return arrive(desk.point_of(0), 0, 0, "n1", "ib7"); });
  attend_until(desk, [&] { return task.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  EXPECT_EQ(words_of(Failure::usage, [&] { task.get(); }),
            "the network interface 'ib7' has no IPv4 address here (LOCKSTEP_INTERFACE: instances would not find each "
            "other). Name another.");
  auto loopback = std::async(std::launch::async, [&] { return arrive(desk.point_of(0), 0, 0, "n1", "lo"); });
  ASSERT_TRUE(attend_until(desk, [&] { return desk.all_have_arrived(); }));
  Cluster cluster;
  desk.fill_in(cluster);
  desk.begin(cluster);
  EXPECT_EQ(loopback.get().cluster.instances.at(0).address, "127.0.0.1");
}

TEST(ArrivalTest, where_to_arrive_is_passed_on_as_text) {
  const ArrivalPoint point{"0123", 7, 4711, {"10.0.0.1", "::1"}};
  const std::optional<ArrivalPoint> read = parse_arrival(arrival_text(point));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->token, "0123");
  EXPECT_EQ(read->step, 7U);
  EXPECT_EQ(read->port, 4711);
  EXPECT_EQ(read->addresses, point.addresses);
  for (const char* text : {"", "a", "a 1 2", "a x 4711 ::1", "a 1 0 ::1", "a 1 65536 ::1", "a -1 4711 ::1"}) {
    EXPECT_FALSE(parse_arrival(text)) << text;
  }
}

TEST(ArrivalTest, no_line_does_more_than_be_passed_over) {
  const std::map<std::string, std::int64_t> ports = {{"ssh", 1}, {"rpc", 2}};
  ClusterInstance one{.role = 0, .instance = 0, .host = "n1", .address = "10.0.0.1", .ports = {}};
  one.ports = {{"ssh", {1}}, {"rpc", {2, 3}}};
  const std::vector<std::string> whole = {greeting_text({"token", 1, 2, 3}), reservation_text({4, ports}),
                                          whereabouts_text(one)};
  EXPECT_TRUE(parse_greeting(whole[0]) && parse_reservation(whole[1]) && read_whereabouts(whole[2], ports, one));
  for (std::uint64_t round = 0; round < mutation_rounds(3000); ++round) {
    const std::string line = mutated(whole[round % 3], round);
    parse_greeting(line);
    parse_reservation(line);
    read_whereabouts(line, ports, one);
  }
}

}  // namespace
}  // namespace lockstep
