/// The links and addresses of this machine according to the kernel: listed once, then updated.
struct KernelTables: Hashable, Sendable {
    private(set) var links: [Int32: Link] = [:]
    /// Flags (IFA_F_*) by address and link.
    private(set) var addresses: [IPAddress: [Int32: UInt32]] = [:]

    /// Applies an event of the kernel. Applying an old event again is harmless if all later events are applied, too.
    ///
    /// - Returns: Whether a path may have changed. It has not after a renewed lifetime, another MTU, or statistics of a
    ///   wireless link: the tables are unchanged, and a change of routes has its own message.
    @discardableResult
    mutating func apply(_ event: RoutingEvent) -> Bool {
        switch event {
        case .link(let index, let link):
            let isNew = link == nil || links[index] != link
            links[index] = link
            // The addresses of a removed link are gone. The kernel reports that, but not always in time.
            if link == nil {
                for address in addresses.keys { set(address, on: index, to: nil) }
            }
            return isNew
        case .address(let local, let flags):
            // A deletion always counts: a link may have an address twice, with two prefixes, of which one is in this
            // table.
            let isNew = flags == nil || addresses[local.address]?[local.index] != flags
            set(local.address, on: local.index, to: flags)
            return isNew
        case .routing: return true
        }
    }

    /// Whether a running link has an address with a scope beyond the machine and the link: other hosts may be reachable
    /// there without a route to elsewhere.
    var hasDirectNetwork: Bool {
        addresses.contains { address, links in
            !address.isLoopback && !address.isIPv6LinkLocal && links.keys.contains { self.links[$0]?.isRunning == true }
        }
    }

    private mutating func set(_ address: IPAddress, on index: Int32, to flags: UInt32?) {
        addresses[address, default: [:]][index] = flags
        if addresses[address]?.isEmpty == true { addresses[address] = nil }
    }
}
