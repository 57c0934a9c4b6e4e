import CSystemd
import Glibc

/// A stable identity of this machine, from which other values can be derived.
public struct MachineIdentity: Hashable, Sendable {
    /// 16 bytes that are unique to this machine and do not reveal the machine id (machine-id(5) asks not to expose it).
    public let bytes: [UInt8]

    /// Chosen at random once. Do not change it: a change would move every host's delays.
    private static let application: [UInt8] = [
        0x6f, 0x1d, 0x83, 0x5a, 0xc2, 0x0e, 0x4b, 0x97, 0xa4, 0x39, 0x1c, 0xd8, 0x70, 0xe5, 0x92, 0x4f,
    ]

    /// The host name, as a substitute for a missing identity: a container has its own host name, and no machine id.
    public static var hostName: [UInt8] {
        var name = [CChar](repeating: 0, count: 256)  // HOST_NAME_MAX is 64
        guard gethostname(&name, name.count - 1) == 0 else { return [] }
        return name.prefix { $0 != 0 }.map { UInt8(truncatingIfNeeded: $0) }
    }

    /// Reads the identity; nil if the machine has none: a container without `/etc/machine-id`, or a first boot before
    /// that file is written.
    ///
    /// It calls sd_id128_get_machine_app_specific(3): a hash of Freshet's own id with the machine id as the key.
    public static func read() -> MachineIdentity? {
        var application = sd_id128_t()
        withUnsafeMutableBytes(of: &application) { $0.copyBytes(from: Self.application) }
        var result = sd_id128_t()
        guard sd_id128_get_machine_app_specific(application, &result) == 0 else { return nil }
        return MachineIdentity(bytes: withUnsafeBytes(of: &result) { Array($0) })
    }
}
