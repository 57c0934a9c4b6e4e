import FreshetModel

/// Debounces changes of parameters: a change leads to a run after the longest quiet period of the changed parameters,
/// and only if the values differ from those of the last attempt.
///
/// The debouncer has no timer; the caller acts when ``due`` has come.
struct ParameterDebouncer: Hashable, Sendable {
    /// The values that were set last.
    private(set) var values: ParameterValues
    /// The values of the last run; nil: no run has started with the current configuration.
    private(set) var tried: ParameterValues?
    /// The changes since the last run started.
    private var changed: RunCause?
    private var quiet: Duration = .zero
    /// When the held change takes effect, if no other change comes before; nil: no change is held.
    private(set) var due: BootInstant?
    /// A change was let through, and no other change of parameters waits for a run.
    var isPassed = false

    init(_ values: ParameterValues) {
        self.values = values
        tried = values
    }

    /// Whether no run has started with these values yet.
    var isUntried: Bool { values != tried }

    /// Sets values; equal values are not a change.
    mutating func set(_ new: ParameterValues, quiet: Duration, at now: BootInstant) {
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

    /// The quiet period is over: returns the change, with all changes since the last run started. Nil: the values are
    /// those of the last attempt again.
    mutating func pass() -> RunCause? {
        due = nil
        if !isUntried { changed = nil }
        return cause
    }

    /// A run starts with the values, which answers all changes.
    ///
    /// - Parameter request: what the run is for; gets the change that had not been let through yet.
    /// - Returns: that change; nil: there was none.
    mutating func start(with request: inout PendingRequest) -> RunCause? {
        defer {
            tried = values
            changed = nil
            due = nil
            isPassed = false
        }
        guard due != nil, isUntried, let cause else { return nil }
        // An earlier change that could not run yet is merged with this one.
        if isPassed { request.dropParameters() }
        request.causes.add(cause)
        return cause
    }

    /// Another configuration is active. A held change stays held.
    ///
    /// - Returns: nil if there are no parameters.
    static func reconfigured(_ old: Self?, _ new: ParameterValues, sameProduct: Bool) -> Self? {
        guard new != ParameterValues() else { return nil }
        guard var debouncer = old else { return Self(new) }
        debouncer.values = new
        if !sameProduct { debouncer.tried = nil }
        return debouncer
    }

    /// The changes, with the names of the parameters whose values differ from those of the last attempt.
    private var cause: RunCause? {
        var cause = changed
        if let tried { cause?.detail = values.names(unlike: tried).joined(separator: ", ") }
        return cause
    }
}
