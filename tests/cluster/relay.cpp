// Cables with a delay, for the hosts of cluster.py where the kernel has no netem: forwards every
// packet that arrives at one of the interfaces to its receivers, in order, after the delay.
//
// usage: relay DELAY_US MBIT INTERFACE..     MBIT: limit of the rate of each host; 0: no limit
//
// A switch in user space. Packets are passed as between the hosts' kernels, with their offloads
// (PACKET_VNET_HDR): up to 64 KiB of a stream in one packet, without checksums. The delay counts
// from the kernel's receipt of a packet, not from its receipt by this program. Prints "ready", and
// runs until it is killed.
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

namespace {

using Nanoseconds = std::int64_t;

constexpr std::size_t header_bytes = 10;  // struct virtio_net_hdr, whose header is not valid C++
constexpr std::size_t address_bytes = 6, ethernet_bytes = 14;
constexpr std::size_t longest_packet = header_bytes + ethernet_bytes + (std::size_t(1) << 16) + 64;

/// A packet with its offload header. Its memory is reused.
struct Packet {
  Nanoseconds due = 0;
  std::size_t bytes = 0;
  std::unique_ptr<unsigned char[]> data{};

  const unsigned char* receiver() const { return data.get() + header_bytes; }
  const unsigned char* sender() const { return receiver() + address_bytes; }
};

struct Cable {
  const char* name = "";
  int socket = -1;
  Nanoseconds idle_since =
      0;  ///< when the packets received so far have passed, at the rate of the cable
  std::deque<Packet> packets{};
  std::vector<std::vector<unsigned char>> hosts{};  ///< addresses known to be behind the cable
};

[[noreturn]] void give_up(const char* what, const char* name) {
  std::fprintf(stderr, "relay: %s of %s: %s\n", what, name, std::strerror(errno));
  std::exit(1);
}

Nanoseconds nanoseconds(const timespec& time) {
  return Nanoseconds(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

Nanoseconds now() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);  // as the kernel's time stamps
  return nanoseconds(time);
}

void set(int socket, int level, int option, int value, const char* what, const char* name) {
  if (setsockopt(socket, level, option, &value, sizeof value) != 0) give_up(what, name);
}

Cable plug(const char* name) {
  Cable cable{.name = name};
  cable.socket = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0);
  if (cable.socket < 0) give_up("socket", name);
  constexpr int room = 64 << 20;
  set(cable.socket, SOL_PACKET, PACKET_VNET_HDR, 1, "PACKET_VNET_HDR", name);
  set(cable.socket, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1, "PACKET_IGNORE_OUTGOING", name);
  set(cable.socket, SOL_SOCKET, SO_TIMESTAMPNS, 1, "SO_TIMESTAMPNS", name);
  set(cable.socket, SOL_SOCKET, SO_RCVBUFFORCE, room, "SO_RCVBUFFORCE", name);
  set(cable.socket, SOL_SOCKET, SO_SNDBUFFORCE, room, "SO_SNDBUFFORCE", name);
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(0x0003);  // ETH_P_ALL
  address.sll_ifindex = int(if_nametoindex(name));
  if (bind(cable.socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    give_up("bind", name);
  return cable;
}

/// When the kernel received the packet that recvmsg returned.
Nanoseconds arrival(msghdr& message) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c))
    if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPNS) {
      timespec time{};
      std::memcpy(&time, CMSG_DATA(c), sizeof time);
      return nanoseconds(time);
    }
  return now();
}

class Relay {
 public:
  Relay(Nanoseconds delay, double bytes_per_ns, std::deque<Cable> cables)
      : delay_(delay), bytes_per_ns_(bytes_per_ns), cables_(std::move(cables)) {
    for (const Cable& cable : cables_) polls_.push_back({cable.socket, POLLIN, 0});
  }

  [[noreturn]] void run() {
    for (;;) {
      const Nanoseconds wait = hand_over();
      const timespec limit{time_t(wait / 1'000'000'000), long(wait % 1'000'000'000)};
      if (ppoll(polls_.data(), polls_.size(), &limit, nullptr) <= 0) continue;
      for (std::size_t i = 0; i < cables_.size(); ++i)
        if (polls_[i].revents != 0) take(cables_[i]);
    }
  }

 private:
  /// Receives some of the packets that have arrived.
  void take(Cable& cable) {
    for (int i = 0; i < 16; ++i) {
      if (free_.empty()) free_.emplace_back(new unsigned char[longest_packet]);
      iovec part{free_.back().get(), longest_packet};
      alignas(cmsghdr) char control[256];
      msghdr message{};
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      const ssize_t bytes = recvmsg(cable.socket, &message, 0);
      if (bytes < 0 && (errno == EAGAIN || errno == ENETDOWN)) return;
      if (bytes < 0 || (message.msg_flags & MSG_TRUNC) != 0) {
        std::fprintf(stderr, "relay: a packet is lost at %s: %s\n", cable.name,
                     bytes < 0 ? std::strerror(errno) : "it is too long");
        continue;
      }
      if (std::size_t(bytes) < header_bytes + ethernet_bytes) continue;
      Packet packet{0, std::size_t(bytes), std::move(free_.back())};
      free_.pop_back();
      if (!is_behind(cable, packet.sender()))
        cable.hosts.emplace_back(packet.sender(), packet.sender() + address_bytes);
      Nanoseconds passed = arrival(message);
      if (bytes_per_ns_ > 0) {
        if (passed < cable.idle_since) passed = cable.idle_since;
        passed += Nanoseconds(double(packet.bytes - header_bytes) / bytes_per_ns_);
        cable.idle_since = passed;
      }
      packet.due = passed + delay_;
      cable.packets.push_back(std::move(packet));
    }
  }

  /// Forwards packets that are due. @return the time until the next one is
  Nanoseconds hand_over() {
    Nanoseconds wait = 1'000'000'000;
    for (Cable& cable : cables_)
      while (!cable.packets.empty()) {
        const Nanoseconds left = cable.packets.front().due - now();
        if (left > 0) {
          if (left < wait) wait = left;
          break;
        }
        send(cable, cable.packets.front());
        free_.push_back(std::move(cable.packets.front().data));
        cable.packets.pop_front();
      }
    return wait;
  }

  /// Sends to the receiver's cable; if that is unknown or the packet is a broadcast, to all others.
  void send(const Cable& from, const Packet& packet) {
    for (const Cable& to : cables_)
      if (is_behind(to, packet.receiver())) return pass(to, packet);
    for (const Cable& to : cables_)
      if (&to != &from) pass(to, packet);
  }

  /// Packets to an unplugged cable are lost.
  static void pass(const Cable& to, const Packet& packet) {
    if (::send(to.socket, packet.data.get(), packet.bytes, 0) < 0 && errno != ENETDOWN &&
        errno != ENXIO)
      std::fprintf(stderr, "relay: a packet of %zu bytes is lost before %s: %s\n", packet.bytes,
                   to.name, std::strerror(errno));
  }

  static bool is_behind(const Cable& cable, const unsigned char* address) {
    for (const auto& known : cable.hosts)
      if (std::memcmp(known.data(), address, address_bytes) == 0) return true;
    return false;
  }

  Nanoseconds delay_;
  double bytes_per_ns_;
  std::deque<Cable> cables_;
  std::vector<pollfd> polls_;
  std::vector<std::unique_ptr<unsigned char[]>> free_{};  ///< packet buffers for reuse
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: relay DELAY_US MBIT INTERFACE..\n");
    return 2;
  }
  std::deque<Cable> cables;
  for (int i = 3; i < argc; ++i) cables.push_back(plug(argv[i]));
  // Real-time priority, if permitted: packets are forwarded on time although ranks keep all cores
  // busy.
  const sched_param priority{.sched_priority = 50};
  sched_setscheduler(0, SCHED_FIFO, &priority);
  prctl(PR_SET_TIMERSLACK, 1);
  std::puts("ready");
  std::fflush(stdout);
  const auto relay = std::make_unique<Relay>(Nanoseconds(std::atof(argv[1]) * 1e3),
                                             std::atof(argv[2]) / 8e3, std::move(cables));
  relay->run();
}
