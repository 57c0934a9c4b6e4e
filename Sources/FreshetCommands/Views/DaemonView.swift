import FreshetControl
import FreshetRender

/// The daemon for people: the head of `status`.
enum DaemonView {
    static func lines(_ daemon: DaemonStatus, _ times: Times, _ palette: Palette) -> [String] {
        let counts = daemon.pipelines
        let states = [
            (counts.loaded, "loaded"), (counts.loading, "loading"), (counts.waiting, "waiting"),
            (counts.failed, "failed"), (counts.held, "held"), (counts.idle, "idle"),
        ]
        let parts = states.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        let detail = parts.isEmpty ? "" : ": " + parts.joined(separator: ", ")
        let style: Palette.Style = counts.failed > 0 ? .bad : daemon.networkReachable ? .good : .busy
        return [
            "\(palette.paint("●", style)) freshetd \(DisplayText.harmless(daemon.version))",
            "    Since: \(times.both(daemon.since))",
            "      PID: \(daemon.pid)",
            "  Network: \(DisplayText.harmless(daemon.network))",
            "Pipelines: \(counts.total)\(detail)",
        ]
            + (daemon.cacheBytes.map { ["    Cache: \(room($0, of: daemon.cacheLimit))"] } ?? [])
            + (daemon.failingHooks.map { ["    Hooks: \(palette.paint("\(Count.text($0, "hook")) failing", .bad))"] }
                ?? [])
    }

    private static func room(_ bytes: Int64, of limit: Int64?) -> String {
        let used = SizeText.bytes(bytes)
        return limit.map { "\(used) of \(SizeText.bytes($0))" } ?? used
    }
}
