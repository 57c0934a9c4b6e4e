/// When a change of parameters becomes a run: when nothing was changed for as long as the parameters want that have
/// changed, and if the values are others than those of the last attempt.
///
/// The gate keeps no time of its own; who asks acts when ``due`` has come.
struct ParameterDebouncer: Hashable, Sendable {
    /// As they were set last.
    private(set) var values: ParameterValues
    /// Those that the last run was started with; nil: none was with what is configured now.
    private(set) var tried: ParameterValues?
    /// What was changed since the last run was started.
    private var changed: RunCause?
    private var quiet: Duration = .zero
    /// When what is held is acted on, if nothing is changed before; nil: nothing is held.
    private(set) var due: ContinuousClock.Instant?
    /// A change was let through, and what waits for a run because of parameters waits for that alone.
    var isPassed = false

    init(_ values: ParameterValues) {
        self.values = values
        tried = values
    }

    /// No run was started with the values yet.
    var isUntried: Bool { values != tried }

    /// Somebody set values; equal ones are no change.
    mutating func set(_ new: ParameterValues, quiet: Duration, at now: ContinuousClock.Instant) {
        guard new != values else { return }
        values = new
        if var cause = changed {
            cause.count += 1
            cause.last = now
            changed = cause
        } else {
            changed = RunCause(SignalName.parameter, first: now)
        }
        self.quiet = due == nil ? quiet : max(quiet, self.quiet)
        due = now.advanced(by: self.quiet)
    }

    /// It was quiet for long enough: the change to act on, with all that was changed since the last run was started. Nil:
    /// it came to nothing, as the values are those of the last attempt again.
    mutating func pass() -> RunCause? {
        due = nil
        if !isUntried { changed = nil }
        return cause
    }

    /// A run starts with the values, and answers all that was changed. Returns what had not been let through yet.
    mutating func start() -> RunCause? {
        defer {
            tried = values
            changed = nil
            due = nil
            isPassed = false
        }
        return due != nil && isUntried ? cause : nil
    }

    /// Another configuration holds. What is held goes on to be.
    mutating func reconfigure(_ new: ParameterValues, sameProduct: Bool) {
        values = new
        if !sameProduct { tried = nil }
    }

    /// What was changed, with the names of the parameters whose values are others than those of the last attempt.
    private var cause: RunCause? {
        var cause = changed
        if let tried { cause?.detail = values.names(unlike: tried).joined(separator: ", ") }
        return cause
    }
}
