/// Which server to try next, and when. A pure struct: time and random numbers are parameters.
///
/// A failed attempt leads to the next server in the ring, after a random delay from zero to a limit ("full jitter",
/// M. Brooker, Exponential Backoff And Jitter, AWS Architecture Blog, 2015). The limit doubles with each round:
///
/// | failed attempts, two servers | 0–1 | 2–3 | 4–5 | 6–7 | … | 12 or more |
/// | --- | --- | --- | --- | --- | --- | --- |
/// | largest delay | 2 s | 4 s | 8 s | 16 s | … | 120 s |
///
/// A server that refuses the credential is left out for an hour, because only an administrator can change that. The
/// other servers are tried as before: one server of a cluster may have another configuration.
struct ReconnectSchedule: Hashable, Sendable {
    typealias Instant = ContinuousClock.Instant

    /// A planned attempt.
    struct Attempt: Hashable, Sendable {
        var server: Int
        var at: Instant
    }

    let timing: NATSTiming
    /// For each server the end of the pause after it refused the credential.
    private var refusedUntil: [Instant?]
    /// The attempts that failed since the last connection that was stable.
    private(set) var failures = 0
    private var next: Int

    /// - Parameters:
    ///   - servers: the number of servers, at least one.
    ///   - fraction: a random number from 0 to 1: the first server, so that clients are spread over the servers.
    init(servers: Int, timing: NATSTiming, fraction: Double) {
        self.timing = timing
        refusedUntil = Array(repeating: nil, count: max(1, servers))
        next = min(max(1, servers) - 1, Int(fraction * Double(max(1, servers))))
    }

    /// Whether a server refused the credential, and none accepted it since.
    private(set) var isRefused = false

    /// The first attempt: immediate.
    func first(at now: Instant) -> Attempt { attempt(after: .zero, now) }

    /// An attempt failed.
    mutating func failed(_ server: Int, at now: Instant, fraction: Double) -> Attempt {
        failures = min(failures + 1, 1 << 16)
        return moveOn(from: server, now, fraction)
    }

    /// A server refused the credential.
    mutating func refused(by server: Int, at now: Instant, fraction: Double) -> Attempt {
        isRefused = true
        refusedUntil[server] = now + timing.refusedBackoff * (0.9 + 0.2 * fraction)
        return moveOn(from: server, now, fraction)
    }

    /// A server accepted the client. Others that refuse it stay left out.
    mutating func accepted(by server: Int) {
        isRefused = false
        refusedUntil[server] = nil
        next = server
    }

    /// A connection ended.
    ///
    /// - Parameter duration: since the server accepted the client.
    mutating func ended(_ server: Int, after duration: Duration, at now: Instant, fraction: Double) -> Attempt {
        failures = duration < timing.stableAfter ? min(failures + 1, 1 << 16) : 0
        return moveOn(from: server, now, fraction)
    }

    /// The network changed: earlier failures do not count. Refusals do, because they are about the credential.
    mutating func networkChanged(at now: Instant, fraction: Double) -> Attempt {
        failures = 0
        return attempt(after: delay(fraction), now)
    }

    private mutating func moveOn(from server: Int, _ now: Instant, _ fraction: Double) -> Attempt {
        next = (server + 1) % refusedUntil.count
        return attempt(after: delay(fraction), now)
    }

    private func delay(_ fraction: Double) -> Duration {
        // 2^20 times the first limit is more than any largest limit.
        let doublings = min(20, failures / refusedUntil.count)
        return min(timing.longestBackoff, timing.backoff * (1 << doublings)) * fraction
    }

    /// The first server in the ring that may be tried after the delay; if all have refused, the one whose pause ends
    /// first.
    private func attempt(after delay: Duration, _ now: Instant) -> Attempt {
        let at = now + delay
        let ring = refusedUntil.indices.map { (next + $0) % refusedUntil.count }
        if let server = ring.first(where: { (refusedUntil[$0] ?? at) <= at }) { return Attempt(server: server, at: at) }
        let first = ring.min { (refusedUntil[$0] ?? at) < (refusedUntil[$1] ?? at) } ?? 0
        return Attempt(server: first, at: refusedUntil[first] ?? at)
    }
}
