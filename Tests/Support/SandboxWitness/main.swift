// A process that sandboxes itself like a jq helper, and then makes one attempt. It exits with 0 if the attempt
// succeeded, with the error number if it failed, and by SIGSYS if the sandbox ended it.
//
// SandboxWitness all|landlock|nothing ATTEMPT
import CLinux
import FreshetHelper
import FreshetJQ
import Glibc

/// Makes a raw system call, as an attacker's machine code would.
func call(_ number: some BinaryInteger, _ a: Int = 0, _ b: Int = 0, _ c: Int = 0, _ d: Int = 0, _ e: Int = 0) -> Int {
    freshet_system_call(Int(number), a, b, c, d, e)
}

func end(_ result: Int) -> Never { _exit(result >= 0 ? 0 : errno) }

/// An address at 127.0.0.1, port 9, where no service needs to answer.
func loopback() -> [UInt8] { [2, 0, 0, 9, 127, 0, 0, 1] + [UInt8](repeating: 0, count: 8) }

/// A child process that proves that a process was created, and leaves no effects.
func endChild(_ process: Int) -> Int {
    if process == 0 { _exit(0) }
    return process
}

func attempt(_ name: String, other: pid_t, socket: Int) -> Int {
    switch name {
    // The full sandbox of a helper.
    case "work":
        guard let memory = malloc(64 << 20) else { return -1 }
        memset(memory, 1, 64 << 20)
        guard let more = realloc(memory, 96 << 20) else { return -1 }
        free(more)
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return write(STDOUT_FILENO, "x", 1)
    case "open": return "/etc/passwd".withCString { call(SYS_openat, -100, Int(bitPattern: $0), Int(O_RDONLY)) }
    case "make": return "/tmp".withCString { call(SYS_openat, -100, Int(bitPattern: $0), 0o20200002, 0o600) }
    case "socket": return call(SYS_socket, 2, 1, 0)
    case "socketpair": return call(SYS_socketpair, 1, 1, 0, Int(bitPattern: malloc(8)))
    case "connect":
        // No service listens: without a sandbox the port refuses the connection, which is as good as a connection here.
        let result = loopback().withUnsafeBytes { call(SYS_connect, socket, Int(bitPattern: $0.baseAddress), 16) }
        return result < 0 && errno == ECONNREFUSED ? 0 : result
    case "fork": return endChild(call(SYS_clone, Int(SIGCHLD)))
    case "clone3":
        var arguments = [UInt64](repeating: 0, count: 8)
        arguments[4] = UInt64(SIGCHLD)
        return endChild(arguments.withUnsafeBytes { call(435, Int(bitPattern: $0.baseAddress), 64) })
    case "execve":
        let path = strdup("/bin/true")
        let arguments: [UnsafeMutablePointer<CChar>?] = [path, nil]
        return arguments.withUnsafeBytes {
            call(SYS_execve, Int(bitPattern: path), Int(bitPattern: $0.baseAddress), Int(bitPattern: $0.baseAddress))
        }
    case "ptrace": return call(SYS_ptrace, 0x4206 /* PTRACE_SEIZE: it is not stopped */, Int(other))
    case "readmemory":
        var byte: UInt64 = 0
        // The address is not mapped: without a sandbox EFAULT follows the check of rights.
        var local = (UInt(bitPattern: withUnsafeMutablePointer(to: &byte) { $0 }), UInt(8))
        var remote = (UInt(0x10), UInt(8))
        let result = withUnsafeMutableBytes(of: &local) { local in
            withUnsafeMutableBytes(of: &remote) { remote in
                call(
                    SYS_process_vm_readv, Int(other), Int(bitPattern: local.baseAddress), 1,
                    Int(bitPattern: remote.baseAddress), 1)
            }
        }
        return result < 0 && errno == EFAULT ? 0 : result
    case "kill": return call(SYS_kill, Int(other), Int(SIGURG))
    case "tgkill": return call(SYS_tgkill, Int(other), Int(other), Int(SIGURG))
    case "mapcode":
        let result = call(SYS_mmap, 0, 4_096, Int(PROT_READ | PROT_WRITE | PROT_EXEC), 0x22, -1)
        return result
    case "protectcode":
        let memory = call(SYS_mmap, 0, 4_096, Int(PROT_READ | PROT_WRITE), 0x22, -1)
        return memory == -1 ? -1 : call(SYS_mprotect, memory, 4_096, Int(PROT_READ | PROT_EXEC))
    case "dumpable": return call(SYS_prctl, 4 /* PR_SET_DUMPABLE */, 1)
    case "unlimited":
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_DATA.rawValue), &limit)
        return withUnsafeBytes(of: &limit) {
            call(SYS_prlimit64, 0, Int(RLIMIT_DATA.rawValue), Int(bitPattern: $0.baseAddress))
        }
    case "otherlimit":
        return call(SYS_prlimit64, Int(other), Int(RLIMIT_CPU.rawValue))
    case "unshare": return call(SYS_unshare, 0x1000_0000 /* CLONE_NEWUSER */)
    case "memfd": return "x".withCString { call(SYS_memfd_create, Int(bitPattern: $0)) }
    case "ring":
        let parameters = [UInt8](repeating: 0, count: 120)
        return parameters.withUnsafeBytes { call(425, 4, Int(bitPattern: $0.baseAddress)) }
    case "action": return call(SYS_rt_sigaction, Int(SIGUSR1), 0, 0, 8)
    default: _exit(100)
    }
}

guard CommandLine.arguments.count == 3 else { exit(100) }
// Prepared before the sandbox: the attempts need these objects.
let other = fork_and_wait()
let socket = call(SYS_socket, 2, 1, 0)

func fork_and_wait() -> pid_t {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { exit(101) }
    let child = pid_t(call(SYS_clone, Int(SIGCHLD)))
    if child == 0 {
        // It ends with its parent. A signal at the parent's death (PR_SET_PDEATHSIG) would be sent by the parent to
        // another process, which Landlock forbids.
        close(ends[1])
        var byte: UInt8 = 0
        while read(ends[0], &byte, 1) < 0, errno == EINTR {}
        _exit(0)
    }
    close(ends[0])
    return child
}

do {
    switch CommandLine.arguments[1] {
    case "all":
        guard try JQHelper.confine().isEmpty else { exit(101) }
    case "landlock":
        guard try HelperSandbox.denyObjects().isEmpty else { exit(101) }
    case "nothing": break
    default: exit(100)
    }
} catch {
    exit(102)
}
end(attempt(CommandLine.arguments[2], other: other, socket: socket))
