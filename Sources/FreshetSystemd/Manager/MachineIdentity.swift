import CSystemd
import Glibc

/// A stable identity of this machine, fit to derive things from.
public struct MachineIdentity: Hashable, Sendable {
    /// 16 bytes that no other machine has, and from which the machine id itself cannot be found (machine-id(5) asks
    /// not to expose that one).
    public let bytes: [UInt8]

    /// Chosen at random once; a change would move every host's delays.
    private static let application: [UInt8] = [
        0x6f, 0x1d, 0x83, 0x5a, 0xc2, 0x0e, 0x4b, 0x97, 0xa4, 0x39, 0x1c, 0xd8, 0x70, 0xe5, 0x92, 0x4f,
    ]

    /// The name that the machine goes by, for want of an identity: a container has one of its own, and no machine id.
    public static var hostName: [UInt8] {
        var name = [CChar](repeating: 0, count: 256)  // HOST_NAME_MAX is 64
        guard gethostname(&name, name.count - 1) == 0 else { return [] }
        return name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    }

    /// Reads the identity, or returns nil where the machine has none: a container without `/etc/machine-id`, a first
    /// boot before it is written.
    ///
    /// It is sd_id128_get_machine_app_specific(3): the machine id as the key of a hash of Freshet's own id.
    public static func read() -> MachineIdentity? {
        var application = sd_id128_t()
        withUnsafeMutableBytes(of: &application) { $0.copyBytes(from: Self.application) }
        var result = sd_id128_t()
        guard sd_id128_get_machine_app_specific(application, &result) == 0 else { return nil }
        return MachineIdentity(bytes: withUnsafeBytes(of: &result) { Array($0) })
    }
}
