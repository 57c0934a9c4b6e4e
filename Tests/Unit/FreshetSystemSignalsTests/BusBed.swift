import CSystemd
import FreshetEventLoop
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import FreshetSystemSignals

/// A private bus: a real dbus-daemon on a socket in a temporary directory, with a policy that allows everything.
///
/// It is an actor with its own loop. The connections under test are made on that loop; peers have other loops.
actor BusBed {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private let temporaryDirectory: TemporaryDirectory
    nonisolated var directory: String { temporaryDirectory.path }
    nonisolated var address: String { "unix:path=\(directory)/run/bus" }
    private var daemon: ChildProcess?
    /// dbus-daemon's limits, in the format of its configuration.
    private let limits: String

    private init(_ loop: EventLoop, limits: String) throws {
        self.loop = loop
        temporaryDirectory = try TemporaryDirectory()
        self.limits = limits
    }

    /// Runs a test with a bed, whose bus is not running yet, and removes everything afterwards.
    static func with(limits: String = "", _ body: @Sendable (BusBed) async throws -> Void) async throws {
        let loop = try EventLoop()
        try loop.runInThread(named: "bus-bed")
        let bed = try BusBed(loop, limits: limits)
        let outcome: Result<Void, any Error>
        do {
            try await body(bed)
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        await bed.stop()
        loop.stop()
        try outcome.get()
    }

    /// Starts the bus and creates the directory of its socket.
    func start() throws {
        mkdir("\(directory)/run", 0o700)
        let configuration = """
            <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
              "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
            <busconfig>
              <type>session</type>
              <listen>\(address)</listen>
              <auth>EXTERNAL</auth>
              \(limits)
              <policy context="default">
                <allow user="*"/>
                <allow own="*"/>
                <allow send_destination="*"/>
                <allow receive_sender="*"/>
              </policy>
            </busconfig>
            """
        let file = try #require(fopen("\(directory)/configuration", "w"))
        fputs(configuration, file)
        fclose(file)
        let null = open("/dev/null", O_RDWR)
        defer { close(null) }
        daemon = try ChildProcess(
            loop,
            ChildProcess.Command(
                path: "/usr/bin/dbus-daemon",
                arguments: ["--config-file=\(directory)/configuration", "--nofork", "--nopidfile"]),
            input: null, output: null, error: null)
    }

    /// Ends the bus as if it had crashed: the socket stays.
    func stop() async {
        daemon?.signal(SIGKILL)
        _ = await daemon?.wait()
        daemon = nil
    }

    /// A connection on the bed's loop.
    func connection() -> BusConnection { BusConnection(loop, .session, address: address) }

    /// Runs on the bed's loop.
    func run<Value: Sendable>(_ body: @Sendable () throws -> Value) rethrows -> Value { try body() }
}

extension BusConnection {
    /// Waits for an availability; the suite's time limit is the deadline.
    @discardableResult
    func reach(_ isWanted: @Sendable (BusAvailability) -> Bool) async throws -> BusAvailability {
        for await availability in availabilities where isWanted(availability) { return availability }
        throw CancellationError()
    }

    /// Waits until the bus has replied to all earlier requests on this connection.
    func settle() async throws {
        _ = try await answer(
            "GetId", of: "org.freedesktop.DBus", at: "/org/freedesktop/DBus", on: "org.freedesktop.DBus"
        )
        .get()
    }

    func answer(
        _ member: String, of interface: String, at path: String, on destination: String, _ arguments: [BusValue] = []
    ) async -> Result<[BusValue], BusError> {
        await withCheckedContinuation { continuation in
            call(member, of: interface, at: path, on: destination, arguments) { continuation.resume(returning: $0) }
        }
    }
}

/// Another program on the bus, with sd-bus's blocking calls, on its own thread. It sends signals, owns names, and
/// replies to requests for a property.
actor BusPeer {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private(set) nonisolated(unsafe) var bus: OpaquePointer?  // used on the loop's thread only, except at the end
    private var watch: DescriptorWatch?
    private var preparing = false
    /// logind's sessions by object path.
    var sessions: [String: LogindMessage.Properties] = [:]
    /// How often the sessions were listed.
    var listings = 0
    /// NetworkManager's properties, and how often they were read.
    var networkManager: [String: BusValue] = [:]
    var networkManagerReads = 0

    /// Whether the peer leaves all requests without a reply.
    private var isMute = false

    private init(_ loop: EventLoop) { self.loop = loop }

    func setMute(_ mute: Bool) { isMute = mute }

    /// Connects to a bus, which may still be starting.
    static func connected(to address: String) async throws -> BusPeer {
        let loop = try EventLoop()
        try loop.runInThread(named: "bus-peer")
        let peer = BusPeer(loop)
        try await peer.connect(address)
        return peer
    }

    private func connect(_ address: String) throws {
        try #require(sd_bus_new(&bus) >= 0)
        try #require(sd_bus_set_address(bus, address) >= 0)
        try #require(sd_bus_set_bus_client(bus, 1) >= 0)
        try #require(sd_bus_set_watch_bind(bus, 1) >= 0)
        try #require(sd_bus_add_filter(bus, nil, Self.respond, Unmanaged.passUnretained(self).toOpaque()) >= 0)
        try #require(sd_bus_start(bus) >= 0)
        while sd_bus_is_ready(bus) == 0 {
            try #require(sd_bus_process(bus, nil) >= 0)
            if sd_bus_is_ready(bus) == 0 { sd_bus_wait(bus, .max) }
        }
        watch = try loop.watch(sd_bus_get_fd(bus), for: .read) { [weak self] _ in
            self?.assumeIsolated { $0.process() }
        }
        process()
    }

    /// Handles available messages. Call it after each blocking call, too: such a call reads and queues other messages,
    /// after which the socket has no data that would wake the watch (sd_bus_process(3)).
    private func process() { while sd_bus_process(bus, nil) > 0 {} }

    var uniqueName: String {
        get throws {
            var name: UnsafePointer<CChar>?
            try #require(sd_bus_get_unique_name(bus, &name) >= 0)
            return String(cString: try #require(name))
        }
    }

    /// - Parameter queues: the peer gets the name as soon as its present owner gives it up, without a gap.
    func own(_ name: String, queues: Bool = false) throws {
        try #require(sd_bus_request_name(bus, name, queues ? UInt64(SD_BUS_NAME_QUEUE) : 0) >= 0)
        process()
    }

    func disown(_ name: String) throws {
        try #require(sd_bus_release_name(bus, name) >= 0)
        process()
    }

    /// Sends a signal, to all or to one.
    func emit(
        _ member: String, of interface: String, at path: String, to destination: String? = nil,
        _ arguments: [BusValue] = []
    ) throws {
        var message: OpaquePointer?
        try #require(sd_bus_message_new_signal(bus, &message, path, interface, member) >= 0)
        defer { sd_bus_message_unref(message) }
        let made = try #require(message)
        for argument in arguments { try #require(argument.append(to: made)) }
        if let destination { try #require(sd_bus_message_set_destination(made, destination) >= 0) }
        try #require(sd_bus_send(bus, made, nil) >= 0)
        try #require(sd_bus_flush(bus) >= 0)
    }

    /// Sends a signal with an array of this many bytes.
    func emitBytes(_ count: Int, _ member: String, of interface: String, at path: String) throws {
        var message: OpaquePointer?
        try #require(sd_bus_message_new_signal(bus, &message, path, interface, member) >= 0)
        defer { sd_bus_message_unref(message) }
        let bytes = [UInt8](repeating: 7, count: count)
        try #require(sd_bus_message_append_array(message, CChar(UInt8(ascii: "y")), bytes, count) >= 0)
        try #require(sd_bus_send(bus, message, nil) >= 0)
        try #require(sd_bus_flush(bus) >= 0)
    }

    // MARK: logind

    func prepareForSleep(_ begins: Bool, to destination: String? = nil) throws {
        preparing = begins
        try emit(
            "PrepareForSleep", of: "org.freedesktop.login1.Manager", at: "/org/freedesktop/login1", to: destination,
            [.boolean(begins)])
    }

    /// Changes the value of the property without a signal.
    func setPreparing(_ isPreparing: Bool) { preparing = isPreparing }

    private static let respond: sd_bus_message_handler_t = { message, peer, _ in
        guard let message, let peer else { return 0 }
        nonisolated(unsafe) let call = message  // already on the peer's thread
        return Unmanaged<BusPeer>.fromOpaque(peer).takeUnretainedValue().assumeIsolated { peer in
            if peer.isMute { return 1 }
            if sd_bus_message_is_method_call(call, LogindMessage.properties, "Get") > 0 { return peer.answer(call) }
            if sd_bus_message_is_method_call(call, LogindMessage.properties, "GetAll") > 0 {
                let path = sd_bus_message_get_path(call).map { String(cString: $0) }
                return [NetworkManagerMessage.path, UPowerMessage.path].contains(path)
                    ? peer.answerNetworkManager(call) : peer.answerSession(call)
            }
            return sd_bus_message_is_method_call(call, LogindMessage.manager, "ListSessions") > 0
                ? peer.answerSessions(call) : 0
        }
    }

    private func answer(_ call: OpaquePointer) -> Int32 {
        var reply: OpaquePointer?
        sd_bus_message_new_method_return(call, &reply)
        defer { sd_bus_message_unref(reply) }
        var value: Int32 = preparing ? 1 : 0
        sd_bus_message_open_container(reply, CChar(UInt8(ascii: "v")), "b")
        sd_bus_message_append_basic(reply, CChar(UInt8(ascii: "b")), &value)
        sd_bus_message_close_container(reply)
        sd_bus_send(bus, reply, nil)
        return 1
    }

    /// Disconnects from the bus.
    func leave() {
        watch?.cancel()
        watch = nil
        sd_bus_flush_close_unref(bus)
        bus = nil
        loop.stop()
    }
}
