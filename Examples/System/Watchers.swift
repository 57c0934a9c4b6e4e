public import FreshetEventLoop
import FreshetSignals
public import FreshetSystemSignals

/// Says how the network is, now and whenever that changes, until the calling task is cancelled.
public func tellNetwork(_ say: (String) -> Void) async {
    for await fact in Reachability.changes {
        say(fact.isReachable ? "reachable \(fact)" : "not reachable: \(fact)")
    }
}

/// The same of a host, on the loop that the program has anyway.
public func tellRoute(to host: IPAddress, on loop: EventLoop, _ say: (String) -> Void) async {
    for await fact in Reachability(of: .address(host), on: loop).changes {
        say("\(host): \(fact)")
    }
}

/// The lines of a file, and those that it has after each change.
public func lines(
    of path: String, read: @escaping @Sendable (String) -> [String]
) -> some AsyncSequence<[String], Never> & Sendable {
    let file = WatchedFile(at: path)
    return publishAndRepeat(
        onOutputFrom: file.signal.debounce(for: .milliseconds(50), atMost: .seconds(1), leading: false)
    ) {
        Emitter<[String], Never>.once { read(file.path) }
    }
}

/// What is missing on this machine, for people; nothing if all can be heard.
public func missingParts() async -> [String] {
    var missing: [String] = []
    if let reason = await Reachability.changes.first(where: { _ in true })?.unknownBecause { missing.append(reason) }
    let sleep = await Sleep.changes.first { $0.logind != .pending }
    if case .unavailable(let reason)? = sleep?.logind { missing.append("logind: \(reason)") }
    return missing
}
