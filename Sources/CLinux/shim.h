#pragma once
// What Linux offers and the Glibc module map leaves out.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

// pidfd_open(2) and pidfd_send_signal(2): Debian 12's glibc 2.36 wraps them, older ones do not.
static inline int freshet_pidfd_open(pid_t pid, unsigned int flags) {
    return (int)syscall(SYS_pidfd_open, pid, flags);
}
// epoll_event is packed on x86-64; Swift reads the union through these.
static inline void freshet_epoll_set_data(struct epoll_event *event, uint64_t data) { event->data.u64 = data; }
static inline uint64_t freshet_epoll_data(const struct epoll_event *event) { return event->data.u64; }
