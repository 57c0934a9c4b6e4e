#pragma once
// Permanent restrictions of a process: seccomp filters (seccomp(2), linux/filter.h) and Landlock (landlock(7)).
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

// The AUDIT_ARCH_… constant of linux/audit.h for this machine; those macros contain casts, which Swift does not import.
#if defined(__x86_64__)
enum { FRESHET_AUDIT_ARCH = (int)AUDIT_ARCH_X86_64 };
#elif defined(__aarch64__)
enum { FRESHET_AUDIT_ARCH = (int)AUDIT_ARCH_AARCH64 };
#endif
enum {
    FRESHET_SECCOMP_NUMBER = offsetof(struct seccomp_data, nr),
    FRESHET_SECCOMP_ARCH = offsetof(struct seccomp_data, arch),
    FRESHET_SECCOMP_ARGUMENTS = offsetof(struct seccomp_data, args),
};

// Installs a filter for the calling thread. It uses prctl(2) instead of seccomp(2), so that the service's own filter
// needs no further permission. With a null program the error shows whether the kernel supports filters: EFAULT if it
// does, EINVAL if not.
static inline int freshet_install_filter(const struct sock_fprog *program) {
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0);
}

// The kernel's struct landlock_ruleset_attr up to ABI 6, independent of the installed headers.
struct freshet_landlock_rights { uint64_t files, network, scoped; };
// Returns a descriptor. With null, 0 and the flag LANDLOCK_CREATE_RULESET_VERSION (1), it returns the ABI version.
static inline int freshet_landlock_create(const struct freshet_landlock_rights *rights, size_t size, unsigned flags) {
    return (int)syscall(444, rights, size, flags);
}
static inline int freshet_landlock_restrict(int rules) { return (int)syscall(446, rules, 0); }

// syscall(2) is variadic, so Swift cannot call it.
static inline long freshet_system_call(long number, long a, long b, long c, long d, long e) {
    return syscall(number, a, b, c, d, e, 0L);
}
