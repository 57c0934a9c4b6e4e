// bare-command PROGRAM [ARGUMENT…]: runs it each time that an IPv4 default route is added, and awaits its end.
#include "bare.h"

#include <linux/rtnetlink.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/wait.h>

extern char **environ;

static bool is_default_route(const struct nlmsghdr *message) {
    const struct rtmsg *route = NLMSG_DATA(message);
    return message->nlmsg_type == RTM_NEWROUTE && route->rtm_dst_len == 0 && route->rtm_table == RT_TABLE_MAIN;
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    struct sockaddr_nl name = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_IPV4_ROUTE};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0 || bind(fd, (struct sockaddr *)&name, sizeof name) < 0) return 1;
    for (;;) {
        _Alignas(struct nlmsghdr) char buffer[16384];
        ssize_t got = recv(fd, buffer, sizeof buffer, 0);
        if (got < 0) return 1;
        size_t left = (size_t)got;
        for (struct nlmsghdr *message = (void *)buffer; NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
            pid_t child;
            if (!is_default_route(message)) continue;
            if (posix_spawn(&child, argv[1], NULL, NULL, argv + 1, environ) != 0) return 1;
            waitpid(child, NULL, 0);
        }
    }
}
