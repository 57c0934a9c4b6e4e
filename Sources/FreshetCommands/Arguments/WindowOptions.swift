import ArgumentParser

/// The window of time that a picture shows.
struct WindowOptions: ParsableArguments {
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Begin at this time: -1h, '2 hours ago', 09:30, yesterday, '2026-11-21 09:30'.", valueName: "time"),
        transform: WindowOptions.instant)
    var since: Instant?

    @Option(
        parsing: .unconditional, help: ArgumentHelp("End at this time; the default is now.", valueName: "time"),
        transform: WindowOptions.instant)
    var until: Instant?

    static func instant(_ text: String) throws -> Instant {
        guard let instant = Instant(argument: text) else {
            throw ValidationError(
                "'\(text)' is not a time; examples are -1h, '2 hours ago', 09:30, yesterday, '2026-11-21 09:30 UTC', "
                    + "@1795228763 (systemd.time(7)).")
        }
        return instant
    }

    /// Both ends as instants.
    ///
    /// - Parameter length: the length without `--since`, in microseconds.
    func window(_ session: Session, length: Int64) throws(CommandFailure) -> RecentHistory.Window {
        let now = session.context.now()
        let zone = session.context.timeZone
        let last = until?.resolved(now: now, timeZone: zone) ?? now
        let first = since?.resolved(now: now, timeZone: zone) ?? max(0, last - length)
        guard first < last else {
            throw CommandFailure(
                .usage,
                "--since (\(session.times.absolute(first))) is not before --until (\(session.times.absolute(last)))")
        }
        return .init(since: first, until: last)
    }
}
