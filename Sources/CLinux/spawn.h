#pragma once
// Starts a program with its own limit of descriptors. posix_spawn(3) cannot set a limit, and prlimit(2) from outside
// would be too late for a program that reads its limits immediately. Between clone and exec the child runs in its
// parent's memory and may only make bare system calls. Swift does not guarantee that, so this is C.
#include <linux/sched.h>
#include <stdint.h>
#include <sys/syscall.h>

struct freshet_spawn {
    const char *path;
    char *const *arguments;
    char *const *environment;
    const char *directory;      // working directory, or null
    int standard[3];            // become descriptors 0, 1 and 2, in this order; all others are closed
    uint64_t descriptor_limit;  // maximum soft limit of descriptors; the hard limit does not change
    const char *failed_call;    // out: the call that failed
    int failure;                // out: its errno; 0: the program is in place
};

int clone(int (*body)(void *), void *stack, int flags, void *argument, ...);
int *__errno_location(void);

// Runs in the child, with all signals blocked. Returns only if there is no new program.
static inline int freshet_spawn_child(void *argument) {
    struct freshet_spawn *spawn = (struct freshet_spawn *)argument;
    // The kernel's own struct sigaction, all zero: SIG_DFL. The parent keeps its handlers: they are not shared.
    const uint64_t standard_action[4] = {0, 0, 0, 0};
    for (int signal = 1; signal <= 64; signal++) syscall(SYS_rt_sigaction, signal, standard_action, 0, 8);
    struct { uint64_t soft, hard; } limit;
    const int descriptors = 7;  // RLIMIT_NOFILE
    if (syscall(SYS_prlimit64, 0, descriptors, 0, &limit) != 0) limit.soft = 0;
    uint64_t most = limit.soft;
    if (limit.soft > spawn->descriptor_limit) {
        limit.soft = spawn->descriptor_limit;
        // A filter may forbid this. The program then runs with the higher limit.
        syscall(SYS_prlimit64, 0, descriptors, &limit, 0);
    }
    spawn->failed_call = "setpgid";
    if (syscall(SYS_setpgid, 0, 0) != 0) goto failed;
    spawn->failed_call = "dup2";
    for (int target = 0; target < 3; target++) {
        const int source = spawn->standard[target];
        if (source == target ? syscall(SYS_fcntl, target, 2 /* F_SETFD */, 0) < 0
                             : syscall(SYS_dup3, source, target, 0) < 0)
            goto failed;
    }
    if (syscall(SYS_close_range, 3, ~0U, 0) != 0)  // Linux 5.9, unless a filter forbids it
        for (uint64_t descriptor = 3; descriptor < most; descriptor++) syscall(SYS_close, descriptor);
    spawn->failed_call = "chdir";
    if (spawn->directory && syscall(SYS_chdir, spawn->directory) != 0) goto failed;
    {
        const uint64_t none = 0;
        syscall(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, &none, 0, 8);
    }
    spawn->failed_call = "execve";
    syscall(SYS_execve, spawn->path, spawn->arguments, spawn->environment);
failed:
    spawn->failure = *__errno_location();
    syscall(SYS_exit_group, 127);
    return 127;
}

// Returns the process id, or -1 if no process was started. If `failure` is set, the process has ended and the caller
// has to await it. As with vfork(2), the calling thread is suspended until the new program is in place; other threads
// continue.
static inline int freshet_spawn(struct freshet_spawn *spawn) {
    // The stack of the child until then, in this thread's memory. The calls above need little of it.
    __attribute__((aligned(16))) char stack[16384];
    const uint64_t all = ~0ULL;
    uint64_t before;
    // A signal handler that ran in the child would change this process's memory.
    syscall(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, &all, &before, 8);
    spawn->failed_call = "clone";
    spawn->failure = 0;
    int child = clone(freshet_spawn_child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | 17 /* SIGCHLD */, spawn);
    if (child < 0) spawn->failure = *__errno_location();
    syscall(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, &before, 0, 8);
    return child;
}
