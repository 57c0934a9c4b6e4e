#pragma once
// Linux functions that the Glibc module lacks. Headers that the Glibc module contains must not be included again, since
// the two modules would conflict. Functions that those headers declare only with _GNU_SOURCE are therefore declared
// here.
#include <linux/memfd.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/xattr.h>

// string.h (glibc 2.32): thread-safe and untranslated.
const char *strerrordesc_np(int error);
const char *strerrorname_np(int error);
// sys/mman.h, fcntl.h: a file in memory (memfd_create(2)), and F_ADD_SEALS, F_GET_SEALS and F_SEAL_* (fcntl(2)).
int memfd_create(const char *name, unsigned int flags);
enum { FRESHET_ADD_SEALS = 1033, FRESHET_GET_SEALS = 1034, FRESHET_ALL_SEALS = 0x0f };  // seal, shrink, grow, write
// pthread.h
int pthread_setname_np(unsigned long thread, const char *name);
// sys/socket.h, unistd.h, fcntl.h
struct freshet_ucred { int pid; unsigned int uid; unsigned int gid; };  // struct ucred, unix(7)
int pipe2(int descriptors[2], int flags);
// unistd.h: Swift has no fork(2), which is safe only in a process without other threads.
static inline int freshet_fork(void) {
    extern int fork(void);
    return fork();
}
static inline int freshet_accept4(int listener, int flags) {
    extern int accept4(int, void *, unsigned int *, int);
    return accept4(listener, 0, 0, flags);
}

// pidfd_open(2), Linux 5.3; glibc wraps it since 2.36.
long syscall(long number, ...);
static inline int freshet_pidfd_open(int pid, unsigned int flags) { return (int)syscall(SYS_pidfd_open, pid, flags); }
// prctl(2) is variadic, so Swift cannot call it.
static inline int freshet_prctl(int option, unsigned long argument) { return prctl(option, argument, 0, 0, 0); }
// epoll_event's data is a union.
static inline void freshet_epoll_set_data(struct epoll_event *event, uint64_t data) { event->data.u64 = data; }
static inline uint64_t freshet_epoll_data(const struct epoll_event *event) { return event->data.u64; }

// Limits the writable memory of a process of the same user (RLIMIT_DATA, soft; prlimit(2)). Returns 0, or -1 and errno.
static inline int freshet_limit_data(int process, unsigned long bytes) {
    enum { data = 2 };  // RLIMIT_DATA
    struct { unsigned long soft, hard; } limit;
    if (syscall(SYS_prlimit64, process, data, 0, &limit) != 0) return -1;
    limit.soft = bytes < limit.hard ? bytes : limit.hard;
    return (int)syscall(SYS_prlimit64, process, data, &limit, 0);
}
