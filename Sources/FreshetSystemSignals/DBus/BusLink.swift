import CSystemd
import FreshetEventLoop
import Glibc

/// The connection itself: the only owner of sd-bus's objects.
///
/// An object of sd-bus belongs to one thread for its whole life, even under a lock (sd-bus(3)). So everything runs on
/// the loop's thread: every method traps on other threads.
///
/// sd-bus's callbacks only record messages. Handlers run after sd-bus has returned, and may do anything, even end the
/// subscription whose signal they handle.
///
/// Matches are kept here, not in sd-bus. sd-bus parses rules differently from the bus (a backslash escapes), and
/// accepts a peer that pretends to own a well-known name.
// Unchecked: everything in it is only accessed on the loop's thread, see above. The deinitializer may run elsewhere,
// after the loop has stopped for good; then nothing else has a reference.
final class BusLink: @unchecked Sendable {
    /// The maximum number of messages that are handled in one iteration of the loop, so that a flood does not block it.
    static let messagesPerIteration = 128
    /// The maximum number of calls that wait for a reply; it bounds a caller that calls in a loop.
    static let maximumCalls = 1_024

    /// A subscriber of a match.
    final class Subscriber: Sendable {
        let onState: @Sendable (BusSubscriptionState) -> Void
        /// Called for a message that agrees with the match except for its sender.
        let onOtherSender: @Sendable () -> Void
        let handler: @Sendable (BusMessage) -> Void

        init(
            onState: @escaping @Sendable (BusSubscriptionState) -> Void,
            onOtherSender: @escaping @Sendable () -> Void = {},
            handler: @escaping @Sendable (BusMessage) -> Void
        ) {
            self.onState = onState
            self.onOtherSender = onOtherSender
            self.handler = handler
        }
    }

    /// One rule at the bus, with all its subscribers.
    final class Rule {
        let match: BusMatch
        var subscribers: [Subscriber] = []
        var subscriptionState: BusSubscriptionState

        init(_ match: BusMatch, _ subscriptionState: BusSubscriptionState) {
            self.match = match
            self.subscriptionState = subscriptionState
        }
    }

    /// The owner of a well-known name that is the sender in a rule.
    struct Owner {
        /// The unique name of the owner; nil: there is none, or it is not known yet.
        var uniqueName: String?
        /// Why the owner cannot be followed.
        var error: String?
        /// The number of rules with this name.
        var uses = 0
    }

    enum Arrival {
        case signal(BusMessage)
        case reply(UInt64, Result<[BusValue], BusError>)
    }

    /// A call that waits for its reply.
    final class PendingCall {
        let identifier: UInt64
        let isOwn: Bool
        let reply: (Result<[BusValue], BusError>) -> Void
        var slot: OpaquePointer?
        unowned let link: BusLink

        init(
            _ identifier: UInt64, isOwn: Bool, link: BusLink, reply: @escaping (Result<[BusValue], BusError>) -> Void
        ) {
            self.identifier = identifier
            self.isOwn = isOwn
            self.link = link
            self.reply = reply
        }

        // The callback is not called after this.
        deinit { sd_bus_slot_unref(slot) }
    }

    private weak var loop: EventLoop?
    private let address: String?
    private let onAvailability: @Sendable (BusAvailability) -> Void
    private var reconnection = BusReconnection()
    private var availability = BusAvailability.connecting
    private var isEnded = false

    var bus: OpaquePointer?
    /// The bus has accepted this connection.
    var isReady = false
    private var watch: DescriptorWatch?
    private var watched: (descriptor: Int32, interest: Interest)?
    /// The timer for sd-bus's deadline, or for work that is left for the next iteration.
    private var settleTimer: LoopTimer?
    private var retryTimer: LoopTimer?

    var arrivals: [Arrival] = []
    var calls: [UInt64: PendingCall] = [:]
    var nextCall: UInt64 = 0
    /// The number of calls in ``calls`` that clients made.
    var foreignCalls = 0
    var rules: [String: Rule] = [:]
    var owners: [String: Owner] = [:]

    /// - Parameter address: Nil: the environment has no address.
    init(_ loop: EventLoop, address: String?, onAvailability: @escaping @Sendable (BusAvailability) -> Void) {
        self.loop = loop
        self.address = address
        self.onAvailability = onAvailability
    }

    deinit { close() }

    func checkThread() { loop?.checkIsolated() }

    // MARK: Life

    func start() {
        checkThread()
        guard let loop, !isEnded else { return }
        settleTimer = LoopTimer(loop, named: "D-Bus") { [weak self] in self?.process() }
        retryTimer = LoopTimer(loop, named: "D-Bus") { [weak self] in self?.open() }
        open()
    }

    /// Ends the connection for good; subscribers are not notified.
    func end() {
        isEnded = true
        close()
        rules = [:]
        retryTimer = nil
        settleTimer = nil
    }

    private func open() {
        guard !isEnded, bus == nil else { return }
        guard let address else {
            become(
                .unavailable(
                    reason: "there is no session bus: neither DBUS_SESSION_BUS_ADDRESS nor XDG_RUNTIME_DIR is set"))
            return
        }
        var made: OpaquePointer?
        var result = sd_bus_new(&made)
        guard result >= 0, let made else { return lost(result) }
        bus = made
        let steps: [() -> Int32] = [
            { sd_bus_set_address(made, address) },
            { sd_bus_set_bus_client(made, 1) },
            // If the socket does not exist, sd-bus waits for it with inotify(7).
            { sd_bus_set_watch_bind(made, 1) },
            { sd_bus_negotiate_fds(made, 0) },
            { sd_bus_add_filter(made, nil, Self.received, Unmanaged.passUnretained(self).toOpaque()) },
            { sd_bus_start(made) },
        ]
        for step in steps {
            result = step()
            if result < 0 { return lost(result) }
        }
        process()
    }

    private func close() {
        watch?.cancel()
        watch = nil
        watched = nil
        settleTimer?.disarm()
        isReady = false
        arrivals = []
        calls = [:]  // their slots must be released before the bus
        foreignCalls = 0
        if let bus { sd_bus_close_unref(bus) }
        bus = nil
    }

    private func lost(_ result: Int32) {
        let waiting = calls.values.sorted { $0.identifier < $1.identifier }
        let error = SystemCallError("connect to", errno: -result, subject: address)
        let wasReady = isReady
        close()
        for name in owners.keys { owners[name]?.uniqueName = nil }
        let pause = reconnection.ended(at: .now)
        if let pause { retryTimer?.arm(at: .now + pause) }
        let reason = wasReady ? "the connection to the bus was lost (\(error))" : "there is no bus (\(error))"
        become(.unavailable(reason: pause == nil ? "\(reason); no further attempts are made" : reason))
        for call in waiting where !call.isOwn { call.reply(.failure(.disconnected)) }
    }

    // MARK: Processing

    /// Lets sd-bus do everything that it can do without waiting, and delivers the messages.
    private func process() {
        checkThread()
        guard let bus else { return }
        var isDrained = false
        for _ in 0..<Self.messagesPerIteration {
            let result = sd_bus_process(bus, nil)
            deliver()
            guard self.bus == bus else { return }  // a handler ended the connection
            if result < 0 { return lost(result) }
            if !isReady, sd_bus_is_ready(bus) > 0 { becameReady() }
            if result == 0 {
                isDrained = true
                break
            }
        }
        if !isReady, isWaitingForSocket {
            become(
                .unavailable(reason: "there is no bus at '\(address ?? "")'; it is used when it appears"))
        }
        wait(isDrained: isDrained)
    }

    private func deliver() {
        while !arrivals.isEmpty {
            let batch = arrivals
            arrivals = []
            for arrival in batch {
                switch arrival {
                case .signal(let message): dispatch(message)
                case .reply(let identifier, let result):
                    guard let call = calls.removeValue(forKey: identifier) else { continue }
                    if !call.isOwn { foreignCalls -= 1 }
                    call.reply(result)
                }
            }
        }
    }

    /// Watches the descriptor and the deadline that sd-bus requires, until the next call of `process`.
    private func wait(isDrained: Bool) {
        guard let bus, let loop else { return }
        let descriptor = sd_bus_get_fd(bus)
        let events = sd_bus_get_events(bus)
        guard descriptor >= 0, events >= 0 else { return lost(min(descriptor, events)) }
        // If work is left, only the timer continues it: with both, there would be two calls in one iteration of the
        // loop.
        var interest: Interest = []
        if isDrained && events & Int32(POLLIN) != 0 { interest.insert(.read) }
        if isDrained && events & Int32(POLLOUT) != 0 { interest.insert(.write) }
        // While it connects, sd-bus may close a descriptor and open another one with the same number.
        if !isReady || watched?.descriptor != descriptor {
            watch?.cancel()
            do {
                watch = try loop.watch(descriptor, for: interest, named: "D-Bus") { [weak self] _ in self?.process() }
            } catch {
                return lost(-error.errno)
            }
        } else if watched?.interest != interest {
            watch?.change(to: interest)
        }
        watched = (descriptor, interest)
        guard isDrained else {
            settleTimer?.arm(at: .now)
            return
        }
        var timeout = UInt64.max
        if sd_bus_get_timeout(bus, &timeout) >= 0, timeout != .max {
            // Microseconds of CLOCK_MONOTONIC. After a sleep of the machine the timer is early, never late: sd-bus then
            // returns a new deadline.
            var time = timespec()
            clock_gettime(CLOCK_MONOTONIC, &time)
            let now = UInt64(time.tv_sec) * 1_000_000 + UInt64(time.tv_nsec) / 1_000
            settleTimer?.arm(at: .now + .microseconds(Int64(clamping: timeout > now ? timeout - now : 0)))
        } else {
            settleTimer?.disarm()
        }
    }

    /// Whether sd-bus has an inotify descriptor instead of a socket.
    private var isWaitingForSocket: Bool {
        guard let bus else { return false }
        var status = stat()
        return fstat(sd_bus_get_fd(bus), &status) == 0 && status.st_mode & S_IFMT != S_IFSOCK
    }

    private func becameReady() {
        isReady = true
        reconnection.becameReady(at: .now)
        become(.connected)
        for name in owners.keys.sorted() { follow(name) }
        for text in rules.keys.sorted() { install(text) }
    }

    private func become(_ new: BusAvailability) {
        guard new != availability else { return }
        availability = new
        onAvailability(new)
        let subscriptionState: BusSubscriptionState
        switch new {
        case .connecting, .connected: subscriptionState = .connecting
        case .unavailable(let reason): subscriptionState = .disconnected(reason: reason)
        }
        for rule in rules.values.map({ $0 }) { set(subscriptionState, of: rule) }
    }

    func set(_ subscriptionState: BusSubscriptionState, of rule: Rule) {
        guard subscriptionState != rule.subscriptionState else { return }
        rule.subscriptionState = subscriptionState
        for subscriber in rule.subscribers { subscriber.onState(subscriptionState) }
    }

    /// The state of a rule that the bus has not received yet.
    var initialState: BusSubscriptionState {
        if case .unavailable(let reason) = availability { return .disconnected(reason: reason) }
        return .connecting
    }

    var uniqueName: String? {
        checkThread()
        var name: UnsafePointer<CChar>?
        guard let bus, isReady, sd_bus_get_unique_name(bus, &name) >= 0 else { return nil }
        return name.map { String(cString: $0) }
    }

    /// sd-bus passes each message that is not a reply; it is only recorded here.
    private static let received: sd_bus_message_handler_t = { message, link, _ in
        guard let message, let link else { return 0 }
        var type: UInt8 = 0
        if sd_bus_message_get_type(message, &type) >= 0, type == UInt8(SD_BUS_MESSAGE_SIGNAL) {
            Unmanaged<BusLink>.fromOpaque(link).takeUnretainedValue().arrivals.append(.signal(BusMessage(message)))
        }
        return 0  // sd-bus continues: it replies to the standard methods
    }
}
