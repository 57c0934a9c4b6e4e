extension DefinitionReader {
    /// The most runs at once: each has a few descriptors, and the service may open 16,384.
    static let maximumConcurrency = 4096
    /// The least `memory.max`: less is not enough for a program and a few megabytes.
    static let leastMemoryLimit: UInt64 = 64 << 20

    /// Reads `freshet.yaml`. What it returns is good only if there are no errors among the faults.
    mutating func daemon(from root: Node) -> DaemonDefinition {
        var daemon = DaemonDefinition()
        guard let file = self.root(.daemon, root) else { return daemon }
        daemon.splay = value("splay", in: file, .duration()) ?? daemon.splay
        daemon.concurrency = value("concurrency", in: file, .integer(1...Self.maximumConcurrency)) ?? daemon.concurrency
        daemon.originConcurrency =
            value("origin-concurrency", in: file, .integer(1...Self.maximumConcurrency)) ?? daemon.originConcurrency
        if daemon.originConcurrency > daemon.concurrency, let entry = file["origin-concurrency"] {
            warning(
                entry.value.location, "origin-concurrency",
                "'origin-concurrency' is more than 'concurrency', which has the last word",
                remedy: "make it at most \(daemon.concurrency)")
        }
        daemon.networkTarget = value("network-target", in: file, .address)
        daemon.networkProbe = value("network-probe", in: file, .probe)
        cacheRoom(of: &daemon, in: file)
        if let section = section(.daemonMemory, "memory", in: file) {
            daemon.memoryLimit =
                value("max", in: section, .size(Self.leastMemoryLimit...ByteSize.largest)) ?? daemon.memoryLimit
        }
        return daemon
    }
}
