import FreshetEventLoop
import FreshetPipelines
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import FreshetEmitters

@Suite("HTTP client: who waits for another one's connection", .hangLimit)
struct HTTPSharingTests {
    private let running: RunningLoop
    private let client: HTTPClient
    private let origin: MuteOrigin

    init() throws {
        running = try RunningLoop()
        client = HTTPClient(running.loop)
        origin = try MuteOrigin()
    }

    private func fetch() async throws(FetchError) -> FetchResult {
        let source = HTTPSource(url: origin.url, host: "127.0.0.1")
        return try await client.fetch(source, for: FetchRequest(source: .http(source)))
    }

    private func location() throws -> Origin { try #require(Location(origin.url)).origin }

    @Test("when the connection that many wait for comes to nothing, each makes its own at once")
    func silence() async throws {
        let known = try location()
        await client.learn(of: known, isShared: true)
        // How many connections there are at once after the first one.
        let together = Atomic(0)
        let allWait = Latch()
        let isOver = Latch()
        startThread { [origin] in
            let first = origin.connection()
            _ = allWait.wait(for: testTimeout)
            close(first)
            let others = (0..<3).map { _ in origin.connection() }
            together.store(others.count(where: MuteOrigin.isOpen), ordering: .releasing)
            for connection in others { close(connection) }
            isOver.open()
        }
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<4 { group.addTask { _ = try? await fetch() } }
            #expect(await eventually { await client.openRequests == 4 })
            allWait.open()
        }
        _ = isOver.wait(for: testTimeout)
        #expect(together.load(ordering: .acquiring) == 3)
        #expect(await client.sharing.isEmpty)
    }

    @Test("where all who waited have failed at once, none of them is asked again")
    func refused() async throws {
        await client.learn(of: try location(), isShared: true)
        // One that nobody waits for fails before the next is looked at.
        let source = HTTPSource(url: origin.url, host: "127.0.0.1", unixSocket: "/nonexistent/socket")
        let errors = await client.errors(of: 8, on: running.loop) { [client] () async throws(FetchError) in
            _ = try await client.fetch(source, for: FetchRequest(source: .http(source)))
        }
        #expect(errors.count == 8 && errors.allSatisfy { $0.failure?.message.contains("/nonexistent/socket") == true })
        let hops = await client.startedHops
        #expect(hops == 8)
    }

    @Test("what is known of an origin goes with an answer that says otherwise, or without any")
    func knowledge() async throws {
        let known = try location()
        for other in [false, nil] {
            await client.learn(of: known, isShared: true)
            #expect(await client.sharing == [known])
            await client.learn(of: known, isShared: other)
            #expect(await client.sharing.isEmpty)
        }
        for port in 0...HTTPClient.maxSharing {
            await client.learn(of: Origin(scheme: "https", host: "h", port: "\(port)"), isShared: true)
        }
        #expect(await client.sharing.count == HTTPClient.maxSharing)
    }
}

extension HTTPClient {
    /// Asks so many times at once: all have begun before the loop looks at any socket or timer.
    fileprivate func errors(
        of count: Int, on loop: EventLoop, _ fetch: @escaping @Sendable () async throws(FetchError) -> Void
    ) async -> [FetchError] {
        await withTaskGroup(of: FetchError?.self) { group in
            for _ in 0..<count {
                group.addTask(executorPreference: loop) {
                    do throws(FetchError) {
                        try await fetch()
                        return nil
                    } catch {
                        return error
                    }
                }
            }
            return await group.reduce(into: []) { errors, error in errors += error.map { [$0] } ?? [] }
        }
    }
}
