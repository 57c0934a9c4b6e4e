import FreshetModel
internal import FreshetSignals

/// The requests for a run that has not started yet: delayed by the splay, held by the debouncer, ready, or the retry of
/// a failed run.
struct RunQueue: Sendable {
    typealias Instant = BootInstant

    private(set) var burst: Debouncer<BootInstant>
    /// The retry of a failed run.
    @Boxed var retry: Retry?
    /// Nil if no request waits: an idle pipeline keeps one word for all of them.
    @Boxed private var waiting: Waiting?

    private struct Waiting: Hashable, Sendable {
        var splayed = PendingRequest()
        var splayedUntil: Instant?
        var gathered = PendingRequest()
        var ready = PendingRequest()
    }

    private mutating func changeWaiting(_ change: (inout Waiting) -> Void) {
        var new = waiting ?? Waiting()
        change(&new)
        // An empty request is nothing else than no request.
        waiting = new == Waiting() ? nil : new
    }

    /// Received, and held until this host's share of the splay has passed.
    private var splayed: PendingRequest {
        get { waiting?.splayed ?? PendingRequest() }
        set { changeWaiting { $0.splayed = newValue } }
    }
    private(set) var splayedUntil: Instant? {
        get { waiting?.splayedUntil }
        set { if newValue != nil || waiting != nil { changeWaiting { $0.splayedUntil = newValue } } }
    }
    /// Held by the debouncer.
    private(set) var gathered: PendingRequest {
        get { waiting?.gathered ?? PendingRequest() }
        set { changeWaiting { $0.gathered = newValue } }
    }
    /// Ready for a run as soon as nothing prevents it.
    var ready: PendingRequest {
        get { waiting?.ready ?? PendingRequest() }
        set { changeWaiting { $0.ready = newValue } }
    }

    init(_ policy: RefreshPolicy) {
        burst = Debouncer(quiet: policy.quiet, atMost: policy.atMost)
    }

    /// Whether a request waits for nothing but the conditions of a run.
    var isReady: Bool { retry != nil || !ready.isEmpty }

    /// When time alone changes the queue; nil: never.
    var due: Instant? { [burst.deliversAt, splayedUntil].compactMap(\.self).min() }

    /// What a request that is not ready waits for; nil: there is none.
    ///
    /// - Parameter parameters: when a change of the parameters becomes ready.
    func wait(for parameters: Instant?) -> Wait? {
        if !gathered.isEmpty { return Wait(.quiet, until: burst.deliversAt) }
        if let parameters { return Wait(.quiet, until: parameters) }
        return splayedUntil.map { Wait(.splay, until: $0) }
    }

    /// What the retry of a failed run still waits for; nil: nothing, or no run has failed.
    func retryWait(at now: Instant) -> Wait? {
        guard let retry else { return nil }
        if retry.isHeld { return Wait(.quiet, until: burst.deliversAt ?? splayedUntil) }
        if retry.isCut { return nil }
        if now < retry.due { return Wait(retry.inGrace ? .network : .backoff, until: retry.due) }
        // During a burst the environment is still changing, so a retry would fail again; the grace period allows for
        // that.
        if retry.kind == .connection, !retry.inGrace, burst.isBurst(at: now) {
            return Wait(.quiet, until: burst.quietAt)
        }
        return nil
    }

    /// Why the next run starts.
    ///
    /// - Parameter failures: the number of consecutive failures.
    func reason(after failures: Int) -> RunReason {
        if ready.urgency == .forced { return .forced }
        guard let retry, !retry.isCut else { return .signals }
        return retry.inGrace ? .networkSettling : .retry(failures: failures)
    }

    /// Lets the requests pass whose burst has ended; returns whether a signal became ready.
    mutating func elapseBurst(_ now: Instant) -> Bool {
        burst.elapse(at: now) && deliver(gathered.take())
    }

    /// Takes the requests whose splay has passed; nil: there are none.
    mutating func elapseSplay(_ now: Instant) -> PendingRequest? {
        guard let until = splayedUntil, now >= until else { return nil }
        splayedUntil = nil
        return splayed.take()
    }

    /// Holds a request for this host's share of the splay; later requests do not prolong it.
    mutating func delay(_ request: PendingRequest, for splay: Duration, _ now: Instant) {
        splayed.merge(request)
        splayedUntil = splayedUntil ?? now.advanced(by: splay)
    }

    /// Passes a request to the debouncer. Without a network it waits in front of the debouncer, so that the network's
    /// return is not part of a burst.
    ///
    /// - Returns: whether a signal became ready by passing the debouncer.
    mutating func admit(_ request: PendingRequest, isOffline: Bool, _ now: Instant) -> Bool {
        if isOffline {
            burst.touch(at: now)
            ready.merge(request)
        } else if burst.receive(at: now) {
            return deliver(request)
        } else {
            gathered.merge(request)
        }
        return false
    }

    /// Adds a request to those that the debouncer holds, without prolonging their burst; returns false if it holds none.
    mutating func join(_ request: PendingRequest, isOffline: Bool, _ now: Instant) -> Bool {
        guard !isOffline, !gathered.isEmpty, burst.isBurst(at: now) else { return false }
        gathered.merge(request)
        return true
    }

    /// Makes a request that has passed the debouncer ready; it ends backoffs.
    private mutating func deliver(_ request: PendingRequest) -> Bool {
        if var retry {
            retry.isHeld = false
            if request.hasRequest || (request.hasEnvironment && retry.kind == .connection) { retry.isCut = true }
            self.retry = retry
        }
        guard !request.causes.isEmpty else { return false }
        var request = request
        request.isRelease = false
        ready.merge(request)
        return true
    }

    /// A changed parameter is ready: it ends a backoff, and replaces an earlier change that could not run yet.
    mutating func passParameters(_ cause: RunCause) {
        ready.merge(PendingRequest(causes: [cause]))
        guard var retry else { return }
        retry.isHeld = false
        retry.isCut = true
        self.retry = retry
    }

    /// The network came back: waiting requests pass through the debouncer, where a burst holds them.
    ///
    /// - Returns: whether a signal became ready.
    mutating func networkCameBack(splay: Duration, _ now: Instant) -> Bool {
        let retryWaits = retry.map { $0.kind == .connection || $0.due <= now } ?? false
        guard retryWaits || !ready.isEmpty else { return false }
        if ready.urgency > .none {
            // A run of the operator is not debounced, and takes everything else along.
            _ = burst.receive(at: now)
            return false
        }
        if retryWaits { retry?.isHeld = true }
        var released = ready.take()
        released.isRelease = true
        guard splay > .zero else { return admit(released, isOffline: false, now) }
        delay(released, for: splay, now)
        return false
    }

    /// A run starts: it takes all received signals. It starts after them, so it answers them.
    mutating func takeAll() -> PendingRequest {
        var request = retry?.pendingRequest ?? PendingRequest()
        retry = nil
        request.merge(ready.take())
        request.merge(gathered.take())
        request.merge(splayed.take())
        splayedUntil = nil
        burst.nothingIsHeld()
        return request
    }

    /// A check has answered the environment signals that fired until then.
    mutating func answered(until check: Instant) {
        gathered.dropEnvironment(until: check)
        if gathered.isEmpty { burst.nothingIsHeld() }
        splayed.dropEnvironment(until: check)
        if splayed.isEmpty { splayedUntil = nil }
        ready.dropEnvironment(until: check)
    }

    /// Takes the causes of a superseded run back, without debouncing.
    mutating func putBack(_ request: PendingRequest) {
        var request = request
        request.merge(ready)
        ready = request
    }

    /// A run failed and is to be retried.
    mutating func scheduleRetry(_ new: Retry) {
        retry = new
        if ready.hasRequest || (ready.hasEnvironment && new.kind == .connection) {
            // A signal that passed the debouncer during the run ends the backoff as if it came now.
            retry?.isCut = true
        }
    }

    /// Other settings are active.
    mutating func configure(_ policy: RefreshPolicy, splay: Duration, _ now: Instant) {
        burst.quiet = policy.quiet
        burst.atMost = policy.atMost
        if let until = splayedUntil { splayedUntil = min(until, now.advanced(by: splay)) }
    }
}
