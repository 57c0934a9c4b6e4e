/* C functions for a benchmark inside the process: counting allocations, limiting the run, running a child. */
#ifndef MEASURE_H
#define MEASURE_H

#include <stdbool.h>
#include <stdint.h>

/* Starts to count each malloc, calloc, realloc and aligned allocation of the process, on all threads. */
void measure_count_begin(void);
/* The number of allocations. */
uint64_t measure_count_end(void);

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t measure_now(void);

/* Makes the compiler assume that this is used. */
void measure_use(const void *address);

/* Ends the process with status 0 and a line on standard error after this many seconds. */
void measure_deadline(unsigned seconds);

/* The result of a child. */
struct measure_child {
    /* Whether it could be started. */
    bool started;
    /* The signal that ended it, or 0; SIGALRM if its time limit had passed. */
    int signal;
    /* Its exit status, unless a signal ended it. */
    int status;
    /* The number that it printed, or 0. */
    double result;
};

/* Runs this program again with one argument, for at most this many seconds; its standard error is discarded. */
struct measure_child measure_child(const char *argument, unsigned seconds);

#endif
