import FreshetEventLoop
import FreshetPipelines
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import FreshetEmitters

@Suite("Unpacking in a helper process", .hangLimit)
struct UnpackerTests {
    let running: RunningLoop
    let directory: TemporaryDirectory
    private let gzip = UnpackRule.compressed(.gzip)
    /// It is compressed a little.
    private let long: [UInt8] = (0..<3_000_000).map { UInt8(truncatingIfNeeded: ($0 &* $0) >> 7) }

    init() throws {
        running = try RunningLoop()
        directory = try TemporaryDirectory()
    }

    /// - Parameter script: a shell script in place of the helper.
    private func unpacker(instead script: String? = nil) throws -> Unpacker {
        var program = "\(try productsDirectory())/freshetd"
        if let script {
            program = try directory.write("#!/bin/sh\n\(script)\n", to: "helper")
            chmod(program, 0o755)
        }
        return Unpacker(running.loop, workers: WorkerPool(), program: program)
    }

    private func unpack(
        _ bytes: [UInt8], by rule: UnpackRule, maxBytes: UInt64 = 64 << 20, to store: ScriptedBodyStore? = nil,
        instead script: String? = nil
    ) async throws -> FetchedBody {
        try await unpacker(instead: script).unpack(.bytes(bytes), by: rule, maxBytes: maxBytes, bodyStore: store)
    }

    private func failure(
        _ bytes: [UInt8], by rule: UnpackRule, maxBytes: UInt64 = 64 << 20, to store: ScriptedBodyStore? = nil,
        instead script: String? = nil
    ) async throws -> RunFailure {
        let unpacker = try unpacker(instead: script)
        return try await failureOf { () async throws(FetchError) in
            try await unpacker.unpack(.bytes(bytes), by: rule, maxBytes: maxBytes, bodyStore: store)
        }
    }

    /// A helper that has this member of an archive in its command line.
    private func findHelper(of member: String) -> Int32? {
        TemporaryDirectory.names("/proc").compactMap { Int32($0) }.first {
            TemporaryDirectory.text("/proc/\($0)/cmdline")?.contains("--unpack-helper\0") == true
                && TemporaryDirectory.text("/proc/\($0)/cmdline")?.contains(member) == true
        }
    }

    /// An archive of one file, made by tar(1).
    private func archive(_ member: String) throws -> [UInt8] {
        try TemporaryDirectory.write(long, to: directory.path(member))
        try #require(system("tar -C '\(directory.path)' -czf '\(directory.path("tar"))' '\(member)'") == 0)
        return try TemporaryDirectory.read(directory.path("tar"))
    }

    @Test("a short content is in memory, and a long one is stored piece by piece")
    func contents() async throws {
        let short = try await unpack(try Gzip.compress(Array("hello\n".utf8)), by: gzip, to: ScriptedBodyStore())
        #expect(short.bytes == Array("hello\n".utf8))
        let packed = try Gzip.compress(long)
        #expect(try await unpack(packed, by: gzip).bytes == long)
        let store = ScriptedBodyStore()
        #expect(try await unpack(packed, by: gzip, to: store).size == long.count)
        let body = try #require(store.bodies.first)
        #expect(store.bodies.count == 1 && body.bytes == long && !body.isDiscarded)
        #expect(body.state.withLock { $0.pieces } > 5)
    }

    @Test("an archive is unpacked in the sandbox")
    func archives() async throws {
        let body = try await unpack(try archive("data"), by: .member(of: .tar, path: "data"))
        #expect(body.bytes == long)
    }

    @Test("the helper is in the sandbox, with limits on memory and processor time")
    func sandbox() async throws {
        let (gate, member) = (Latch(), "sandbox-\(getpid())")
        let store = ScriptedBodyStore(gate: gate)
        let bytes = try archive(member)
        async let body = unpack(bytes, by: .member(of: .tar, path: member), to: store)
        await store.written.occurrence()
        let helper = try #require(findHelper(of: member))
        let status = try #require(TemporaryDirectory.text("/proc/\(helper)/status"))
        #expect(status.contains("NoNewPrivs:\t1\n") && status.contains("Seccomp:\t2\n"))
        let limits = try #require(TemporaryDirectory.text("/proc/\(helper)/limits"))
        for (name, limit) in [("Max data size", "167772160"), ("Max cpu time", "120"), ("Max open files", "3")] {
            let line = limits.split(separator: "\n").first { $0.hasPrefix(name) }
            #expect(line?.split(separator: " ").contains(Substring(limit)) == true, "\(line ?? "no \(name)")")
        }
        gate.open()
        _ = try await body
    }

    @Test("a helper that is killed meanwhile fails the run, and no part of the content remains")
    func killed() async throws {
        let (gate, member) = (Latch(), "killed-\(getpid())")
        let store = ScriptedBodyStore(gate: gate)
        let bytes = try archive(member)
        async let result = failure(bytes, by: .member(of: .tar, path: member), to: store)
        await store.written.occurrence()
        let helper = try #require(findHelper(of: member))
        endProcess(helper)
        gate.open()
        let failure = try await result
        #expect(failure.message.hasPrefix("unpacking ran out of memory or crashed"))
        #expect(store.bodies.map(\.isDiscarded) == [true])
    }

    @Test("a cancelled task ends the helper and discards the content")
    func cancelled() async throws {
        let (gate, member) = (Latch(), "cancelled-\(getpid())")
        let store = ScriptedBodyStore(gate: gate)
        let bytes = try archive(member)
        let unpacker = try unpacker()
        let result = await withTaskGroup(of: FetchError?.self) { group in
            group.addTask {
                do throws(FetchError) {
                    _ = try await unpacker.unpack(
                        .bytes(bytes), by: .member(of: .tar, path: member), maxBytes: 64 << 20, bodyStore: store)
                    return nil
                } catch {
                    return error
                }
            }
            await store.written.occurrence()
            group.cancelAll()
            gate.open()
            return await group.next() ?? nil
        }
        #expect(result == .cancelled)
        #expect(findHelper(of: member) == nil && store.bodies.map(\.isDiscarded) == [true])
    }

    @Test("a damaged or too long content is a failure that says why, and nothing of it remains")
    func failures() async throws {
        let store = ScriptedBodyStore()
        var packed = try Gzip.compress(long)
        let tooLong = try await failure(packed, by: gzip, maxBytes: 1_000_000, to: store)
        #expect(tooLong.kind == .content && tooLong.message.contains("raise check.max-bytes if that is right"))
        packed[packed.count - 6] ^= 1
        let damaged = try await failure(packed, by: gzip, to: store)
        #expect(damaged == RunFailure(.content, "the gzip data is damaged: incorrect data check"))
        #expect(store.bodies.map(\.isDiscarded) == [true, true])
        let other = try await failure(Array("<html>\u{1b}".utf8), by: .compressed(.xz))
        #expect(other.message.hasPrefix("the answer is not xz: it begins with 3c 68 74 6d 6c 3e 1b;"))
        let full = try await failure(
            try Gzip.compress(long), by: gzip, to: ScriptedBodyStore(.isFull(after: 300_000)))
        #expect(full == ScriptedBodyStore.rejection)
    }

    @Test(
        "output without a report of success does not count",
        arguments: [
            "printf half; exit 0", "printf half; kill -9 $$", "printf 'FUR\\001\\000\\000' >&2; exit 1",
            "printf half; printf 'FUR\\001\\000\\000' >&2; kill -9 $$", "printf half; echo done >&2",
        ])
    func reports(_ script: String) async throws {
        let failure = try await failure([1], by: gzip, instead: script)
        #expect(failure.message.hasPrefix("unpacking ran out of memory or crashed"))
    }

    @Test("a helper that does not stop at the limit is stopped, and its message is escaped")
    func rogue() async throws {
        let endless = try await failure([1], by: gzip, maxBytes: 100_000, instead: "exec cat /dev/zero")
        #expect(endless.message.contains("100,000 bytes"))
        let message = try await failure([1], by: gzip, instead: "printf 'FUR\\001\\001\\000a\\033[1m' >&2; exit 1")
        #expect(message == RunFailure(.content, "a\\u{1b}[1m"))
        let slow = try await failure([1], by: gzip, instead: "kill -XCPU $$")
        #expect(slow.message == "unpacking took more than 120 s of processor time")
        let call = try await failure([1], by: gzip, instead: "kill -SYS $$")
        #expect(call.message.contains("system call that the sandbox forbids"))
        let missing = try await failure([1], by: gzip, instead: "printf 'FUR\\001\\002\\000no library' >&2; exit 1")
        #expect(missing == RunFailure(.local, "no library"))
    }
}
