import CLinux
import Glibc

/// The sandbox of a helper, for jq programs or for unpacking. A helper reads untrusted data with libraries written in
/// C. An attacker who controls the helper gets a process that can only read its request, write its reply, use memory,
/// and exit.
///
/// The sandbox is permanent: neither the process nor another process can remove it.
package enum HelperSandbox {
    /// The parts of the sandbox that the kernel does not support.
    package struct Gaps: OptionSet, Hashable, Sendable, CustomStringConvertible {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }

        /// A kernel without CONFIG_SECCOMP_FILTER.
        package static let systemCallFilter = Gaps(rawValue: 1)
        /// A kernel before 5.13, a kernel without CONFIG_SECURITY_LANDLOCK, a kernel that was booted without Landlock,
        /// or a container or service whose system call filter forbids Landlock.
        package static let landlock = Gaps(rawValue: 2)

        package var description: String {
            let names: [(Gaps, String)] = [(.systemCallFilter, "seccomp"), (.landlock, "Landlock")]
            return names.filter { contains($0.0) }.map(\.1).joined(separator: " and ")
        }
    }

    /// A part of the sandbox that the kernel supports and that failed.
    package struct Failure: Error, Hashable, CustomStringConvertible {
        var call: String
        var reason: Int32

        package init(_ call: String, errno reason: Int32 = errno) {
            self.call = call
            self.reason = reason
        }

        package var description: String {
            "\(call): \(strerrordesc_np(reason).map { String(cString: $0) } ?? "error \(reason)")"
        }
    }

    /// The ABI of the running kernel's Landlock; 0 or less if the kernel has no Landlock.
    package static var landlockVersion: Int { Int(Landlock.version) }

    /// Denies access to objects: the file system, connections, and signals to other processes. It applies to the
    /// calling thread only, so call it in a process with one thread, before ``filterSystemCalls()``.
    package static func denyObjects() throws(Failure) -> Gaps {
        // Landlock and seccomp require this of a process without privileges.
        guard freshet_prctl(PR_SET_NO_NEW_PRIVS, 1) == 0 else { throw Failure("PR_SET_NO_NEW_PRIVS") }
        return try Landlock.denyAll() ? [] : .landlock
    }

    /// Allows only the system calls of ``SystemCallFilter/helper(process:seeks:)``. It applies to the calling thread
    /// only. Call it last: afterwards the process cannot change its limits or its sandbox.
    ///
    /// - Parameter seeks: whether the process may set the position in the files that it has.
    package static func filterSystemCalls(seeks: Bool = false) throws(Failure) -> Gaps {
        try SystemCallFilter.helper(process: getpid(), seeks: seeks).install() ? [] : .systemCallFilter
    }
}

/// Landlock (landlock(7)), by which a process gives up its rights to objects.
private enum Landlock {
    /// The ABI; 0 or less, with errno, if there is no Landlock. LANDLOCK_CREATE_RULESET_VERSION is 1.
    static var version: Int32 { freshet_landlock_create(nil, 0, 1) }

    /// Gives up all rights that this kernel's Landlock controls. Returns false if the kernel has no Landlock.
    static func denyAll() throws(HelperSandbox.Failure) -> Bool {
        let version = version
        guard version > 0 else {
            // Landlock itself never returns EPERM here; a system call filter around this process does.
            guard [ENOSYS, EOPNOTSUPP, EPERM].contains(errno) else {
                throw HelperSandbox.Failure("landlock_create_ruleset")
            }
            return false
        }
        var rights = rights(version)
        // A kernel rejects a structure that is longer than its own.
        let size = version < 4 ? 8 : version < 6 ? 16 : 24
        let rules = freshet_landlock_create(&rights, size, 0)
        guard rules >= 0 else { throw HelperSandbox.Failure("landlock_create_ruleset") }
        defer { close(rules) }
        guard freshet_landlock_restrict(rules) == 0 else { throw HelperSandbox.Failure("landlock_restrict_self") }
        return true
    }

    /// The rights in linux/landlock.h up to each version of the ABI.
    private static func rights(_ version: Int32) -> freshet_landlock_rights {
        let files: UInt64 =
            switch version {
            case 1: 0x1FFF  // LANDLOCK_ACCESS_FS_EXECUTE … LANDLOCK_ACCESS_FS_MAKE_SYM
            case 2: 0x3FFF  // … LANDLOCK_ACCESS_FS_REFER
            case 3, 4: 0x7FFF  // … LANDLOCK_ACCESS_FS_TRUNCATE
            default: 0xFFFF  // … LANDLOCK_ACCESS_FS_IOCTL_DEV
            }
        return freshet_landlock_rights(
            files: files,
            network: version >= 4 ? 3 : 0,  // LANDLOCK_ACCESS_NET_BIND_TCP, …_CONNECT_TCP
            scoped: version >= 6 ? 3 : 0)  // LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET, …_SIGNAL
    }
}
