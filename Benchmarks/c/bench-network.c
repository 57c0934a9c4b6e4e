// An event of the network -> a follower's signal, its program, or the first byte of its request at the origin.
//
//   bench-network EVENT ADDRESS PORT ROUTER LINK PACE-MS -- LABEL COUNT CLIENT-SPACE ORIGIN-SPACE SOCKET [-- …]
//
// EVENT is `route` (a default route is added), `run` (the same; the end comes from a program that the follower starts),
// `address` (the address that a default route needs) or `link` (its carrier comes). Each subject has a network name space
// of its own and another one where its origin is. With a SOCKET the end is the datagram that the subject or its program
// writes there; if that is empty, it is the first byte at the origin. The harness makes the event and takes both times
// itself. The first subject is the limit.
#include "bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

unsigned if_nametoindex(const char *name);

struct bed {
    int near, far;             // netlink sockets in the client's name space and in the origin's
    int ear;                   // where the origin listens, or where the signal is told
    bool is_signal;
    unsigned link, far_link;   // the indices of the cable's two ends
};

struct request {
    struct nlmsghdr header;
    union {
        struct rtmsg route;
        struct ifaddrmsg address;
        struct ifinfomsg link;
    };
    char attributes[64];
};

static const char *event, *link_name;
static struct in_addr router, own;
static int pace_ms;

static int space_named(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) fail("no name space %s", path);
    return fd;
}

static void enter(int space) {
    if (setns(space, CLONE_NEWNET) < 0) fail("cannot enter a network name space");
    close(space);
}

static int kernel_socket(void) {
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    if (fd < 0 || connect(fd, (struct sockaddr *)&kernel, sizeof kernel) < 0) fail("no netlink socket");
    return fd;
}

static int told_at(const char *path) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    unlink(path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&name, sizeof name) < 0) fail("cannot listen at %s", path);
    return fd;
}

static void open_bed(struct bed *bed, char **words, const char *address, int port) {
    int home = space_named("/proc/self/ns/net");
    enter(space_named(words[2]));
    bed->near = kernel_socket();
    bed->link = if_nametoindex(link_name);
    enter(space_named(words[3]));
    bed->far = kernel_socket();
    bed->far_link = if_nametoindex("wan1");
    bed->is_signal = *words[4];
    bed->ear = bed->is_signal ? told_at(words[4]) : listen_at(address, port);
    enter(home);
    if (!bed->link || !bed->far_link) fail("no cable in %s", words[2]);
}

static void add(struct request *request, uint16_t type, const void *value, uint16_t size) {
    struct rtattr *attribute = (void *)((char *)request + NLMSG_ALIGN(request->header.nlmsg_len));
    attribute->rta_type = type;
    attribute->rta_len = RTA_LENGTH(size);
    memcpy(RTA_DATA(attribute), value, size);
    request->header.nlmsg_len = NLMSG_ALIGN(request->header.nlmsg_len) + RTA_ALIGN(attribute->rta_len);
}

// Sends a request and awaits its acknowledgement. Returns the time just before the kernel was told.
static int64_t tell(int fd, struct request *request) {
    int64_t before = now();
    if (send(fd, request, request->header.nlmsg_len, 0) != request->header.nlmsg_len) fail("cannot tell the kernel");
    struct {
        struct nlmsghdr header;
        struct nlmsgerr error;
        char more[512];
    } reply;
    ssize_t got = recv(fd, &reply, sizeof reply, 0);
    if (got < (ssize_t)NLMSG_LENGTH(sizeof reply.error) || reply.header.nlmsg_type != NLMSG_ERROR)
        die("the kernel's answer is not one");
    errno = -reply.error.error;
    if (errno) fail("the kernel refuses to change its %s", event);
    return before;
}

static struct request blank(uint16_t type, size_t size) {
    return (struct request){
        .header = {.nlmsg_len = NLMSG_LENGTH(size), .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK}};
}

static int64_t change_route(const struct bed *bed, bool comes) {
    struct request request = blank(comes ? RTM_NEWROUTE : RTM_DELROUTE, sizeof request.route);
    if (comes) request.header.nlmsg_flags |= NLM_F_CREATE | NLM_F_EXCL;
    request.route = (struct rtmsg){
        .rtm_family = AF_INET, .rtm_table = RT_TABLE_MAIN, .rtm_protocol = RTPROT_STATIC, .rtm_type = RTN_UNICAST};
    add(&request, RTA_GATEWAY, &router, sizeof router);
    add(&request, RTA_OIF, &bed->link, sizeof bed->link);
    return tell(bed->near, &request);
}

static int64_t change_address(const struct bed *bed, bool comes) {
    struct request request = blank(comes ? RTM_NEWADDR : RTM_DELADDR, sizeof request.address);
    if (comes) request.header.nlmsg_flags |= NLM_F_CREATE | NLM_F_EXCL;
    request.address = (struct ifaddrmsg){.ifa_family = AF_INET, .ifa_prefixlen = 24, .ifa_index = bed->link};
    add(&request, IFA_LOCAL, &own, sizeof own);
    add(&request, IFA_ADDRESS, &own, sizeof own);
    return tell(bed->near, &request);
}

static int64_t change_link(const struct bed *bed, bool comes) {
    struct request request = blank(RTM_NEWLINK, sizeof request.link);
    request.link = (struct ifinfomsg){
        .ifi_index = (int)bed->far_link, .ifi_flags = comes ? IFF_UP : 0, .ifi_change = IFF_UP};
    return tell(bed->far, &request);
}

static int64_t change(const struct bed *bed, bool comes) {
    switch (*event) {
        case 'r': return change_route(bed, comes);
        case 'a': return change_address(bed, comes);
        default: return change_link(bed, comes);
    }
}

// Reads what was told until nothing has come for a while. Returns how much came.
static int told_until_quiet(int ear, int quiet_ms) {
    enum { MAX_TOLD = 20 };
    char datagram[64];
    int count = 0;
    while (count < MAX_TOLD && readable(ear, quiet_ms) && recv(ear, datagram, sizeof datagram, 0) >= 0) count++;
    return count;
}

static int64_t measure_network(struct subject *subject) {
    const struct bed *bed = subject->context;
    int64_t at = -1, before = change(bed, true);
    if (bed->is_signal) {
        char datagram[64];
        if (readable(bed->ear, EVENT_LIMIT_MS)) {
            at = now();
            if (recv(bed->ear, datagram, sizeof datagram, 0) < 0) fail("cannot hear");
        }
        subject->extra += told_until_quiet(bed->ear, pace_ms / 2);
    } else {
        int64_t accepted;
        int connection = accept_within(bed->ear, EVENT_LIMIT_MS, &accepted);
        if (connection >= 0) {
            if (readable(connection, EVENT_LIMIT_MS)) at = now();
            answer(connection);
        }
        subject->extra += answer_until_quiet(bed->ear, pace_ms / 2);
    }
    change(bed, false);
    pause_ms(pace_ms - pace_ms / 2);
    return at < 0 ? -1 : at - before;
}

int main(int argc, char **argv) {
    static struct subject subjects[MAX_SUBJECTS];
    static struct bed beds[MAX_SUBJECTS];
    static char title[200];
    size_t count = 0;
    if (argc < 8) die("too few arguments: see bench-network.c");
    event = argv[1];
    int port = number(argv[3], "the port", 65535);
    if (inet_pton(AF_INET, argv[4], &router) != 1) die("'%s' is not an IPv4 address", argv[4]);
    own.s_addr = htonl(ntohl(router.s_addr) + 1);
    link_name = argv[5];
    pace_ms = number(argv[6], "the pace", 60000);

    char **cursor = argv + 7, **group;
    for (int length; count < MAX_SUBJECTS && (length = next_group(&cursor, &group)) > 0; count++) {
        if (length != 5) die("a subject is LABEL COUNT CLIENT-SPACE ORIGIN-SPACE SOCKET");
        open_bed(&beds[count], group, argv[2], port);
        change(&beds[count], false);
        subject_init(&subjects[count], group[0], number(group[1], "a count", MAX_REPETITIONS), &beds[count]);
        subjects[count].limit = subjects;
    }
    if (!count) die("no subjects");
    interleave(subjects, count, measure_network);
    const char *goal = beds[0].is_signal ? "signal delivered" : "first byte at the origin";
    if (!strcmp(event, "run")) goal = "program started";
    snprintf(title, sizeof title, "%s -> %s",
        *event == 'r' ? "default route added" : *event == 'a' ? "address added" : "carrier of the link came", goal);
    table(title, subjects, count);
    return 0;
}
