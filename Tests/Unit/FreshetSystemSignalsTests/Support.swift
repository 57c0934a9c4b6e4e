import FreshetEventLoop
import FreshetSignals
import Synchronization
import Testing

@testable import FreshetSystemSignals

func address(_ text: String) throws -> IPAddress { try #require(IPAddress(text)) }

func makePath(_ gateway: String?, on name: String = "wan0", index: Int32 = 2, from source: String) throws -> NetworkPath
{
    NetworkPath(
        gateway: try gateway.map(address), interfaceIndex: index, interfaceName: name, source: try address(source))
}

/// Messages in the kernel's format (netlink(7)): the machine's byte order, attributes aligned to four bytes.
enum Bytes {
    static func of(_ value: some FixedWidthInteger) -> [UInt8] { withUnsafeBytes(of: value) { Array($0) } }

    static func attribute(_ type: UInt16, _ value: [UInt8]) -> [UInt8] {
        let bytes = of(UInt16(4 + value.count)) + of(type) + value
        return bytes + [UInt8](repeating: 0, count: NetlinkMessage.aligned(bytes.count) - bytes.count)
    }

    static func message(_ type: UInt16, flags: UInt16 = 0, sequence: UInt32 = 0, _ payload: [UInt8]) -> [UInt8] {
        of(UInt32(16 + payload.count)) + of(type) + of(flags) + of(sequence) + of(UInt32(0)) + payload
    }

    /// RTM_NEWLINK (16), RTM_DELLINK (17): struct ifinfomsg, IFLA_IFNAME (3).
    static func link(
        _ type: UInt16 = 16, family: UInt8 = 0, index: Int32, flags: UInt32, name: [UInt8]
    ) -> [UInt8] {
        message(type, [family, 0, 1, 0] + of(index) + of(flags) + of(UInt32(0)) + attribute(3, name + [0]))
    }

    /// RTM_NEWADDR (20), RTM_DELADDR (21): struct ifaddrmsg.
    static func address(
        _ type: UInt16 = 20, family: UInt8, flags: UInt8 = 0, index: Int32, attributes: [[UInt8]]
    ) -> [UInt8] {
        message(type, [family, 24, flags, 0] + of(index) + attributes.flatMap { $0 })
    }

    /// RTM_NEWROUTE (24): struct rtmsg.
    static func route(type: UInt8 = 1, sequence: UInt32 = 0, attributes: [[UInt8]]) -> [UInt8] {
        message(24, sequence: sequence, [2, 32, 0, 0, 254, 0, 0, type] + of(UInt32(0)) + attributes.flatMap { $0 })
    }

    /// The only message of a datagram.
    static func single(_ datagram: [UInt8]) throws -> NetlinkMessage {
        let (messages, isWhole) = NetlinkMessage.split(datagram)
        try #require(isWhole && messages.count == 1)
        return messages[0]
    }
}

/// A manual clock with alarms.
final class ManualAlarmClock: AlarmClock {
    private struct State {
        var now: ContinuousClock.Instant
        var alarms: [ManualAlarm] = []
    }

    private let state = Mutex(State(now: .now))

    var now: ContinuousClock.Instant { state.withLock { $0.now } }

    func makeAlarm(_ handler: @escaping @Sendable () -> Void) -> any Alarm {
        let alarm = ManualAlarm(handler)
        state.withLock { $0.alarms.append(alarm) }
        return alarm
    }

    /// Moves the time and runs due alarms.
    func advance(by duration: Duration) {
        let (now, alarms) = state.withLock { state in
            state.now += duration
            return (state.now, state.alarms)
        }
        for alarm in alarms { alarm.expire(at: now) }
    }
}

final class ManualAlarm: Alarm {
    private let deadline = Mutex<ContinuousClock.Instant?>(nil)
    private let handler: @Sendable () -> Void

    init(_ handler: @escaping @Sendable () -> Void) { self.handler = handler }

    var isArmed: Bool { deadline.withLock { $0 != nil } }
    func arm(at deadline: ContinuousClock.Instant) { self.deadline.withLock { $0 = deadline } }
    func disarm() { deadline.withLock { $0 = nil } }

    func expire(at now: ContinuousClock.Instant) {
        let isDue = deadline.withLock { deadline in
            guard let due = deadline, due <= now else { return false }
            deadline = nil
            return true
        }
        if isDue { handler() }
    }

    /// Calls the handler although the alarm is not due: an expiry for which a cancellation came too late.
    func expireLate() { handler() }
}
