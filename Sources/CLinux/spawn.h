#pragma once
// Starting a program, with limits of its own. posix_spawn(3) cannot set any, and to set them from outside afterwards
// (prlimit(2)) is too late for a program that looks at them first thing. Between clone and exec only a few calls are
// allowed, and Swift gives no promise about what it calls: so this, and nothing else, is C.
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

struct freshet_spawn {
    const char *path;
    char *const *arguments;
    char *const *environment;
    const char *directory;           // or null
    int standard[3];                 // become descriptors 0, 1 and 2
    unsigned long descriptor_limit;  // soft RLIMIT_NOFILE; a lower one stays as it is
    int error;                       // why it failed: errno
    const char *failed_call;
};

