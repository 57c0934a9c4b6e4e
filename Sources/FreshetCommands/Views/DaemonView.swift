import FreshetControl
import FreshetRender

/// The daemon's part of the output of `status`.
enum DaemonView {
    /// - Parameter columns: the width of the terminal; nil for no limit.
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
            // One line is enough; 'reload' prints the rest.
            first.excerpt = nil
            block.add("Error", DiagnosticView.text(first))
        }
        if let bytes = daemon.cacheBytes { block.add("Cache", usage(bytes, of: daemon.cacheLimit)) }
        if let bytes = daemon.memoryBytes, bytes > 0 { block.add("Memory", usage(bytes, of: daemon.memoryLimit)) }
        for hook in daemon.invalidHooks ?? [] {
            block.add("Hook", "\(hook.name) does not run: \(hook.message)", .bad)
        }
        if let count = daemon.failingHooks { block.add("Hooks", "\(Count.text(count, "hook")) failing", .bad) }
        return block.lines
    }

    /// Such as `refused 5min ago: 2 errors; the previous configuration stays active; 'freshetctl reload' retries`. A
    /// reload prints all errors; `check` prints only those that are visible without a daemon.
    private static func text(of refused: RefusedReload, _ times: Times) -> String {
        "\(short(refused, times)); the previous configuration stays active; 'freshetctl reload' retries"
    }

    /// Such as `refused 5min ago: 2 errors`.
    static func short(_ refused: RefusedReload, _ times: Times) -> String {
        "refused \(times.past(refused.at)): \(Count.text(refused.errors, "error"))"
    }

    private static func usage(_ bytes: Int64, of limit: Int64?) -> String {
        let used = SizeText.bytes(bytes)
        return limit.map { "\(used) of \(SizeText.bytes($0))" } ?? used
    }
}
