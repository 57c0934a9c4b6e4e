/// Why a run failed.
package struct RunFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of failure; it decides when the next attempt comes (design: "When a pipeline runs").
    package enum Kind: String, Hashable, Sendable {
        /// The name could not be resolved or no connection was made. In the grace period after `network` or `resume` it
        /// does not count; an environment signal ends its backoff.
        case connection
        /// The origin, or a system on the way to it, failed for now: 5xx, 408, 425, 429, a time-out, a truncated body.
        case transient
        /// The origin's certificate is not valid at the date of this machine: like `transient`, but a step of the clock
        /// ends the backoff.
        case certificateDate
        /// The origin refused the request: another 4xx. The backoff grows to `every`, at least an hour.
        case refused
        /// The content is not acceptable: a check, a limit or a transform failed.
        case content
        /// Something on this machine failed: a command, a file, the cache.
        case local
        /// The content that the pipeline is made of does not exist yet; the pipeline runs when it exists.
        case absent
        /// The run needs more requests than its budget has left.
        case budget
        /// The run's deadline passed.
        case deadline
    }

    /// Whether a check that rejected content would reject the same content at another time.
    package enum Rejection: Hashable, Sendable {
        /// The content would be rejected again.
        case lasting
        /// The content may pass: the check does not depend on the content alone.
        case passing
        /// The content may pass in a moment: the origin may be replacing the files beside it.
        case brief
    }

    package var kind: Kind
    /// Set if a check rejected a complete content: the origin has not failed.
    package var rejection: Rejection?
    /// A message for people: what failed and, if there is one, the remedy. It has no secrets: no header values, no user
    /// information, no query.
    package var message: String
    /// The origin's `Retry-After`, from the moment of the answer.
    package var retryAfter: Duration?
    /// Whether the message may quote content: messages of jq and of programs, keys of branches, items. Users who may
    /// not read the published file get ``publicMessage`` instead.
    package var quotesContent: Bool
    /// The HTTP status of an answer without content, such as 404 or 410.
    package var status: Int?
    /// For a failure to connect: whether the kernel had a route to the host's address.
    package var isRouted = false

    /// Whether the content is not what its digest or signature says, or these cannot be used, so that another mirror may
    /// have the right one.
    package var isMismatch = false
    /// The certificate for which a TLS connection was refused.
    package var certificate: ServerCertificate?
    /// Whether a program ran out of its memory, and a larger share is possible.
    package var lacksMemory = false

    /// Whether readers see the new content although the run failed.
    package var isPublished = false

    /// Whether the run is retried with the backoff.
    var isTriedSoon: Bool { rejection == nil || rejection == .brief }

    package init(
        _ kind: Kind, _ message: String, retryAfter: Duration? = nil, status: Int? = nil, rejection: Rejection? = nil
    ) {
        self.rejection = rejection
        self.kind = kind
        quotesContent = kind == .content || kind == .local
        self.message = message
        self.retryAfter = retryAfter
        self.status = status
    }

    package var description: String { message }

    /// The message, if it quotes no content; otherwise a message without the reason.
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
