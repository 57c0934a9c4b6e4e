public import FreshetEventLoop
import FreshetSignals
public import FreshetSystemSignals

/// Reports the state of the network, now and after each change, until the calling task is cancelled.
public func reportNetwork(_ report: (String) -> Void) async {
    for await fact in Reachability.changes {
        report(fact.isReachable ? "reachable \(fact)" : "not reachable: \(fact)")
    }
}

/// The same for one host, on the program's own event loop.
public func reportRoute(to host: IPAddress, on loop: EventLoop, _ report: (String) -> Void) async {
    for await fact in Reachability(of: .address(host), on: loop).changes {
        report("\(host): \(fact)")
    }
}

/// The lines of a file, now and after each change.
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

/// Descriptions of the sources that are not available on this machine; empty if all are.
public func missingParts() async -> [String] {
    var missing: [String] = []
    if let reason = await Reachability.changes.first(where: { _ in true })?.unknownBecause { missing.append(reason) }
    let sleep = await Sleep.changes.first { $0.logind != .pending }
    if case .unavailable(let reason)? = sleep?.logind { missing.append("logind: \(reason)") }
    return missing
}
