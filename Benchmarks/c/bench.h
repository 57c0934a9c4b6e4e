// What the three harnesses share: a clock, an origin, child processes, and samples with their table.
//
// A harness is a single thread. Whatever it waits for has a deadline, so a subject that says nothing costs a repetition
// and never hangs the run.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    MAX_REPETITIONS = 10000,
    MAX_SUBJECTS = 16,
    /// Taken and thrown away before the first sample of each subject: caches, neighbours and first commits are warm.
    WARM_UPS = 3,
    /// Attempts at those. A follower that is still starting misses the first.
    WARM_UP_ATTEMPTS = 6,
    /// So many misses one after the other, and the subject is left out of the rest.
    MAX_MISSES_IN_A_ROW = 5,
    /// For one event. Far beyond what any subject needs.
    EVENT_LIMIT_MS = 2000,
    /// For a child to go after SIGTERM; then it is killed.
    EXIT_LIMIT_MS = 10000,
};

/// Says what is wrong, and exits 1. `fail` adds what errno means.
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/// A number from 0 to `most`, or an exit that names it.
int number(const char *text, const char *what, int most);

/// CLOCK_MONOTONIC, in nanoseconds.
int64_t now(void);
void pause_ms(int milliseconds);
/// True once `fd` is readable; false when the limit has passed.
bool readable(int fd, int limit_ms);

// --- the origin

/// A listening, close-on-exec TCP socket on an IPv4 address of the current network name space.
int listen_at(const char *address, int port);
/// The next connection, or -1 after the limit. `*at` is the time at which it was accepted.
int accept_within(int listener, int limit_ms, int64_t *at);
/// Reads one request, answers 304 if it is conditional and 200 with an ETag if not, waits for the client to close.
void answer(int connection);
/// Answers whatever else comes until nothing has for `quiet_ms`. Returns how many came: none if a subject asks once.
int answer_until_quiet(int listener, int quiet_ms);

// --- child processes

/// Starts a program, found on PATH, in a process group of its own and without standard output. `variable` (NAME=VALUE,
/// may be NULL) joins its environment.
pid_t start(char *const argv[], const char *variable);
/// A descriptor that is readable once the child has ended.
int child_descriptor(pid_t child);
/// Waits for the child to end by itself; ends it if it does not.
void reap(pid_t child, int limit_ms);
/// Ends the child, and what it started in its process group.
void stop(pid_t child);

// --- samples

struct subject {
    const char *label;
    /// What its ratio is to; itself for the limit.
    struct subject *limit;
    int wanted, taken, missed, extra, misses_in_a_row;
    bool left_out;
    int64_t *samples;
    /// The harness's own.
    void *context;
};

/// One repetition: nanoseconds, or -1 if nothing came.
typedef int64_t measure(struct subject *subject);

void subject_init(struct subject *subject, const char *label, int wanted, void *context);

/// Warms each subject up, then takes the samples in turns: in each round every subject that is due, beginning with
/// another one each time. A subject that wants fewer samples than the others is spread evenly over the rounds.
void interleave(struct subject *subjects, size_t count, measure *measure);

/// Prints a title and a line for each subject.
void table(const char *title, const struct subject *subjects, size_t count);

/// Arguments come in groups, each begun by "--". Cuts the next group off: its arguments end with a NULL.
/// Returns how many they are, 0 at the end.
int next_group(char ***cursor, char ***group);
