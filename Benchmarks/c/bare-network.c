// bare-network ADDRESS PORT [SOCKET]: each time that the way out may have come (an IPv4 default route or address was
// added, a link began to run) it asks the origin; with SOCKET it writes one datagram there instead, and asks nobody.
#include "bare.h"

#include <linux/if.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <sys/un.h>

enum { KNOWN_LINKS = 64 };
static bool runs[KNOWN_LINKS];

static bool is_news(const struct nlmsghdr *message) {
    const struct rtmsg *route = NLMSG_DATA(message);
    const struct ifinfomsg *link = NLMSG_DATA(message);
    bool before;
    switch (message->nlmsg_type) {
        case RTM_NEWROUTE: return route->rtm_dst_len == 0 && route->rtm_table == RT_TABLE_MAIN;
        case RTM_NEWADDR: return true;
        case RTM_NEWLINK:
            if (link->ifi_index >= KNOWN_LINKS) return false;
            before = runs[link->ifi_index];
            runs[link->ifi_index] = link->ifi_flags & IFF_RUNNING;
            return !before && runs[link->ifi_index];
        default: return false;
    }
}

int main(int argc, char **argv) {
    if (argc != 3 && argc != 4) return 2;
    struct sockaddr_in origin = origin_named(argv[1], argv[2]);
    struct sockaddr_un ear = {.sun_family = AF_UNIX};
    int teller = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (argc == 4) snprintf(ear.sun_path, sizeof ear.sun_path, "%s", argv[3]);
    struct sockaddr_nl name = {
        .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0 || teller < 0 || bind(fd, (struct sockaddr *)&name, sizeof name) < 0) return 1;
    for (;;) {
        _Alignas(struct nlmsghdr) char buffer[16384];
        ssize_t got = recv(fd, buffer, sizeof buffer, 0);
        if (got < 0) return 1;
        size_t left = (size_t)got;
        for (struct nlmsghdr *message = (void *)buffer; NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
            if (!is_news(message)) continue;
            if (argc == 4) (void)!sendto(teller, "1", 1, MSG_NOSIGNAL, (struct sockaddr *)&ear, sizeof ear);
            else fetch(&origin);
        }
    }
}
