import FreshetControl
import FreshetRender

/// The daemon for people: the head of `status`.
enum DaemonView {
    /// - Parameter columns: the terminal's; nil: a line is as long as it is.
    static func lines(_ daemon: DaemonStatus, _ times: Times, _ palette: Palette, columns: Int? = nil) -> [String] {
        let counts = daemon.pipelines
        let states = [
            (counts.loaded, "loaded"), (counts.loading, "loading"), (counts.waiting, "waiting"),
            (counts.failed, "failed"), (counts.held, "held"), (counts.idle, "idle"),
        ]
        let parts = states.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        let detail = parts.isEmpty ? "" : ": " + parts.joined(separator: ", ")
        let style: Palette.Style = counts.failed > 0 ? .bad : daemon.networkReachable ? .good : .busy
        var block = LabelledText(palette: palette, columns: columns)
        block.add(title: "freshetd \(daemon.version)", mark: "●", style)
        block.add("Since", times.both(daemon.since))
        block.add("PID", "\(daemon.pid)")
        block.add("Network", daemon.network)
        block.add("Pipelines", "\(counts.total)\(detail)")
        if let refused = daemon.refusedReload {
            block.add("Reload", text(of: refused, times), .bad)
            var first = refused.first
            // A line is enough; 'reload' has the rest.
            first.excerpt = nil
            block.add("Fault", DiagnosticView.text(first))
        }
        if let bytes = daemon.cacheBytes { block.add("Cache", room(bytes, of: daemon.cacheLimit)) }
        if let bytes = daemon.memoryBytes, bytes > 0 { block.add("Memory", room(bytes, of: daemon.memoryLimit)) }
        if let count = daemon.failingHooks { block.add("Hooks", "\(Count.text(count, "hook")) failing", .bad) }
        return block.lines
    }

    /// Such as `refused 5min ago, 2 faults, the configuration before is in force; 'freshetctl reload' tries anew`. A reload
    /// names all of them, `check` only those that need no daemon to be seen.
    private static func text(of refused: RefusedReload, _ times: Times) -> String {
        "\(short(refused, times)), the configuration before is in force; 'freshetctl reload' tries anew"
    }

    /// Such as `refused 5min ago, 2 faults`.
    static func short(_ refused: RefusedReload, _ times: Times) -> String {
        "refused \(times.relative(refused.at)), \(Count.text(refused.faults, "fault"))"
    }

    private static func room(_ bytes: Int64, of limit: Int64?) -> String {
        let used = SizeText.bytes(bytes)
        return limit.map { "\(used) of \(SizeText.bytes($0))" } ?? used
    }
}
