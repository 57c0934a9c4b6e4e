#include "bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static void say(const char *format, va_list arguments) {
    fprintf(stderr, "%s: ", program_invocation_short_name);
    vfprintf(stderr, format, arguments);
}

void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

void fail(const char *format, ...) {
    int error = errno;
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    fprintf(stderr, ": %s\n", strerror(error));
    exit(1);
}

int number(const char *text, const char *what, int most) {
    char *end;
    long value = strtol(text, &end, 10);
    if (!*text || *end || value < 0 || value > most)
        die("%s must be a number from 0 to %d, not '%s'", what, most, text);
    return (int)value;
}

int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

void pause_ms(int milliseconds) {
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    while (nanosleep(&time, &time) < 0 && errno == EINTR) {}
}

bool readable(int fd, int limit_ms) {
    int64_t deadline = now() + limit_ms * INT64_C(1000000);
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    for (;;) {
        int64_t left = (deadline - now()) / 1000000;
        int ready = poll(&poller, 1, left > 0 ? (int)left : 0);
        if (ready > 0) return true;
        if (ready == 0) return false;
        if (errno != EINTR) fail("poll");
    }
}

// --- the origin

int listen_at(const char *address, int port) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, address, &name.sin_addr) != 1) die("'%s' is not an IPv4 address", address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0
        || bind(listener, (struct sockaddr *)&name, sizeof name) < 0 || listen(listener, 64) < 0)
        fail("cannot listen at %s:%d", address, port);
    return listener;
}

int accept_within(int listener, int limit_ms, int64_t *at) {
    if (!readable(listener, limit_ms)) return -1;
    int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    *at = now();
    if (connection < 0) fail("accept");
    return connection;
}

void answer(int connection) {
    static const char changed[] =
        "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Type: application/json\r\nContent-Length: 13\r\n"
        "Connection: close\r\n\r\n{\"keys\":[1]}\n";
    static const char unchanged[] = "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\nConnection: close\r\n\r\n";
    char request[8192];
    size_t length = 0;
    while (length < sizeof request - 1 && readable(connection, EVENT_LIMIT_MS)) {
        ssize_t got = read(connection, request + length, sizeof request - 1 - length);
        if (got <= 0) break;
        length += (size_t)got;
        request[length] = 0;
        if (!strstr(request, "\r\n\r\n")) continue;
        bool conditional = strcasestr(request, "\r\nIf-None-Match:") != NULL;
        const char *reply = conditional ? unchanged : changed;
        size_t size = (conditional ? sizeof unchanged : sizeof changed) - 1;
        if (send(connection, reply, size, MSG_NOSIGNAL) != (ssize_t)size) break;
        // The client closes before the route goes away under it.
        shutdown(connection, SHUT_WR);
        while (readable(connection, EVENT_LIMIT_MS) && read(connection, request, sizeof request) > 0) {}
        break;
    }
    close(connection);
}

int answer_until_quiet(int listener, int quiet_ms) {
    enum { MAX_ANSWERS = 20 };
    int answers = 0;
    int64_t at;
    for (int connection; answers < MAX_ANSWERS && (connection = accept_within(listener, quiet_ms, &at)) >= 0;) {
        answer(connection);
        answers++;
    }
    return answers;
}

// --- child processes

pid_t start(char *const argv[], const char *variable) {
    enum { MAX_VARIABLES = 1000 };
    char *environment[MAX_VARIABLES + 2];
    size_t count = 0;
    while (environ[count] && count < MAX_VARIABLES) {
        environment[count] = environ[count];
        count++;
    }
    if (variable) environment[count++] = (char *)variable;
    environment[count] = NULL;

    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t child;
    errno = posix_spawnp(&child, argv[0], &files, &attributes, argv, environment);
    if (errno) fail("cannot start %s", argv[0]);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    return child;
}

int child_descriptor(pid_t child) {
    int fd = (int)syscall(SYS_pidfd_open, child, 0);
    if (fd < 0) fail("no descriptor of a child process");
    return fd;
}

static bool ended_within(pid_t child, int limit_ms) {
    int64_t deadline = now() + limit_ms * INT64_C(1000000);
    while (waitpid(child, NULL, WNOHANG) == 0) {
        if (now() > deadline) return false;
        pause_ms(1);
    }
    return true;
}

void reap(pid_t child, int limit_ms) {
    if (!ended_within(child, limit_ms)) stop(child);
}

void stop(pid_t child) {
    // Only the leader: it ends its own children, or they are ended with the group below.
    kill(child, SIGTERM);
    if (!ended_within(child, EXIT_LIMIT_MS)) {
        kill(child, SIGKILL);
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
    }
    kill(-child, SIGKILL);
}

// --- samples

void subject_init(struct subject *subject, const char *label, int wanted, void *context) {
    *subject = (struct subject){.label = label, .limit = subject, .wanted = wanted, .context = context};
    subject->samples = calloc((size_t)wanted + 1, sizeof *subject->samples);
    if (!subject->samples) fail("no memory");
}

static void warm_up(struct subject *subject, measure *measure) {
    int warm = 0;
    for (int attempt = 0; attempt < WARM_UP_ATTEMPTS && warm < WARM_UPS; attempt++)
        if (measure(subject) >= 0) warm++;
    subject->extra = 0;
    subject->left_out = warm < WARM_UPS;
}

static void sample(struct subject *subject, measure *measure) {
    int64_t took = measure(subject);
    if (took >= 0) {
        subject->samples[subject->taken++] = took;
        subject->misses_in_a_row = 0;
        return;
    }
    subject->missed++;
    subject->left_out = ++subject->misses_in_a_row == MAX_MISSES_IN_A_ROW;
}

void interleave(struct subject *subjects, size_t count, measure *measure) {
    int rounds = 0;
    for (size_t i = 0; i < count; i++) {
        warm_up(&subjects[i], measure);
        if (subjects[i].wanted > rounds) rounds = subjects[i].wanted;
    }
    for (int round = 0; round < rounds; round++) {
        for (size_t i = 0; i < count; i++) {
            struct subject *subject = &subjects[(i + (size_t)round) % count];
            int64_t due = (round + 1) * (int64_t)subject->wanted / rounds;
            int64_t done = round * (int64_t)subject->wanted / rounds;
            if (due > done && !subject->left_out) sample(subject, measure);
        }
    }
}

static int ascending(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

// The smallest sample that at least `percent` of all do not exceed: with fewer than 100 the 99th percentile is the
// largest.
static double percentile(const struct subject *subject, int percent) {
    int rank = (subject->taken * percent + 99) / 100;
    if (rank == 0) rank = 1;
    return (double)subject->samples[rank - 1] / 1000;
}

void table(const char *title, const struct subject *subjects, size_t count) {
    printf("\n%s, in microseconds\n", title);
    printf("  %-34s %5s %10s %10s %10s %10s %7s %7s %6s\n", "", "n", "median", "p99", "min", "max", "ratio", "missed",
        "extra");
    for (size_t i = 0; i < count; i++) {
        const struct subject *subject = &subjects[i];
        if (subject->taken) qsort(subject->samples, (size_t)subject->taken, sizeof *subject->samples, ascending);
    }
    for (size_t i = 0; i < count; i++) {
        const struct subject *subject = &subjects[i];
        if (!subject->taken) {
            printf("  %-34s left out: nothing came from it\n", subject->label);
            continue;
        }
        printf("  %-34s %5d %10.0f %10.0f %10.0f %10.0f", subject->label, subject->taken, percentile(subject, 50),
            percentile(subject, 99), percentile(subject, 0), percentile(subject, 100));
        if (subject->limit->taken)
            printf(" %7.2f", percentile(subject, 50) / percentile(subject->limit, 50));
        else
            printf(" %7s", "-");
        printf(" %7d %6d%s\n", subject->missed, subject->extra,
            subject->left_out ? "  (stopped answering)" : "");
    }
    fflush(stdout);
}

int next_group(char ***cursor, char ***group) {
    if (!**cursor) return 0;
    if (strcmp(**cursor, "--") != 0) die("expected '--', got '%s'", **cursor);
    *group = *cursor + 1;
    // The "--" of the group before becomes its end.
    **cursor = NULL;
    int count = 0;
    while ((*group)[count] && strcmp((*group)[count], "--") != 0) count++;
    *cursor = *group + count;
    if (count == 0) die("an empty group of arguments");
    return count;
}
