#pragma once
// Runs a program together with all processes that it starts, also those that leave its process group and session. A
// small supervisor process runs between this process and the program. As a subreaper (prctl(2)) it becomes the parent
// of every descendant whose own parent has ended, and it ends all of them when the program has ended.
//
// The supervisor runs in this process's memory (CLONE_VM) on its own stack, because copying the memory of a large
// daemon would take milliseconds and pages. Therefore it makes only bare system calls: the C library's errno and locks
// belong to the threads of the daemon, which run at the same time.
#include "spawn.h"

static const int FRESHET_END_ALL = 10;  // SIGUSR1

struct freshet_supervision {
    struct freshet_spawn spawn;  // in, and the failure out
    int parent;                  // in: the process id of the caller
    int program;                 // out: the process id of the program
    int is_starting;             // a futex: becomes 0 when the program is in place or has failed
    int status;                  // out, after the supervisor's end: as of wait4(2); -1: it was killed
};

#if defined(__x86_64__)
#define FRESHET_CALL_REGISTERS "rcx", "r11", "memory"
static inline __attribute__((always_inline)) long freshet_call(long n, long a, long b, long c, long d, long e) {
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : FRESHET_CALL_REGISTERS);
    return result;
}
#elif defined(__aarch64__)
static inline __attribute__((always_inline)) long freshet_call(long n, long a, long b, long c, long d, long e) {
    register long x8 __asm__("x8") = n;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = 0;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}
#else
#error "the supervisor of commands is written for x86_64 and aarch64"
#endif

#define FRESHET_SUPERVISOR __attribute__((no_sanitize("address", "thread"), no_stack_protector))

// Reaps ended children; with `options` 0 it waits for one first. Returns 0 when there are no children.
FRESHET_SUPERVISOR static inline int freshet_reap(volatile struct freshet_supervision *self, int *has_ended, int options) {
    for (;;) {
        int status = 0;
        const long child = freshet_call(SYS_wait4, -1, (long)&status, options | 0x40000000 /* __WALL */, 0, 0);
        if (child == -4 /* EINTR */) continue;
        if (child < 0) return 0;
        if (child == 0) return 1;
        if (child == self->program) {
            self->status = status;
            *has_ended = 1;
        }
        options = 1;  // WNOHANG
    }
}

// Kills all children that the kernel lists (proc(5), /proc/thread-self/children). Returns 0 if there is no such list.
FRESHET_SUPERVISOR static inline int freshet_kill_children(void) {
    const char path[] = "/proc/thread-self/children";
    const long list = freshet_call(SYS_openat, -100 /* AT_FDCWD */, (long)path, 02000000 /* O_RDONLY|O_CLOEXEC */, 0, 0);
    if (list < 0) return 0;
    char bytes[1024];
    long child = 0, count;
    while ((count = freshet_call(SYS_read, list, (long)bytes, sizeof bytes, 0, 0)) > 0) {
        for (long index = 0; index < count; index++) {
            const char byte = bytes[index];
            if (byte >= '0' && byte <= '9') {
                child = child * 10 + (byte - '0');
            } else {
                if (child > 1) freshet_call(SYS_kill, child, 9, 0, 0, 0);
                child = 0;
            }
        }
    }
    freshet_call(SYS_close, list, 0, 0, 0, 0);
    return 1;
}

// Ends the program and every descendant. The children of a killed child become children of the supervisor, so this
// takes several rounds.
FRESHET_SUPERVISOR static inline void freshet_end_all(volatile struct freshet_supervision *self, int *has_ended) {
    for (;;) {
        if (self->program > 0) freshet_call(SYS_kill, -self->program, 9, 0, 0, 0);
        const int is_listed = freshet_kill_children();
        // Without a list, only the program and its process group can be ended.
        if (!is_listed && *has_ended) return;
        if (!freshet_reap(self, has_ended, 0)) return;
    }
}

FRESHET_SUPERVISOR static inline int freshet_supervise_body(void *argument) {
    struct freshet_supervision *self = (struct freshet_supervision *)argument;
    int has_ended = 0;
    const uint64_t standard_action[4] = {0, 0, 0, 0};
    freshet_call(SYS_rt_sigaction, 17 /* SIGCHLD */, (long)standard_action, 0, 8, 0);
    freshet_call(SYS_setpgid, 0, 0, 0, 0, 0);
    freshet_call(SYS_prctl, 36 /* PR_SET_CHILD_SUBREAPER */, 1, 0, 0, 0);
    freshet_call(SYS_prctl, 15 /* PR_SET_NAME */, (long)"freshet-run", 0, 0, 0);
    // Until this point the caller is suspended, so the C library may be used: for clone(3) and in the program's child.
    __attribute__((aligned(16))) char stack[16384];
    self->spawn.failed_call = "clone";
    // The kernel reports the start (CLONE_CHILD_CLEARTID), because a program can stop its supervisor before clone(2)
    // returns.
    self->program = clone(
        freshet_spawn_child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | CLONE_CHILD_CLEARTID | 17 /* SIGCHLD */,
        &self->spawn, (void *)0, (void *)0, &self->is_starting);
    if (self->program < 0) {
        self->spawn.failure = *__errno_location();
        __atomic_store_n(&self->is_starting, 0, __ATOMIC_SEQ_CST);
        freshet_call(SYS_futex, (long)&self->is_starting, 1 /* FUTEX_WAKE */, 1, 0, 0);
    }
    const int has_failed = self->spawn.failure != 0;
    // Close the daemon's sockets, locks and pipes.
    if (freshet_call(SYS_close_range, 0, ~0U, 0, 0, 0) != 0)
        for (int descriptor = 0; descriptor < 1 << 16; descriptor++) freshet_call(SYS_close, descriptor, 0, 0, 0, 0);
    const uint64_t all = ~0ULL;
    const long signals = freshet_call(SYS_signalfd4, -1, (long)&all, 8, 02000000 /* SFD_CLOEXEC */, 0);
    const long parent = freshet_call(SYS_pidfd_open, self->parent, 0, 0, 0, 0);
    int is_over = has_failed || signals < 0 || parent == -3 /* ESRCH */;
    while (!is_over && !has_ended) {
        struct { int descriptor; short events, happened; } ends[2] = {{(int)signals, 1, 0}, {(int)parent, 1, 0}};
        const long count = freshet_call(SYS_ppoll, (long)ends, parent < 0 ? 1 : 2, 0, 0, 8);
        if (count < 0 && count != -4 /* EINTR */) break;
        if (ends[1].happened) is_over = 1;
        if (!ends[0].happened) continue;
        struct { uint32_t number; char rest[124]; } signal;
        if (freshet_call(SYS_read, signals, (long)&signal, sizeof signal, 0, 0) != sizeof signal) continue;
        switch (signal.number) {
        case 17: freshet_reap(self, &has_ended, 1 /* WNOHANG */); break;
        case 10: /* FRESHET_END_ALL */ is_over = 1; break;
        default: freshet_call(SYS_kill, -self->program, signal.number, 0, 0, 0);
        }
    }
    freshet_end_all(self, &has_ended);
    freshet_call(SYS_exit_group, 0, 0, 0, 0, 0);
    return 0;
}

// Enough for the supervisor's own frames, the stack of the program's child, and the C library.
static const int FRESHET_SUPERVISOR_STACK = 65536;

// Starts a program under supervision. Returns the supervisor's process id, or -1 if no process was started. If the
// spawn fails, the supervisor ends by itself and the caller has to await it. `stack` has FRESHET_SUPERVISOR_STACK
// bytes; `stack` and `self` must stay valid until the supervisor was reaped.
static inline int freshet_supervise(struct freshet_supervision *self, char *stack) {
    const uint64_t all = ~0ULL;
    uint64_t before;
    syscall(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, &all, &before, 8);
    self->is_starting = 1;
    self->status = -1;
    self->program = 0;
    self->spawn.failed_call = "clone";
    self->spawn.failure = 0;
    const int supervisor = clone(freshet_supervise_body, stack + FRESHET_SUPERVISOR_STACK, CLONE_VM | 17 /* SIGCHLD */, self);
    if (supervisor < 0) self->spawn.failure = *__errno_location();
    // As with vfork(2), the calling thread is suspended until the program is in place, and makes only bare calls,
    // because errno is shared with the child. In the meantime other processes of the same user can stop or kill the
    // supervisor.
    const int64_t moment[2] = {0, 20000000};
    while (supervisor > 0 && __atomic_load_n(&self->is_starting, __ATOMIC_SEQ_CST) == 1) {
        const long waited = freshet_call(SYS_futex, (long)&self->is_starting, 0 /* FUTEX_WAIT */, 1, (long)moment, 0);
        if (waited != -110 /* ETIMEDOUT */) continue;
        int32_t end[32] = {0};  // siginfo_t, which begins with the signal
        freshet_call(SYS_waitid, 1 /* P_PID */, supervisor, (long)end, 0x01000005 /* WEXITED|WNOHANG|WNOWAIT */, 0);
        if (end[0] == 0) {
            freshet_call(SYS_kill, supervisor, 18 /* SIGCONT */, 0, 0, 0);
        } else if (__atomic_load_n(&self->is_starting, __ATOMIC_SEQ_CST) == 1) {
            self->spawn.failure = 4 /* EINTR */;
            break;
        }
    }
    syscall(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, &before, 0, 8);
    return supervisor;
}
