import FreshetModel
import FreshetSignals
import FreshetTestKit
import Testing
import WorldTestSupport

@testable import FreshetPipelines

@Suite("The network of a target, for its pipelines")
struct NetworkFeedTests {
    private let inbox = CauseInbox()
    private let before = Dialogue.online(since: 0)
    private let after = Dialogue.online("b", epoch: 2, since: 1)
    private let cause = Cause(first: Occurrence(signal: "network", number: 3, instant: Dialogue.instant(1).continuous))

    private func mailbox(_ key: UInt64) -> Mailbox<RefreshEvent> { Mailbox(inbox: inbox, key: key) }

    @Test("state and signal are one event; a pipeline without a subscription gets the state alone")
    func together() {
        let feed = NetworkFeed(before)
        let (subscriber, other) = (mailbox(1), mailbox(2))
        #expect(feed.follow(subscriber, receivesSignal: true) == before)
        feed.follow(other, receivesSignal: false)
        feed.publish(cause) { _ in after }
        #expect(subscriber.take() == [.network(after, cause: RunCause(cause))])
        #expect(other.take() == [.network(after)])
        #expect(feed.state == after)
    }

    @Test(
        "a signal without a change is an event for subscribers, a change without a signal for all, nothing for nobody")
    func alone() {
        let feed = NetworkFeed(before)
        let (subscriber, other) = (mailbox(1), mailbox(2))
        feed.follow(subscriber, receivesSignal: true)
        feed.follow(other, receivesSignal: false)
        feed.publish(cause) { $0 }
        #expect(subscriber.take() == [.network(before, cause: RunCause(cause))])
        #expect(other.take() == [])
        feed.publish { _ in Dialogue.offline(since: 2) }
        #expect(subscriber.take() == [.network(Dialogue.offline(since: 2))])
        #expect(other.take() == [.network(Dialogue.offline(since: 2))])
        feed.publish { $0 }
        #expect(subscriber.take() == [] && other.take() == [])
    }

    @Test("a pipeline that comes later gets the current state, and after it has left nothing more")
    func comesAndGoes() {
        let feed = NetworkFeed(before)
        feed.publish(cause) { _ in after }
        let mailbox = mailbox(1)
        #expect(feed.follow(mailbox, receivesSignal: true, posts: true) == after)
        #expect(mailbox.take() == [.network(after)])
        feed.leave(mailbox)
        feed.publish(cause) { _ in before }
        #expect(mailbox.take() == [])
    }

    @Test("a reconfigured pipeline follows its new target, and gets the signal if it subscribes to it from now on")
    func reconfigured() throws {
        let stage = try Stage(RefreshPolicy(on: [.network], freshFor: .zero))
        try stage.start()
        let other = NetworkFeed(Dialogue.offline())
        stage.runner.reconfigure(Stage.definition(RefreshPolicy(on: [.network], freshFor: .zero)), network: other)
        try stage.executor.runUntilIdle()
        #expect(stage.status.activity == .waiting(Wait(.network)))
        try stage.network(true, path: "b")
        #expect(stage.origin.times == [])
        other.publish(cause) { _ in NetworkState(reachable: true, epoch: 7, changedAt: stage.clock.now, path: "c") }
        try stage.executor.runUntilIdle()
        #expect(stage.causes == ["network"])
        // Without a subscription, the state is all that it gets.
        stage.runner.reconfigure(Stage.definition(RefreshPolicy(on: [.start], freshFor: .zero)))
        other.publish(cause) { _ in NetworkState(reachable: true, epoch: 8, changedAt: stage.clock.now, path: "d") }
        try stage.advance(10)
        #expect(stage.causes == ["network"])
    }
}
