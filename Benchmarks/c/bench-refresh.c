// Refresh asked for -> request accepted at the origin.
//
//   bench-refresh PORT PACE-MS -- socket LABEL COUNT PATH MESSAGE [-- …] -- command LABEL COUNT PROGRAM [-- …]
//
// A socket subject is asked by the harness itself: it connects to PATH, writes MESSAGE and a NUL, and reads the answer
// up to a NUL when the request has come. A command subject is a whole process, timed from before it is made. Both kinds
// are interleaved; of each the first is the limit. The origin is the harness, on loopback.
#include "bench.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct asking {
    char **arguments; // of the command; for a socket: its path and the message
    bool by_socket;
};

static int listener, pace_ms;

static int call(const char *path, const char *message) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof name.sun_path) die("the path %s is too long for a socket", path);
    strcpy(name.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) fail("no socket");
    size_t size = strlen(message) + 1;
    if (connect(fd, (struct sockaddr *)&name, sizeof name) < 0
        || send(fd, message, size, MSG_NOSIGNAL) != (ssize_t)size) {
        close(fd);
        return -1;
    }
    return fd;
}

static void read_answer(int fd) {
    char bytes[4096];
    for (ssize_t got = 1; got > 0 && readable(fd, EVENT_LIMIT_MS);) {
        got = read(fd, bytes, sizeof bytes);
        if (got > 0 && memchr(bytes, 0, (size_t)got)) break;
    }
    close(fd);
}

static int64_t measure_refresh(struct subject *subject) {
    const struct asking *asking = subject->context;
    int caller = -1;
    pid_t child = 0;
    int64_t accepted = 0, before = now();
    if (asking->by_socket) {
        caller = call(asking->arguments[0], asking->arguments[1]);
        if (caller < 0) return -1;
    } else {
        child = start(asking->arguments, NULL);
    }
    int connection = accept_within(listener, EVENT_LIMIT_MS, &accepted);
    if (connection >= 0) answer(connection);
    if (caller >= 0) read_answer(caller);
    if (child) reap(child, EXIT_LIMIT_MS);
    subject->extra += answer_until_quiet(listener, pace_ms);
    return connection >= 0 ? accepted - before : -1;
}

int main(int argc, char **argv) {
    static struct subject subjects[MAX_SUBJECTS];
    static struct asking askings[MAX_SUBJECTS];
    size_t count = 0, by_socket = 0;
    if (argc < 4) die("too few arguments: see bench-refresh.c");
    listener = listen_at("127.0.0.1", number(argv[1], "the port", 65535));
    pace_ms = number(argv[2], "the pace", 60000);

    char **cursor = argv + 3, **group;
    for (int length; count < MAX_SUBJECTS && (length = next_group(&cursor, &group)) > 0; count++) {
        if (length < 4) die("a subject is KIND LABEL COUNT …");
        askings[count] = (struct asking){.arguments = group + 3, .by_socket = strcmp(group[0], "socket") == 0};
        if (askings[count].by_socket) {
            if (length != 5) die("a socket subject is socket LABEL COUNT PATH MESSAGE");
            if (by_socket++ != count) die("socket subjects come first");
        }
        subject_init(&subjects[count], group[1], number(group[2], "a count", MAX_REPETITIONS), &askings[count]);
        subjects[count].limit = askings[count].by_socket ? subjects : subjects + by_socket;
    }
    interleave(subjects, count, measure_refresh);
    table("refresh asked for by a call on the socket -> request accepted", subjects, by_socket);
    table("refresh asked for by a command -> request accepted", subjects + by_socket, count - by_socket);
    return 0;
}
