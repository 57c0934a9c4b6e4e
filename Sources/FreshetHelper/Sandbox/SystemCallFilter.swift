import CLinux
import Glibc

/// A seccomp filter: a table of system calls, from which the program for the kernel (seccomp(2)) is made. A system call
/// that is not in the table ends the process by SIGSYS.
struct SystemCallFilter {
    enum Decision {
        case allow
        /// The call is allowed if the low 32 bits of the argument have the value; otherwise the process ends.
        case allowIf(argument: Int, is: UInt32)
        /// The call is allowed if both arguments have their values; otherwise the process ends.
        case allowIfBoth((argument: Int, is: UInt32), (argument: Int, is: UInt32))
        /// The call is allowed if none of the bits is set in the argument; otherwise the process ends.
        case allowWithout(argument: Int, bits: UInt32)
        /// The call fails with EPERM. It is for calls that libraries try and can do without.
        case deny
    }

    typealias Rule = (number: Int, decision: Decision)

    let rules: [Rule]

    /// The filter of a helper after its start. It allows to read, write, wait, use memory that is not executable, and
    /// exit.
    ///
    /// - Parameters:
    ///   - process: the helper's process id, to which it may send signals, as abort(3) does.
    ///   - seeks: whether it may set the position in a file.
    static func helper(process: pid_t, seeks: Bool = false) -> SystemCallFilter {
        let own = UInt32(bitPattern: process)
        let code = UInt32(PROT_EXEC)
        let allowed = [
            SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_close, SYS_exit, SYS_exit_group, SYS_brk, SYS_munmap,
            SYS_mremap, SYS_madvise, SYS_futex, SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_clock_gettime,
            SYS_clock_getres, SYS_gettimeofday, SYS_clock_nanosleep, SYS_nanosleep, SYS_getrandom, SYS_sched_yield,
            SYS_restart_syscall, SYS_getpid, SYS_gettid, SYS_getrusage,
        ]
        let denied = [
            SYS_openat, SYS_newfstatat, SYS_fstat, SYS_faccessat, SYS_readlinkat, SYS_ioctl, SYS_fcntl, SYS_uname,
            SYS_sysinfo, SYS_getcwd, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid,
            SYS_sched_getaffinity,
        ]
        var rules: [Rule] = allowed.map { (Int($0), .allow) } + denied.map { (Int($0), .deny) }
        rules.append((Int(SYS_lseek), seeks ? .allow : .deny))
        #if arch(x86_64)
            rules.append((Int(SYS_time), .allow))
            rules += [SYS_open, SYS_stat, SYS_lstat, SYS_access, SYS_readlink].map { (Int($0), .deny) }
        #endif
        rules.append((Int(SYS_mmap), .allowWithout(argument: 2, bits: code)))
        rules.append((Int(SYS_mprotect), .allowWithout(argument: 2, bits: code)))
        // The helper sets its limit on processor time before each request.
        rules.append(
            (Int(SYS_prlimit64), .allowIfBoth((argument: 0, is: 0), (argument: 1, is: UInt32(RLIMIT_CPU.rawValue)))))
        rules.append((Int(SYS_tgkill), .allowIf(argument: 0, is: own)))
        return SystemCallFilter(rules: rules)
    }

    /// Activates the filter for the calling thread. Returns false if the kernel does not support filters.
    func install() throws(HelperSandbox.Failure) -> Bool {
        guard freshet_install_filter(nil) != 0, errno == EFAULT else { return false }
        var program = program
        let result = program.withUnsafeMutableBufferPointer { instructions in
            var description = sock_fprog(len: UInt16(instructions.count), filter: instructions.baseAddress)
            return freshet_install_filter(&description)
        }
        guard result == 0 else { throw HelperSandbox.Failure("PR_SET_SECCOMP") }
        return true
    }

    // MARK: The program

    private static let load = UInt16(BPF_LD | BPF_W | BPF_ABS)
    private static let end = UInt16(BPF_RET | BPF_K)
    private static let ifEqual = UInt16(BPF_JMP | BPF_JEQ | BPF_K)
    private static let ifAnySet = UInt16(BPF_JMP | BPF_JSET | BPF_K)

    private static let allow = sock_filter(code: end, jt: 0, jf: 0, k: 0x7FFF_0000)  // SECCOMP_RET_ALLOW
    private static let kill = sock_filter(code: end, jt: 0, jf: 0, k: 0x8000_0000)  // SECCOMP_RET_KILL_PROCESS
    private static let deny = sock_filter(code: end, jt: 0, jf: 0, k: 0x0005_0000 | UInt32(EPERM))  // SECCOMP_RET_ERRNO

    /// The program checks the architecture first, because the numbers of system calls depend on it. Numbers of x32 have
    /// an additional bit (__X32_SYSCALL_BIT), so they match no rule.
    private var program: [sock_filter] {
        var program = [
            Self.load(UInt32(FRESHET_SECCOMP_ARCH)),
            sock_filter(
                code: Self.ifEqual, jt: 1, jf: 0, k: UInt32(bitPattern: Int32(truncatingIfNeeded: FRESHET_AUDIT_ARCH))),
            Self.kill,
            Self.load(UInt32(FRESHET_SECCOMP_NUMBER)),
        ]
        for rule in rules {
            let body = Self.body(of: rule.decision)
            program.append(
                sock_filter(
                    code: Self.ifEqual, jt: 0, jf: UInt8(body.count), k: UInt32(truncatingIfNeeded: rule.number)))
            program += body
        }
        return program + [Self.kill]
    }

    /// The instructions of one rule. They end with a return, so that the number is not loaded again.
    private static func body(of decision: Decision) -> [sock_filter] {
        switch decision {
        case .allow: [allow]
        case .deny: [deny]
        case .allowIf(let argument, let value): condition(argument, value) + [allow]
        case .allowIfBoth(let first, let second):
            condition(first.argument, first.is) + condition(second.argument, second.is) + [allow]
        case .allowWithout(let argument, let bits):
            [load(argument: argument), sock_filter(code: ifAnySet, jt: 0, jf: 1, k: bits), kill, allow]
        }
    }

    private static func condition(_ argument: Int, _ value: UInt32) -> [sock_filter] {
        [load(argument: argument), sock_filter(code: ifEqual, jt: 1, jf: 0, k: value), kill]
    }

    private static func load(_ offset: UInt32) -> sock_filter { sock_filter(code: load, jt: 0, jf: 0, k: offset) }

    /// Loads the low half of an argument: both supported architectures are little-endian.
    private static func load(argument: Int) -> sock_filter {
        load(UInt32(FRESHET_SECCOMP_ARGUMENTS + argument * 8))
    }
}
