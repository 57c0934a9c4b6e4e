import FreshetEventLoop
import FreshetSignals
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import FreshetSystemSignals

/// A real file system behind calls that refuse or hang on request.
@Suite("Files that cannot be watched", .hangLimit)
struct FileWatchLimitTests {
    @Test(
        "have an obstacle with a remedy, are retried, and fire afterwards",
        arguments: [
            ("inotify_init1", EMFILE, "max_user_instances"), ("inotify_add_watch", ENOSPC, "max_user_watches"),
            ("inotify_add_watch", EACCES, "readable"), ("lstat", EACCES, "searchable"),
            ("inotify_add_watch", ENOMEM, "memory"), ("lstat", EIO, "inotify(7)"),
        ])
    func refused(call: String, errno: Int32, remedy: String) async throws {
        let bed = try HeldBed()
        defer { bed.end() }
        bed.refusals.withLock { $0[call] = errno }
        try bed.write("a")
        let watch = bed.monitor.watch(bed.path("a"))
        var causes = watch.signal.causes.makeAsyncIterator()
        #expect(watch.fact.obstacle?.contains(remedy) == true, "\(watch.fact)")
        #expect(watch.fact.obstacle?.contains(call) == true)
        // The obstacle still exists after a second: it is not reported again, and the next pause is longer.
        bed.clock.advance(by: .seconds(1))
        try await bed.reach(watch) { $0.obstacle != nil }
        await bed.settle()
        bed.refusals.withLock { $0 = [:] }
        bed.clock.advance(by: .seconds(2))
        try await bed.reach(watch) { $0.obstacle == nil && $0.exists }
        try bed.write("a")
        var detail: String?
        // A file that could not be seen before may count as created.
        repeat { detail = await causes.next(isolation: nil)?.last?.last.detail } while detail == "created"
        #expect(detail == "written")
    }

    @Test("because a user has too many watches get the watches that another file releases")
    func room() async throws {
        let bed = try HeldBed()
        defer { bed.end() }
        bed.folder("d")
        bed.folder("e")
        try bed.write("d/a")
        try bed.write("e/a")
        // The directories on the path of the bed, the bed, and one more.
        var first: FileWatch? = bed.monitor.watch(bed.path("d/a"))
        bed.refusals.withLock { $0["inotify_add_watch"] = ENOSPC }
        let second = bed.monitor.watch(bed.path("e/a"))
        #expect(second.fact.obstacle?.contains("max_user_watches") == true)
        #expect(first?.fact.obstacle == nil)
        bed.refusals.withLock { $0 = [:] }
        first = nil
        // The watches are released and a retry is planned some time after that.
        #expect(
            await eventually {
                bed.clock.advance(by: .zero)
                return second.fact.obstacle == nil
            })
    }

    @Test("on a file system that does not respond block neither others nor the loop, and are found when it responds")
    func dead() async throws {
        let bed = try HeldBed(timeout: .milliseconds(20))
        defer { bed.end() }
        try bed.write("a")
        try bed.write("dead")
        bed.hold("dead")
        let dead = bed.monitor.watch(bed.path("dead"))
        var deadCauses = dead.signal.causes.makeAsyncIterator()
        #expect(dead.fact.obstacle?.contains("answer") == true && !dead.fact.exists)
        #expect(bed.monitor.watch(bed.path("dead")) === dead)
        let other = bed.monitor.watch(bed.path("b"))
        var causes = other.signal.causes.makeAsyncIterator()
        try await bed.reach(other) { $0.obstacle == nil }
        try bed.write("b")
        #expect(await causes.next(isolation: nil) != nil)
        bed.release()
        try await bed.reach(dead) { $0.exists && $0.obstacle == nil }
        #expect(await deadCauses.next(isolation: nil)?.last?.last.detail == "created")
    }

    @Test("that stop responding report it after five seconds")
    func dies() async throws {
        let bed = try HeldBed()
        defer { bed.end() }
        try bed.write("a")
        let watch = bed.monitor.watch(bed.path("a"))
        var causes = watch.signal.causes.makeAsyncIterator()
        bed.hold("a")
        try bed.write("a")
        bed.wasHit()
        bed.clock.advance(by: RetrySchedule.longestLook - .milliseconds(1))
        #expect(watch.fact.obstacle == nil)
        bed.clock.advance(by: .milliseconds(1))
        #expect(watch.fact.obstacle?.contains("answer") == true && watch.fact.exists)
        bed.release()
        #expect(await causes.next(isolation: nil)?.last?.last.detail == "written")
        #expect(watch.fact.obstacle == nil)
    }

    @Test("beyond the limit of simultaneous checks wait, and are found when a thread is free")
    func manyDead() async throws {
        let bed = try HeldBed(timeout: .milliseconds(1))
        defer { bed.end() }
        bed.hold("dead")
        let dead = (0..<FileMonitor.looksAtOnce).map { bed.monitor.watch(bed.path("dead/\($0)")) }
        try bed.write("a")
        let waiting = bed.monitor.watch(bed.path("a"))
        #expect((dead + [waiting]).allSatisfy { $0.fact.obstacle != nil })
        bed.release()
        for watch in dead + [waiting] { try await bed.reach(watch) { $0.obstacle == nil } }
        #expect(waiting.fact.exists)
    }

    @Test("miss no event between the setting of a watch and its registration")
    func between() async throws {
        let bed = try HeldBed()
        defer { bed.end() }
        try bed.write("a")
        let file = bed.path("a")
        bed.afterAdding.withLock { after in
            after = { [loop = bed.loop] _ in
                try? HeldBed.write(file)
                // A whole iteration of the loop, so that it has read the event.
                for _ in 0..<2 {
                    let latch = Latch()
                    loop.perform { latch.open() }
                    _ = latch.wait(for: testTimeout)
                }
            }
        }
        let watch = bed.monitor.watch(file)
        #expect(await eventually { bed.monitor.counts.fired > 0 })
        withExtendedLifetime(watch) {}
    }

    @Test("that are released while a check hangs leave no watch behind")
    func released() async throws {
        let bed = try HeldBed(timeout: .milliseconds(1))
        defer { bed.end() }
        try bed.write("a")
        bed.hold("a")
        do { _ = bed.monitor.watch(bed.path("a")) }
        let added = Latch()
        bed.afterAdding.withLock { $0 = { _ in added.open() } }
        bed.release()
        #expect(added.wait(for: testTimeout))
        #expect(try await eventually { try bed.kernelWatches() == 0 })
        #expect(bed.monitor.watchCount == 0)
    }
}

/// A private directory, and a monitor on a loop that runs in another thread, with calls that refuse or hang.
private final class HeldBed: Sendable {
    let loop: EventLoop
    let clock = ManualAlarmClock()
    let monitor: FileMonitor
    let refusals: Mutexed<[String: Int32]>
    /// Runs once, after a directory got a watch.
    let afterAdding: Mutexed<(@Sendable (String) -> Void)?>
    private let held: Mutexed<Held>
    private let directory: TemporaryDirectory

    /// A value behind a lock, to be captured.
    final class Mutexed<Value: Sendable>: Sendable {
        private let value: Mutex<Value>
        init(_ value: Value) { self.value = Mutex(value) }
        func withLock<Result: Sendable>(_ body: (inout Value) -> Result) -> Result { value.withLock { body(&$0) } }
    }

    /// The path that does not respond, and until when.
    struct Held {
        var path: String?
        let released = Latch()
        let hit = Latch()
    }

    init(timeout: Duration = .seconds(20)) throws {
        directory = try TemporaryDirectory()
        let root = directory.path
        loop = try EventLoop()
        try loop.runInThread(named: "held-files")
        let kernel = FileCalls.kernel
        let refusals = Mutexed<[String: Int32]>([:])
        let afterAdding = Mutexed<(@Sendable (String) -> Void)?>(nil)
        let held = Mutexed(Held())
        @Sendable func check(_ call: String, _ path: String? = nil) throws(SystemCallError) {
            if let number = refusals.withLock({ $0[call] }) {
                throw SystemCallError(call, errno: number, subject: path)
            }
        }
        let calls = FileCalls(
            status: { (path) throws(SystemCallError) in
                let now = held.withLock { $0 }
                if let dead = now.path, path.hasPrefix("\(root)/\(dead)") {
                    now.hit.open()
                    _ = now.released.wait(for: testTimeout)
                }
                if path.hasPrefix(root + "/") { try check("lstat", path) }
                return try kernel.status(path)
            },
            target: kernel.target,
            open: { () throws(SystemCallError) in
                try check("inotify_init1")
                return try kernel.open()
            },
            add: { (inotify, path, events) throws(SystemCallError) in
                if path.hasPrefix(root) { try check("inotify_add_watch", path) }
                let watch = try kernel.add(inotify, path, events)
                if path == root, events.contains(.written) { afterAdding.withLock { $0.take() }?(path) }
                return watch
            })
        self.refusals = refusals
        self.afterAdding = afterAdding
        self.held = held
        monitor = FileMonitor(loop, clock: clock, calls: calls, timeout: timeout)
    }

    func end() {
        release()
        loop.stop()
    }

    func path(_ name: String) -> String { directory.path(name) }
    func folder(_ name: String) { #expect(mkdir(path(name), 0o700) == 0) }

    func write(_ name: String) throws { try Self.write(path(name)) }

    static func write(_ path: String) throws {
        let descriptor = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o600)
        try #require(descriptor >= 0)
        close(descriptor)
    }

    /// Makes all paths with this prefix stop responding.
    func hold(_ name: String) { held.withLock { $0.path = name } }

    func release() {
        held.withLock { held -> Latch in
            held.path = nil
            return held.released
        }.open()
    }

    /// Waits until a call hangs.
    func wasHit() { #expect(held.withLock { $0.hit }.wait(for: testTimeout)) }

    /// Waits for a fact; the suite's time limit is the deadline.
    func reach(_ watch: FileWatch, _ isWanted: @Sendable (FileFact) -> Bool) async throws {
        for await fact in watch.facts where isWanted(fact) { return }
        throw CancellationError()
    }

    /// The number of watches in the kernel (proc(5), fdinfo).
    func kernelWatches() throws -> Int {
        let number = try #require(monitor.state.withLock { $0.inotify?.rawValue })
        let file = try #require(fopen("/proc/self/fdinfo/\(number)", "r"))
        defer { fclose(file) }
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = fread(&buffer, 1, buffer.count, file)
        return String(decoding: buffer[..<count], as: UTF8.self).split(separator: "\n")
            .count { $0.hasPrefix("inotify wd:") }
    }

    /// Waits until no check is in progress.
    func settle() async {
        #expect(await eventually { monitor.state.withLock { !$0.agenda.isLooking } })
    }
}
