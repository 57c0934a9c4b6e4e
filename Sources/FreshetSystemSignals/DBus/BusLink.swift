import CSystemd
import FreshetEventLoop
import Glibc

/// The connection itself: the one owner of sd-bus's objects.
///
/// An object of sd-bus belongs to one thread for its whole life, also under a lock (sd-bus(3)). So all of this happens
/// on the loop's thread: every method traps elsewhere.
///
/// sd-bus's callbacks only note what came; handlers run after sd-bus has returned, and may do anything, also end the
/// subscription whose signal they handle.
///
/// Matches are kept here, not in sd-bus: it parses rules in its own way (a backslash escapes, which for the bus it does
/// not), and takes a peer that poses as the owner of a well-known name for the owner.
// Unchecked: nothing in it is reached but on the loop's thread, see above. What is freed elsewhere, after the loop has
// stopped for good, nobody else can reach.
final class BusLink: @unchecked Sendable {
    /// The most messages that are handled in one turn of the loop: a flood must not hold it up.
    static let messagesPerTurn = 128
    /// The most calls that may wait for an answer. It bounds what a caller in a loop can pile up.
    static let maximumCalls = 1_024

    /// Who listens to a match.
    final class Subscriber: Sendable {
        let onStanding: @Sendable (BusSubscriptionState) -> Void
        /// Called for a message that would be wanted, had another sender sent it.
        let onStranger: @Sendable () -> Void
        let handler: @Sendable (BusMessage) -> Void

        init(
            onStanding: @escaping @Sendable (BusSubscriptionState) -> Void,
            onStranger: @escaping @Sendable () -> Void = {},
            handler: @escaping @Sendable (BusMessage) -> Void
        ) {
            self.onStanding = onStanding
            self.onStranger = onStranger
            self.handler = handler
        }
    }

    /// One rule at the bus, and all who listen to it.
    final class Rule {
        let match: BusMatch
        var subscribers: [Subscriber] = []
        var standing: BusSubscriptionState

        init(_ match: BusMatch, _ standing: BusSubscriptionState) {
            self.match = match
            self.standing = standing
        }
    }

    /// A well-known name that rules have for their sender.
    struct Owner {
        /// The unique name of its owner; nil: none, or not known yet.
        var uniqueName: String?
        /// Why its owner cannot be followed.
        var fault: String?
        /// How many rules need it.
        var uses = 0
    }

    enum Arrival {
        case signal(BusMessage)
        case reply(UInt64, Result<[BusValue], BusError>)
    }

    /// A call that waits for its answer.
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

        // The callback comes no more after this.
        deinit { sd_bus_slot_unref(slot) }
    }

    private weak var loop: EventLoop?
    private let address: String?
    private let onAvailability: @Sendable (BusAvailability) -> Void
    private var reconnection = BusReconnection()
    private var availability = BusAvailability.connecting
    private var isEnded = false

    var bus: OpaquePointer?
    /// The bus has taken us.
    var isReady = false
    private var watch: DescriptorWatch?
    private var watched: (descriptor: Int32, interest: Interest)?
    /// sd-bus's own deadline, or work that is left for the next turn.
    private var turnTimer: LoopTimer?
    private var retryTimer: LoopTimer?

    var arrivals: [Arrival] = []
    var calls: [UInt64: PendingCall] = [:]
    var nextCall: UInt64 = 0
    /// Of ``calls``, those that others made.
    var foreignCalls = 0
    var rules: [String: Rule] = [:]
    var owners: [String: Owner] = [:]

    /// - Parameter address: nil: nothing says where the bus is.
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
        turnTimer = LoopTimer(loop, named: "D-Bus") { [weak self] in self?.turn() }
        retryTimer = LoopTimer(loop, named: "D-Bus") { [weak self] in self?.open() }
        open()
    }

    /// Ends it for good; nobody is told.
    func end() {
        isEnded = true
        close()
        rules = [:]
        retryTimer = nil
        turnTimer = nil
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
            // A socket that is not there is waited for by inotify(7).
            { sd_bus_set_watch_bind(made, 1) },
            { sd_bus_negotiate_fds(made, 0) },
            { sd_bus_add_filter(made, nil, Self.heard, Unmanaged.passUnretained(self).toOpaque()) },
            { sd_bus_start(made) },
        ]
        for step in steps {
            result = step()
            if result < 0 { return lost(result) }
        }
        turn()
    }

    private func close() {
        watch?.cancel()
        watch = nil
        watched = nil
        turnTimer?.disarm()
        isReady = false
        arrivals = []
        calls = [:]  // their slots before the bus
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
        become(.unavailable(reason: pause == nil ? "\(reason), and it is not tried again" : reason))
        for call in waiting where !call.isOwn { call.reply(.failure(.disconnected)) }
    }

    // MARK: Turns

    /// Has sd-bus do what it can do without waiting, and hands on what came.
    private func turn() {
        checkThread()
        guard let bus else { return }
        var isDrained = false
        for _ in 0..<Self.messagesPerTurn {
            let result = sd_bus_process(bus, nil)
            deliver()
            guard self.bus == bus else { return }  // a handler ended it
            if result < 0 { return lost(result) }
            if !isReady, sd_bus_is_ready(bus) > 0 { becameReady() }
            if result == 0 {
                isDrained = true
                break
            }
        }
        if !isReady, isWaitingForSocket {
            become(
                .unavailable(reason: "there is no bus at '\(address ?? "")'; it is used as soon as it appears"))
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

    /// Watches what sd-bus wants to be watched until the next turn.
    private func wait(isDrained: Bool) {
        guard let bus, let loop else { return }
        let descriptor = sd_bus_get_fd(bus)
        let events = sd_bus_get_events(bus)
        guard descriptor >= 0, events >= 0 else { return lost(min(descriptor, events)) }
        // With work left, the timer alone brings the next turn: both would be two turns in one of the loop's.
        var interest: Interest = []
        if isDrained && events & Int32(POLLIN) != 0 { interest.insert(.read) }
        if isDrained && events & Int32(POLLOUT) != 0 { interest.insert(.write) }
        // While it connects, sd-bus may close a descriptor and open another one of the same number.
        if !isReady || watched?.descriptor != descriptor {
            watch?.cancel()
            do {
                watch = try loop.watch(descriptor, for: interest, named: "D-Bus") { [weak self] _ in self?.turn() }
            } catch {
                return lost(-error.errno)
            }
        } else if watched?.interest != interest {
            watch?.change(to: interest)
        }
        watched = (descriptor, interest)
        guard isDrained else {
            turnTimer?.arm(at: .now)
            return
        }
        var timeout = UInt64.max
        if sd_bus_get_timeout(bus, &timeout) >= 0, timeout != .max {
            // Microseconds of CLOCK_MONOTONIC. Sleep brings the timer early, never late: sd-bus then names a new one.
            var time = timespec()
            clock_gettime(CLOCK_MONOTONIC, &time)
            let now = UInt64(time.tv_sec) * 1_000_000 + UInt64(time.tv_nsec) / 1_000
            turnTimer?.arm(at: .now + .microseconds(Int64(clamping: timeout > now ? timeout - now : 0)))
        } else {
            turnTimer?.disarm()
        }
    }

    /// sd-bus has an inotify descriptor instead of a socket.
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
        let standing: BusSubscriptionState
        switch new {
        case .connecting, .connected: standing = .connecting
        case .unavailable(let reason): standing = .disconnected(reason: reason)
        }
        for rule in rules.values.map({ $0 }) { set(standing, of: rule) }
    }

    func set(_ standing: BusSubscriptionState, of rule: Rule) {
        guard standing != rule.standing else { return }
        rule.standing = standing
        for subscriber in rule.subscribers { subscriber.onStanding(standing) }
    }

    /// The standing of a rule that the bus does not know yet.
    var initialStanding: BusSubscriptionState {
        if case .unavailable(let reason) = availability { return .disconnected(reason: reason) }
        return .connecting
    }

    var uniqueName: String? {
        checkThread()
        var name: UnsafePointer<CChar>?
        guard let bus, isReady, sd_bus_get_unique_name(bus, &name) >= 0 else { return nil }
        return name.map { String(cString: $0) }
    }

    /// sd-bus hands over each message that is no answer: only noted.
    private static let heard: sd_bus_message_handler_t = { message, link, _ in
        guard let message, let link else { return 0 }
        var type: UInt8 = 0
        if sd_bus_message_get_type(message, &type) >= 0, type == UInt8(SD_BUS_MESSAGE_SIGNAL) {
            Unmanaged<BusLink>.fromOpaque(link).takeUnretainedValue().arrivals.append(.signal(BusMessage(message)))
        }
        return 0  // sd-bus goes on: it answers what everybody has to answer
    }
}
