/// Why a run failed, as far as the refresh machine has to know.
package struct RunFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// What kind of failure it was; it decides when the next attempt comes (design: "When a pipeline runs").
    package enum Kind: String, Hashable, Sendable {
        /// The name could not be resolved or no connection was made. In the grace after `network` or `resume` it is not
        /// a failure; an environment signal cuts its back-off.
        case connection
        /// The origin, or what lies between, failed for now: 5xx, 408, 425, 429, a time-out, a body cut short.
        case transient
        /// The origin's certificate is not valid at the date of this machine: as transient, but a step of the clock ends
        /// the back-off.
        case certificateDate
        /// The origin refused: a 4xx other than those. Backs off to `every`, at least an hour.
        case refused
        /// The answer came and is not acceptable: a check, a limit, a transform.
        case content
        /// Something on this machine failed: a command, a file, the cache.
        case local
        /// What it is made of is not there yet: it runs when it is.
        case absent
        /// The run needs more requests than its budget has left.
        case budget
        /// The run's deadline passed.
        case deadline
    }

    /// What a check that refused a content says of the same content at another time.
    package enum Refusal: Hashable, Sendable {
        /// It is refused again.
        case lasting
        /// It may pass: the check looks at something else too.
        case passing
        /// It may pass in a moment: what lies beside it at its origin may be about to be replaced.
        case brief
    }

    package var kind: Kind
    /// Set if a check refused the content, which had come whole: its origin has not failed.
    package var refusal: Refusal?
    /// A sentence for people that names what failed and, where there is one, the remedy. No secrets: no header values,
    /// no user info, no query.
    package var message: String
    /// How long the origin asked not to be asked again (`Retry-After`), from the moment of the answer.
    package var retryAfter: Duration?
    /// Whether the message may quote content: the words of jq and of programs, keys of branches, items. Those who may not
    /// read the published file are shown ``publicMessage`` instead.
    package var quotesContent: Bool
    /// The status with which an origin answered over HTTP, if it is one that says that there is no content.
    package var status: Int?
    /// Of a failure to connect: the kernel had a route to the address of the host.
    package var isRouted = false

    /// A program ran out of the memory that it was given, and there is more to be given.
    package var lacksMemory = false

    /// It is tried again with the back-off.
    var isTriedSoon: Bool { refusal == nil || refusal == .brief }

    package init(
        _ kind: Kind, _ message: String, retryAfter: Duration? = nil, status: Int? = nil, refusal: Refusal? = nil
    ) {
        self.refusal = refusal
        self.kind = kind
        quotesContent = kind == .content || kind == .local
        self.message = message
        self.retryAfter = retryAfter
        self.status = status
    }

    package var description: String { message }

    /// The message, if it quotes no content; else what failed, without the reason.
    package var publicMessage: String {
        guard quotesContent else { return message }
        let what =
            switch kind {
            case .content: "the content was rejected or could not be transformed"
            case .local: "a program or a file on this machine failed"
            default: "branches failed"
            }
        return "\(what); only those who may read the published file see the reason"
    }
}
