import CCurl
import Glibc

/// Decides whether a redirect may lead to the address that a hop has connected to (``AddressClass``).
///
/// A public address may be an address of this machine, and a service on this machine may trust local clients. So a
/// redirect must not lead to this machine either, unless the configured origin is on this machine.
struct RedirectReach {
    /// The two addresses of a connection, as inet_ntop(3) writes them.
    struct Ends: Hashable {
        var remote: String
        var local: String

        /// Whether both ends are on this machine. Linux connects to its own address from the same address, unless that
        /// is a secondary address of an interface: it then uses the primary address.
        func areHere(_ own: OwnAddresses) -> Bool { remote == local || own.contains(remote) }
    }

    /// The addresses of the first connection, to the configured origin; nil before the first connection.
    private var first: Ends?

    /// The class of the address that forbids the hop; nil if the hop is allowed.
    ///
    /// - Parameter own: returns this machine's addresses; it is called only if they are needed.
    mutating func refusal(of ends: Ends, own: () -> OwnAddresses) -> AddressClass? {
        guard let first else {
            self.first = ends
            return nil
        }
        let (from, to) = (AddressClass(of: first.remote), AddressClass(of: ends.remote))
        guard to <= from else { return to }
        guard from != .machine, ends.remote != first.remote else { return nil }
        let own = own()
        return ends.areHere(own) && !first.areHere(own) ? .machine : nil
    }
}

/// The addresses of this machine's interfaces.
struct OwnAddresses: Hashable, Sendable {
    private let addresses: Set<[UInt8]>

    /// - Parameter addresses: as inet_ntop(3) writes them.
    init(_ addresses: [String]) { self.init(bytes: addresses.compactMap(AddressClass.bytes)) }

    private init(bytes: [[UInt8]]) { addresses = Set(bytes) }

    func contains(_ address: String) -> Bool { AddressClass.bytes(of: address).map(addresses.contains) ?? false }

    /// The present addresses; empty if the kernel does not return them.
    static func now() -> OwnAddresses {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&list) == 0 else { return OwnAddresses([]) }
        defer { freeifaddrs(list) }
        var found: [[UInt8]] = []
        var next = list
        while let entry = next {
            next = entry.pointee.ifa_next
            guard let address = entry.pointee.ifa_addr else { continue }
            switch Int32(address.pointee.sa_family) {
            case AF_INET:
                let four = address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { $0.pointee.sin_addr }
                found.append(withUnsafeBytes(of: four) { Array($0) })
            case AF_INET6:
                let six = address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { $0.pointee.sin6_addr }
                found.append(withUnsafeBytes(of: six) { Array($0) })
            default:
                break
            }
        }
        return OwnAddresses(bytes: found)
    }
}
