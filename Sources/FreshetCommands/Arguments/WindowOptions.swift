import ArgumentParser

/// From when and until when something is shown.
struct WindowOptions: ParsableArguments {
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("From when: -1h, '2 hours ago', 09:30, yesterday, '2026-11-21 09:30'.", valueName: "time"),
        transform: WindowOptions.instant)
    var since: Instant?

    @Option(
        parsing: .unconditional, help: ArgumentHelp("Until when; now, if it is not given.", valueName: "time"),
        transform: WindowOptions.instant)
    var until: Instant?

    static func instant(_ text: String) throws -> Instant {
        guard let instant = Instant(argument: text) else {
            throw ValidationError(
                "'\(text)' is no time; times are such as -1h, '2 hours ago', 09:30, yesterday, '2026-11-21 09:30 UTC', @1795228763 "
                    + "(systemd.time(7)).")
        }
        return instant
    }

    /// Both as instants.
    ///
    /// - Parameter length: how long it is, in microseconds, where it is not said from when.
    func window(_ session: Session, length: Int64) throws(CommandFailure) -> RecentHistory.Window {
        let now = session.context.now()
        let zone = session.context.timeZone
        let last = until?.resolved(now: now, timeZone: zone) ?? now
        let first = since?.resolved(now: now, timeZone: zone) ?? max(0, last - length)
        guard first < last else {
            throw CommandFailure(
                .usage,
                "nothing is between --since (\(session.times.absolute(first))) and --until (\(session.times.absolute(last)))"
            )
        }
        return .init(since: first, until: last)
    }
}
