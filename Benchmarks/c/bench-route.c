// Default route added -> request accepted at the origin.
//
//   bench-route ADDRESS PORT GATEWAY LINK PACE-MS -- LABEL COUNT CLIENT-SPACE ORIGIN-SPACE [-- …]
//
// Each subject has a network name space of its own, where it follows the routes, and another one where its origin is:
// a change in one wakes none of the others. The harness enters both for a moment to open its sockets there (a socket
// stays in the name space where it was made), adds the route itself, and is the origin. The first subject is the limit.
#include "bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct bed {
    int routes;    // a netlink socket in the client's name space
    int listener;  // in the origin's
    unsigned link; // the index of the client's link
};

static const char *address, *link_name;
static struct in_addr gateway;
static int port, pace_ms;

static int space_named(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) fail("no name space %s", path);
    return fd;
}

static void enter(int space) {
    if (setns(space, CLONE_NEWNET) < 0) fail("cannot enter a network name space");
    close(space);
}

static int route_socket(void) {
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    if (fd < 0 || connect(fd, (struct sockaddr *)&kernel, sizeof kernel) < 0) fail("no netlink socket");
    return fd;
}

static void open_bed(struct bed *bed, const char *client_space, const char *origin_space) {
    int home = space_named("/proc/self/ns/net");
    enter(space_named(client_space));
    bed->routes = route_socket();
    bed->link = if_nametoindex(link_name);
    if (!bed->link) fail("no link %s in %s", link_name, client_space);
    enter(space_named(origin_space));
    bed->listener = listen_at(address, port);
    enter(home);
}

// Adds or deletes the default route. Returns the time just before the kernel was told.
static int64_t change_route(const struct bed *bed, uint16_t type) {
    struct {
        struct nlmsghdr header;
        struct rtmsg route;
        struct rtattr via_header;
        struct in_addr via;
        struct rtattr link_header;
        uint32_t link;
    } request = {
        .header = {.nlmsg_len = sizeof request, .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
        .route =
            {
                .rtm_family = AF_INET,
                .rtm_table = RT_TABLE_MAIN,
                .rtm_protocol = RTPROT_STATIC,
                .rtm_scope = RT_SCOPE_UNIVERSE,
                .rtm_type = RTN_UNICAST,
            },
        .via_header = {.rta_len = RTA_LENGTH(sizeof(struct in_addr)), .rta_type = RTA_GATEWAY},
        .via = gateway,
        .link_header = {.rta_len = RTA_LENGTH(sizeof(uint32_t)), .rta_type = RTA_OIF},
        .link = bed->link,
    };
    if (type == RTM_NEWROUTE) request.header.nlmsg_flags |= NLM_F_CREATE | NLM_F_EXCL;

    int64_t before = now();
    if (send(bed->routes, &request, sizeof request, 0) != sizeof request) fail("cannot send to the kernel");

    struct {
        struct nlmsghdr header;
        struct nlmsgerr error;
        char more[256];
    } reply;
    ssize_t got = recv(bed->routes, &reply, sizeof reply, 0);
    if (got < (ssize_t)NLMSG_LENGTH(sizeof reply.error) || reply.header.nlmsg_type != NLMSG_ERROR)
        die("the kernel's answer is not one");
    if (reply.error.error) {
        errno = -reply.error.error;
        fail(type == RTM_NEWROUTE ? "cannot add the default route" : "cannot delete the default route");
    }
    return before;
}

static int64_t measure_route(struct subject *subject) {
    const struct bed *bed = subject->context;
    int64_t accepted = 0, before = change_route(bed, RTM_NEWROUTE);
    int connection = accept_within(bed->listener, EVENT_LIMIT_MS, &accepted);
    if (connection >= 0) answer(connection);
    // Half of the pace with the route, in which what is asked twice shows; half without it.
    subject->extra += answer_until_quiet(bed->listener, pace_ms / 2);
    change_route(bed, RTM_DELROUTE);
    pause_ms(pace_ms - pace_ms / 2);
    return connection >= 0 ? accepted - before : -1;
}

int main(int argc, char **argv) {
    static struct subject subjects[MAX_SUBJECTS];
    static struct bed beds[MAX_SUBJECTS];
    size_t count = 0;
    if (argc < 7) die("too few arguments: see bench-route.c");
    address = argv[1];
    port = number(argv[2], "the port", 65535);
    if (inet_pton(AF_INET, argv[3], &gateway) != 1) die("'%s' is not an IPv4 address", argv[3]);
    link_name = argv[4];
    pace_ms = number(argv[5], "the pace", 60000);

    char **cursor = argv + 6, **group;
    for (int length; count < MAX_SUBJECTS && (length = next_group(&cursor, &group)) > 0; count++) {
        if (length != 4) die("a subject is LABEL COUNT CLIENT-SPACE ORIGIN-SPACE");
        open_bed(&beds[count], group[2], group[3]);
        subject_init(&subjects[count], group[0], number(group[1], "a count", MAX_REPETITIONS), &beds[count]);
        subjects[count].limit = subjects;
    }
    interleave(subjects, count, measure_route);
    table("default route added -> request accepted at the origin", subjects, count);
    return 0;
}
