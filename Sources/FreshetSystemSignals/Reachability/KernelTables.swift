/// The links and addresses of this machine, as the kernel told them: listed once, then followed.
struct KernelTables: Hashable, Sendable {
    private(set) var links: [Int32: Link] = [:]
    /// Flags (IFA_F_*) by address and link.
    private(set) var addresses: [IPAddress: [Int32: UInt32]] = [:]

    /// Takes in what the kernel said. Applying old news again is harmless, as long as all that follows is applied too.
    ///
    /// - Returns: whether a path may be another one now. It may not after a renewed lifetime, another MTU, statistics of
    ///   a wireless link: what the tables hold is as it was, and a change of routes that came with it has a message of
    ///   its own.
    @discardableResult
    mutating func apply(_ event: RoutingEvent) -> Bool {
        switch event {
        case .link(let index, let link):
            let isNews = link == nil || links[index] != link
            links[index] = link
            // Its addresses went with it; the kernel says so, but not always in time.
            if link == nil {
                for address in addresses.keys { set(address, on: index, to: nil) }
            }
            return isNews
        case .address(let local, let flags):
            // A deletion always: one link may have an address twice, with two prefixes, of which one is known here.
            let isNews = flags == nil || addresses[local.address]?[local.index] != flags
            set(local.address, on: local.index, to: flags)
            return isNews
        case .routing: return true
        }
    }

    /// Whether a link carries packets and has an address for more than this machine and the link itself: other hosts may be
    /// reachable there without a route to elsewhere.
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
