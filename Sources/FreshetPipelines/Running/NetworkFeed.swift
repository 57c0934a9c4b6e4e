import FreshetModel
package import FreshetSignals

/// The network of one target, for the pipelines that need it. A change of its state and the signal `network` that fires
/// because of the change are one event, ``RefreshEvent/network(_:cause:)``: no pipeline gets the signal without the state
/// that it announces, or the state before its signal.
///
/// Safe to call from any thread. Pipelines get changes in the order of the calls.
package final class NetworkFeed: Sendable {
    private struct Follower {
        let mailbox: Mailbox<RefreshEvent>
        /// Whether the pipeline subscribes to the signal; otherwise it gets only the state.
        var receivesSignal: Bool
    }

    private struct Feed {
        var state: NetworkState
        var followers: [CauseInbox.Key: Follower] = [:]
    }

    private let feed: Lock<Feed>

    /// - Parameter state: the current state of the network.
    package init(_ state: NetworkState) { feed = Lock(Feed(state: state)) }

    /// The current state of the network.
    package var state: NetworkState { feed.withLock { $0.state } }

    /// The state has changed, or the signal has fired, or both. All pipelines get it immediately.
    ///
    /// - Parameters:
    ///   - cause: the firings of the signal; nil: it did not fire.
    ///   - change: makes the state from the previous one; it runs under a lock.
    package func publish(_ cause: Cause? = nil, _ change: (NetworkState) -> NetworkState) {
        let cause = cause.map(RunCause.init)
        feed.withLock { feed in
            let state = change(feed.state)
            let isChanged = state != feed.state
            feed.state = state
            // In the order in which the pipelines were added, so that tests are reproducible.
            for (_, follower) in feed.followers.sorted(by: { $0.key < $1.key }) {
                let received = follower.receivesSignal ? cause : nil
                if isChanged || received != nil { follower.mailbox.post(.network(state, cause: received)) }
            }
        }
    }

    /// A pipeline follows the network from now on, until ``leave(_:)``. A pipeline that follows it already keeps what it
    /// has received.
    ///
    /// - Parameter posts: whether the pipeline gets the current state as an event.
    /// - Returns: the current state; each later change is an event.
    @discardableResult
    func follow(_ mailbox: Mailbox<RefreshEvent>, receivesSignal: Bool, posts: Bool = false) -> NetworkState {
        feed.withLock { feed in
            feed.followers[mailbox.key] = Follower(mailbox: mailbox, receivesSignal: receivesSignal)
            if posts { mailbox.post(.network(feed.state)) }
            return feed.state
        }
    }

    func leave(_ mailbox: Mailbox<RefreshEvent>) {
        feed.withLock { feed in
            // Keys are unique within one engine.
            if feed.followers[mailbox.key]?.mailbox === mailbox { feed.followers[mailbox.key] = nil }
        }
    }
}

extension RunCause {
    init(_ cause: Cause) {
        self.init(
            cause.first.signal, count: cause.count, first: BootInstant(cause.first.instant),
            last: BootInstant(cause.last.instant),
            detail: cause.last.detail, number: cause.last.number)
    }
}
