// Program started -> ready.
//
//   bench-start TITLE SOCKET PORT -- notify|http LABEL COUNT PROGRAM ARGUMENT… [-- …]
//
// A notify subject is ready when it sends READY=1 to $NOTIFY_SOCKET, which the harness binds at SOCKET. An http subject
// is ready when it answers a request at 127.0.0.1:PORT; until it listens it is asked every 0.1 ms, so its figure may be
// that much too large. Each is ended (SIGTERM) and awaited before the next start. The first subject is the limit.
#include "bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

struct program {
    char **arguments;
    bool by_http;
};

enum { START_LIMIT_MS = 5000 };

static int notifications, port;
static char notify_variable[sizeof(struct sockaddr_un) + 32];

static int bind_notifications(const char *path) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof name.sun_path) die("the path %s is too long for a socket", path);
    strcpy(name.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&name, sizeof name) < 0) fail("cannot bind %s", path);
    snprintf(notify_variable, sizeof notify_variable, "NOTIFY_SOCKET=%s", path);
    return fd;
}

// The time at which READY=1 came, or -1: too late, or the program ended without. Descriptors that came along, as
// systemd-notify's barrier, are closed by the kernel, since no room is offered for them.
static int64_t notified(int child) {
    int64_t deadline = now() + START_LIMIT_MS * INT64_C(1000000);
    struct pollfd events[] = {{.fd = notifications, .events = POLLIN}, {.fd = child, .events = POLLIN}};
    while (poll(events, 2, START_LIMIT_MS) > 0) {
        char text[4096];
        int64_t at = now();
        ssize_t got = recv(notifications, text, sizeof text - 1, MSG_DONTWAIT);
        if (got >= 0) {
            text[got] = 0;
            if (strncmp(text, "READY=1", 7) == 0 || strstr(text, "\nREADY=1")) return at;
        } else if (events[1].revents) {
            break;
        }
        if (at > deadline) break;
    }
    return -1;
}

static void drain_notifications(void) {
    char text[4096];
    while (recv(notifications, text, sizeof text, MSG_DONTWAIT) >= 0) {}
}

// The time at which the server's first byte came, or -1: too late, or the program ended.
static int64_t answered(int child) {
    static const char request[] = "GET / HTTP/1.0\r\n\r\n";
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int64_t deadline = now() + START_LIMIT_MS * INT64_C(1000000); now() < deadline && !readable(child, 0);) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0) fail("no socket");
        if (connect(fd, (struct sockaddr *)&name, sizeof name) == 0) {
            char byte;
            bool sent = send(fd, request, sizeof request - 1, MSG_NOSIGNAL) == sizeof request - 1;
            bool came = sent && readable(fd, EVENT_LIMIT_MS) && recv(fd, &byte, 1, 0) == 1;
            int64_t at = now();
            close(fd);
            if (came) return at;
        } else {
            close(fd);
        }
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    return -1;
}

static int64_t measure_start(struct subject *subject) {
    const struct program *program = subject->context;
    drain_notifications();
    int64_t before = now();
    pid_t child = start(program->arguments, notify_variable);
    int descriptor = child_descriptor(child);
    int64_t ready = program->by_http ? answered(descriptor) : notified(descriptor);
    close(descriptor);
    stop(child);
    return ready >= 0 ? ready - before : -1;
}

int main(int argc, char **argv) {
    static struct subject subjects[MAX_SUBJECTS];
    static struct program programs[MAX_SUBJECTS];
    size_t count = 0;
    if (argc < 5) die("too few arguments: see bench-start.c");
    notifications = bind_notifications(argv[2]);
    port = number(argv[3], "the port", 65535);

    char **cursor = argv + 4, **group;
    for (int length; count < MAX_SUBJECTS && (length = next_group(&cursor, &group)) > 0; count++) {
        if (length < 4) die("a subject is KIND LABEL COUNT PROGRAM …");
        programs[count] = (struct program){.arguments = group + 3, .by_http = strcmp(group[0], "http") == 0};
        subject_init(&subjects[count], group[1], number(group[2], "a count", MAX_REPETITIONS), &programs[count]);
        subjects[count].limit = subjects;
    }
    interleave(subjects, count, measure_start);
    table(argv[1], subjects, count);
    unlink(argv[2]);
    return 0;
}
