import FreshetControl
import FreshetEventLoop
import FreshetPipelines
import FreshetSystemSignals
import Glibc

/// The status line of the daemon in `systemctl status`: the number of pipelines in each state, the failed pipelines
/// with their reasons, the network, and the next run. It is one line for people, such as
///
///     3 pipelines: 2 loaded, 1 failed (jwks: id.example.com answered 404 Not Found, since 12:03); network via
///     192.0.2.1 on wan0; next refresh 12:15 (flags)
struct StatusLine: Sendable {
    /// The maximum number of failed pipelines that the line names.
    static let namedFailures = 3
    /// The maximum length of a failure's reason, in characters; `freshetctl status` shows the whole reason.
    static let reasonLimit = 80

    struct Failure: Hashable, Sendable {
        var pipeline: String
        var reason: String
        /// Wall-clock microseconds since 1970.
        var since: Int64
    }

    var counts = PipelineCounts()
    /// The first failed pipelines by name, at most ``namedFailures``.
    private(set) var failures: [Failure] = []
    /// The names of the pipelines whose copies are older than `max-age`.
    var expired: Set<String> = []
    /// The names of the pipelines whose copies are withdrawn.
    var withdrawn: Set<String> = []
    /// The number of hooks that have failed and are pending.
    var failingHooks = 0
    /// The names of the hooks of several pipelines whose files have errors.
    var invalidHooks: [String] = []
    var network = "not known"
    /// The next planned run: wall-clock microseconds since 1970.
    var next: (pipeline: String, at: Int64)?
    /// The last reload, if it was refused.
    var refusedReload: RefusedReload?
    /// The job of a worker that has taken long.
    var slowDisk: (work: String, seconds: Int64)?

    /// Adds a failed pipeline, which `counts` includes too. `failure` is called only if the line names the pipeline.
    mutating func add(_ pipeline: String, _ failure: () -> (reason: String, since: Int64)) {
        let index = failures.firstIndex { pipeline < $0.pipeline } ?? failures.count
        guard index < Self.namedFailures else { return }
        let (reason, since) = failure()
        failures.insert(Failure(pipeline: pipeline, reason: reason, since: since), at: index)
        if failures.count > Self.namedFailures { failures.removeLast() }
    }

    /// - Parameters:
    ///   - now: wall-clock microseconds since 1970.
    ///   - offset: seconds east of UTC.
    func text(now: Int64, offset: Int64) -> String {
        let day = Self.day(now, offset)
        func moment(_ instant: Int64) -> String { Self.moment(instant, offset, today: day) }
        var states = [
            (counts.loaded, "loaded"), (counts.loading, "loading"), (counts.waiting, "waiting"), (counts.idle, "idle"),
            (counts.held, "held"),
        ].filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        if counts.failed > 0 {
            var named = failures.map { "\($0.pipeline): \(Self.cut($0.reason)), since \(moment($0.since))" }
            let others = Int(counts.failed) - named.count
            if others > 0, !named.isEmpty { named.append("and \(others) more") }
            states.append("\(counts.failed) failed" + (named.isEmpty ? "" : " (\(named.joined(separator: "; ")))"))
        }
        var parts = ["\(counts.total) \(counts.total == 1 ? "pipeline" : "pipelines")"]
        if !states.isEmpty { parts[0] += ": " + states.joined(separator: ", ") }
        if let refused = refusedReload {
            parts.insert(
                "reload refused \(moment(refused.at)) (\(refused.errors) \(refused.errors == 1 ? "error" : "errors")), "
                    + "the previous configuration stays active", at: 0)
        }
        if let slowDisk { parts.insert("disk slow: \(slowDisk.work) for \(slowDisk.seconds) s", at: 0) }
        for (names, what) in [(expired, "expired"), (withdrawn, "withdrawn")] where !names.isEmpty {
            let named = names.sorted().prefix(Self.namedFailures)
            let others = names.count - named.count
            parts.append(
                "\(names.count) \(what) (\(named.joined(separator: ", "))"
                    + (others > 0 ? " and \(others) more)" : ")"))
        }
        if !invalidHooks.isEmpty {
            let named = invalidHooks.prefix(Self.namedFailures).joined(separator: ", ")
            let others = invalidHooks.count - Self.namedFailures
            parts.append(
                "\(invalidHooks.count) \(invalidHooks.count == 1 ? "hook does" : "hooks do") not run (\(named)"
                    + (others > 0 ? " and \(others) more)" : ")"))
        }
        if failingHooks > 0 { parts.append("\(failingHooks) \(failingHooks == 1 ? "hook fails" : "hooks fail")") }
        parts.append("network \(network)")
        if let next { parts.append("next refresh \(moment(next.at)) (\(next.pipeline))") }
        return parts.joined(separator: "; ")
    }

    private static func cut(_ reason: String) -> String {
        reason.count > reasonLimit ? reason.prefix(reasonLimit - 1) + "…" : reason
    }

    private static func day(_ instant: Int64, _ offset: Int64) -> Int64 {
        let seconds = instant / 1_000_000 + offset
        return (seconds - ((seconds % 86_400) + 86_400) % 86_400) / 86_400
    }

    /// The time of day; for another day, the distance in days.
    private static func moment(_ instant: Int64, _ offset: Int64, today: Int64) -> String {
        let seconds = instant / 1_000_000 + offset
        let ofDay = ((seconds % 86_400) + 86_400) % 86_400
        let time = "\(twoDigits(ofDay / 3_600)):\(twoDigits(ofDay % 3_600 / 60))"
        switch day(instant, offset) - today {
        case 0: return time
        case 1: return "tomorrow \(time)"
        case -1: return "yesterday \(time)"
        case let days where days > 0: return "in \(days) days"
        case let days: return "\(-days) days ago"
        }
    }

    private static func twoDigits(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
}

extension WallClock {
    /// The offset of this machine's time zone at an instant, in seconds east of UTC.
    ///
    /// - Parameter instant: microseconds since 1970.
    static func offset(at instant: Int64) -> Int64 {
        var seconds = time_t(instant / 1_000_000)
        var local = tm()
        return localtime_r(&seconds, &local) == nil ? 0 : Int64(local.tm_gmtoff)
    }
}
