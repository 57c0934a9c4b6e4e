/* What a benchmark inside the process needs from C: the allocations counted, the run bounded, a child watched. */
#ifndef MEASURE_H
#define MEASURE_H

#include <stdbool.h>
#include <stdint.h>

/* From now on each malloc, calloc, realloc and aligned allocation of the process counts, on all threads. */
void measure_count_begin(void);
/* How many there were. */
uint64_t measure_count_end(void);

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t measure_now(void);

/* Makes the compiler believe that this is used. */
void measure_use(const void *address);

/* Ends the process with status 0 and a line on standard error when so many seconds are over. */
void measure_deadline(unsigned seconds);

/* How a child ended. */
struct measure_child {
    /* It could be started. */
    bool started;
    /* What ended it, or 0; SIGALRM if its time was over. */
    int signal;
    /* Its exit status, if no signal ended it. */
    int status;
    /* The number that it printed, or 0. */
    double result;
};

/* Runs this program once more with one argument, for at most so many seconds; its standard error is not shown. */
struct measure_child measure_child(const char *argument, unsigned seconds);

#endif
