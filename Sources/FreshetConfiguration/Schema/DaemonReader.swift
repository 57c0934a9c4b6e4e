/// Reads `freshet.yaml`.
struct DaemonReader {
    let reader: DefinitionReader

    /// How many runs may be concurrent: each uses a few descriptors, and the service may open 16,384.
    static let maximumConcurrency = 4096
    /// The smallest `memory.max`: less is not enough for one jq program and a few megabytes of data.
    static let minimumMemoryLimit: UInt64 = 64 << 20

    /// Reads `freshet.yaml`. The result may be used only if ``DefinitionReader/errors`` contains no error.
    func daemon(from root: Node) -> DaemonDefinition {
        var daemon = DaemonDefinition()
        guard let file = reader.root(.daemon, root) else { return daemon }
        daemon.splay = reader.value("splay", in: file, .duration()) ?? daemon.splay
        daemon.concurrency =
            reader.value("concurrency", in: file, .integer(1...Self.maximumConcurrency)) ?? daemon.concurrency
        daemon.originConcurrency =
            reader.value("origin-concurrency", in: file, .integer(1...Self.maximumConcurrency))
            ?? daemon.originConcurrency
        if daemon.originConcurrency > daemon.concurrency, let entry = file["origin-concurrency"] {
            reader.warning(
                entry.value.location, "origin-concurrency",
                "'origin-concurrency' is greater than 'concurrency', the limit of all requests",
                remedy: "make it at most \(daemon.concurrency)")
        }
        daemon.networkTarget = reader.value("network-target", in: file, .address)
        daemon.networkProbe = reader.value("network-probe", in: file, .probe)
        daemon.fleet = FleetReader(reader: reader).fleet(in: file)
        cacheQuota(of: &daemon, in: file)
        if let section = reader.section(.daemonMemory, "memory", in: file) {
            daemon.memoryLimit =
                reader.value("max", in: section, .size(Self.minimumMemoryLimit...ByteSize.largest))
                ?? daemon.memoryLimit
        }
        return daemon
    }
}
