import FreshetEventLoop
import FreshetModel
import FreshetNATS
import Glibc
import NATSTestSupport
import Synchronization
import TestSupport
import Testing

@testable import FreshetFleet

/// Keys of RFC 8032, 7.1, as NKEYs.
private let seeds = [
    "SUAJ2YNRTXX72WTAXKCEV5ES5QWMIRCJYVUXWMTJDFYDXLADDSXH6YALCA",
    "SUAEZTIITMUP7FW2TW3MGRXMCFHA6W4KGGPTLK5GETNIZ5XNJ64KN63OVI",
]

func seed(_ index: Int = 0) throws -> NKeySeed {
    try Array(seeds[index].utf8).withUnsafeBytes { bytes in try NKeySeed(bytes) }
}

func digest(_ byte: UInt8) throws -> ContentDigest {
    try #require(ContentDigest(bytes: Array(repeating: byte, count: 32)))
}

/// A member on its own loop, with what it reported and fired.
final class Member: Sendable {
    let client: FleetClient
    let events = Mutex<[FleetClient.Event]>([])
    let fired = Mutex<[String]>([])
    private let loop: EventLoop
    private let task = Mutex<Task<Void, Never>?>(nil)

    /// - Parameters:
    ///   - user: the seed for the server; nil: it needs none.
    ///   - isStarted: false: it connects after ``start()``.
    init(
        _ name: String, _ server: NATSServer, seed: NKeySeed?, publishers: [NKeySeed], user: NKeySeed? = nil,
        domain: String? = nil, mirror: String? = nil, isStarted: Bool = true
    ) throws {
        loop = try EventLoop()
        try loop.runInThread(named: name)
        var configuration = NATSConfiguration(servers: [try server.address()], name: name, credential: user)
        configuration.timing.backoff = .milliseconds(10)
        configuration.timing.longestBackoff = .milliseconds(100)
        let identity = FleetClient.Identity(
            fleet: "prod", machine: name, version: "1",
            publishers: Set(try publishers.map { try NKeyPublicKey($0.publicKey) }), seed: seed)
        let report = Reporter()
        client = FleetClient(loop, configuration, identity, domain: domain, mirror: mirror) { report.send($0) }
        report.member = { [weak self] event in self?.events.withLock { $0.append(event) } }
        if isStarted { start() }
    }

    deinit {
        stop()
        loop.stop()
    }

    func start() { task.withLock { $0 = Task { [client] in await client.run() } } }

    func add(
        _ subject: FleetSubject, fetches: Bool = true, share: Double = 0, rollOut: RollOutPlan? = nil,
        seen number: UInt64 = 0, hasMirror: Bool = false
    ) {
        let settings = FleetSettings(
            machine: client.identity.machine, fetches: fetches, checkPeriod: .seconds(3_600), spread: .zero,
            rollOut: rollOut, share: share, hasMirror: hasMirror)
        client.add(subject, settings, seen: number) { [weak self] detail in self?.fired.withLock { $0.append(detail) } }
    }

    func stop() { task.withLock { $0 }?.cancel() }

    func isConnected() async -> Bool { await eventually { await client.obstacle == nil } }

    /// Fetches for all.
    func publish(_ subject: FleetSubject, _ content: [UInt8], _ digest: ContentDigest) async throws {
        #expect(await client.begin(subject, FleetRequest(.operation)) == .fetch)
        await client.ended(
            subject,
            .succeeded(digest: digest, size: UInt64(content.count), Validators(entityTag: "\"1\"", lastModified: nil))
        ) { range in Array(content[Int(range.lowerBound)..<Int(range.upperBound)]) }
    }

    /// Fetches several pipelines for all, at the same time: each waits for its backoff.
    func publish(_ subjects: [FleetSubject], _ content: [UInt8], _ digest: ContentDigest) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for subject in subjects { group.addTask { try await self.publish(subject, content, digest) } }
            try await group.waitForAll()
        }
    }

    /// Runs until it follows a head; returns how often it fetched.
    func run(_ subject: FleetSubject) async -> (head: FleetRecord?, fetches: Int) {
        var fetches = 0
        while true {
            let copy = fetches > 0 ? try? digest(1) : nil
            switch await client.begin(subject, FleetRequest(.environment, copy: copy)) {
            case .fetch?:
                fetches += 1
                guard let digest = try? digest(1) else { return (nil, fetches) }
                await client.ended(subject, .succeeded(digest: digest, size: 3, Validators())) { _ in [1, 2, 3] }
            case .follow(let record)?:
                await client.followed(subject, number: record.number)
                return (record, fetches)
            case .fetchAlone?, .keep?, .wait?, nil: return (nil, fetches)
            }
        }
    }

    /// The content of a record.
    func content(_ record: FleetRecord, _ subject: FleetSubject) async throws -> [UInt8] {
        var content: [UInt8] = []
        var reader = client.bodies.reader(FleetKey(subject), record.digest, size: record.size)
        while let bytes = try await reader.next() { content += bytes }
        return content
    }

    var log: String { events.withLock { "\($0)" } }

    var rejections: [RecordRejection] {
        events.withLock { events in
            events.compactMap { event in
                guard case .rejected(_, let rejection) = event else { return nil }
                return rejection
            }
        }
    }
}

extension FleetClient {
    func unusable(_ subject: FleetSubject) -> ContentDigest? {
        members[FleetKey(subject)]?.machine.publication.unusable
    }

    func demand(_ subject: FleetSubject) -> UInt64? { members[FleetKey(subject)]?.machine.demand }

    func isWaiting(_ subject: FleetSubject) -> Bool { members[FleetKey(subject)]?.waiter != nil }
}

/// Passes events on to a member that does not exist yet when its client is made.
final class Reporter: Sendable {
    private let target = Mutex<(@Sendable (FleetClient.Event) -> Void)?>(nil)

    var member: (@Sendable (FleetClient.Event) -> Void)? {
        get { target.withLock { $0 } }
        set { target.withLock { $0 = newValue } }
    }

    func send(_ event: FleetClient.Event) { member?(event) }
}

/// Another user of the server, who sees the messages of all.
final class Observer: Sendable {
    private final class Seen: Sendable {
        let subjects = Mutex<[String]>([])
        let hasProbe = Mutex(false)
    }

    private let loop: EventLoop
    private let task: Task<Void, Never>
    private let seen = Seen()

    init(_ server: NATSServer, _ pattern: String) async throws {
        loop = try EventLoop()
        try loop.runInThread(named: "observer")
        let client = NATSClient(loop, NATSConfiguration(servers: [try server.address()], name: "observer"))
        let subscription = try await client.subscribe(try NATSSubjectPattern(pattern))
        // Its own message: the server has the subscription. It is sent until one arrives, and others may arrive later.
        let probe = try NATSSubject(pattern.replacing(">", with: "probe"))
        task = Task { [seen] in
            await withDiscardingTaskGroup { group in
                group.addTask { await client.run() }
                group.addTask {
                    while case .message(let message)? = try? await subscription.next() {
                        if message.subject == "\(probe)" {
                            seen.hasProbe.withLock { $0 = true }
                        } else {
                            seen.subjects.withLock { $0.append("\(message.subject)") }
                        }
                    }
                }
            }
        }
        try #require(
            await eventually {
                try? await client.publish(probe)
                return seen.hasProbe.withLock { $0 }
            })
    }

    deinit {
        task.cancel()
        loop.stop()
    }

    var subjects: [String] { seen.subjects.withLock { $0 } }
}

let jetStream = "jetstream { store_dir: \"DIRECTORY/store\" }"

func makeSubject(_ pipeline: String = "jwks.v1") throws -> FleetSubject {
    FleetSubject(fleet: "prod", pipeline: pipeline, fingerprint: try digest(9))
}

/// A server with the buckets, and a member that fetches.
func makeFleet() async throws -> (NATSServer, Member) {
    let server = try await NATSServer(jetStream)
    let member = try Member("ams-1", server, seed: try seed(), publishers: [try seed()])
    try #require(await eventually { await member.client.client.state.serverInfo != nil })
    for bucket in FleetBucket.allCases {
        #expect(try await member.client.buckets.prepare(bucket, FleetBuckets.standardLimits(bucket)) == .created)
    }
    return (server, member)
}

/// A server, a member that fetches and one that follows, and the pipeline that they share.
func makePair() async throws -> (NATSServer, Member, Member, FleetSubject) {
    let (server, first) = try await makeFleet()
    let second = try Member("ams-2", server, seed: nil, publishers: [try seed()])
    let subject = try makeSubject()
    for member in [first, second] {
        member.add(subject)
        #expect(await member.isConnected())
    }
    return (server, first, second, subject)
}

/// Publishes a message that the client of this project would not send.
func publishRaw(_ subject: String, _ payload: String, to server: NATSServer) throws {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(UInt16(server.port).bigEndian)
    address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
    let isConnected = withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
        }
    }
    try #require(isConnected)
    let text = Array(
        "CONNECT {\"verbose\":false}\r\nPUB \(subject) \(payload.utf8.count)\r\n\(payload)\r\nPING\r\n".utf8)
    try #require(send(descriptor, text, text.count, Int32(MSG_NOSIGNAL)) == text.count)
    // INFO and PONG: the server has processed it.
    var buffer = [UInt8](repeating: 0, count: 4_096)
    var received = ""
    while !received.contains("PONG") {
        var poller = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        try #require(poll(&poller, 1, testTimeoutMilliseconds) == 1)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        try #require(count > 0)
        received += String(decoding: buffer[..<count], as: UTF8.self)
    }
}
