/// The links and addresses of this machine, as the kernel told them: listed once, then followed.
struct KernelTables: Hashable, Sendable {
    private(set) var links: [Int32: Link] = [:]
    /// Flags (IFA_F_*) by address and link.
    private(set) var addresses: [IPAddress: [Int32: UInt32]] = [:]

    /// Takes in what the kernel said. Applying old news again is harmless, as long as all that follows is applied too.
    mutating func apply(_ event: RoutingEvent) {
        switch event {
        case .link(let index, let link):
            links[index] = link
            // Its addresses went with it; the kernel says so, but not always in time.
            guard link == nil else { return }
            for address in addresses.keys { set(address, on: index, to: nil) }
        case .address(let local, let flags): set(local.address, on: local.index, to: flags)
        case .routing: break
        }
    }

    private mutating func set(_ address: IPAddress, on index: Int32, to flags: UInt32?) {
        addresses[address, default: [:]][index] = flags
        if addresses[address]?.isEmpty == true { addresses[address] = nil }
    }
}
