import FreshetEventLoop
import FreshetSignals
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import FreshetSystemSignals

@Suite("Files", .hangLimit)
struct FileMonitorTests {
    @Test("fire when written and closed, replaced, removed and created, each once")
    func changes() async throws {
        try await withFiles { bed in
            try bed.write("a", "one")
            let watch = bed.monitor.watch(bed.path("a"))
            var causes = watch.signal.causes.makeAsyncIterator()
            #expect(watch.fact == FileFact(exists: true))
            try bed.write("a", "two")
            #expect(await causes.next(isolation: nil)?.details == ["written"])
            try bed.write("a~", "three")
            bed.rename("a~", "a")
            #expect(await causes.next(isolation: nil)?.details == ["replaced"])
            bed.remove("a")
            #expect(await causes.next(isolation: nil)?.details == ["removed"])
            #expect(!watch.fact.exists)
            bed.link("elsewhere-0", "a")
            bed.remove("a")
            bed.folder("a")
            #expect(await causes.next(isolation: nil)?.details == ["created"])
            #expect(watch.fact.exists && watch.fact.since != nil)
        }
    }

    @Test("whose names differ only in their Unicode normalization are different files")
    func normalization() async throws {
        try await withFiles { bed in
            let (one, other) = ("\u{E9}", "e\u{301}")
            try bed.write(one, "one")
            let (first, second) = (bed.monitor.watch(bed.path(one)), bed.monitor.watch(bed.path(other)))
            #expect(first !== second && first.fact.exists && !second.fact.exists)
            var causes = second.signal.causes.makeAsyncIterator()
            try bed.write(one, "two")
            try bed.write("complete", "three")
            bed.rename("complete", other)
            // It may fire once more, if the file was looked at between the change and its event.
            let cause = await causes.next(isolation: nil)?.first
            #expect(cause?.first.detail == "created")
        }
    }

    @Test("do not fire for a change of rights or times, nor for neighbouring files")
    func minor() async throws {
        try await withFiles { bed in
            try bed.write("a", "one")
            let watch = bed.monitor.watch(bed.path("a"))
            var causes = watch.signal.causes.makeAsyncIterator()
            chmod(bed.path("a"), 0o640)
            utimes(bed.path("a"), nil)
            try bed.write("b", "neighbour")
            bed.rename("b", "c")
            // The next firing is the write, and there is none before it.
            try bed.write("a", "two")
            let cause = await causes.next(isolation: nil)
            #expect(cause?.details == ["written"])
            #expect(cause?.first?.first.number == 1)
            #expect(cause?.first?.first.signal == "file \(bed.path("a"))")
            let ignored = watch.minorChanges
            watch.fire("by hand")
            #expect(await causes.next(isolation: nil)?.details == ["by hand"])
            #expect(watch.minorChanges == ignored && watch.fact.exists)
            // A check without a change: the file's directory is moved away and back.
            bed.folder("d")
            let below = bed.monitor.watch(bed.path("d/none"))
            bed.rename("d", "e")
            bed.rename("e", "d")
            let after = bed.monitor.watch(bed.path("after"))
            var looks = after.signal.causes.makeAsyncIterator()
            try bed.write("after", "x")
            _ = await looks.next(isolation: nil)
            #expect(await eventually { below.minorChanges > 0 })
        }
    }

    @Test("are found when their directories appear, one by one or together")
    func parents() async throws {
        try await withFiles { bed in
            let watch = bed.monitor.watch(bed.path("x/y/z"))
            var causes = watch.signal.causes.makeAsyncIterator()
            #expect(watch.fact == FileFact(exists: false))
            bed.folder("x")
            bed.folder("x/y")
            try bed.write("x/y/z", "one")
            #expect(await bed.receives("created", from: &causes))
            bed.rename("x", "gone")
            #expect(await bed.receives("removed", from: &causes))
            bed.folder("new")
            bed.folder("new/y")
            try bed.write("new/y/z", "two")
            bed.rename("new", "x")
            #expect(await bed.receives("created", from: &causes))
            // The directories that were renamed away are no longer watched.
            try bed.write("gone/y/z", "three")
            try bed.write("x/y/z", "four")
            #expect(await bed.receives("written", from: &causes))
        }
    }

    @Test("are followed through links: the link, its target, links to directories, and chained links")
    func links() async throws {
        try await withFiles { bed in
            bed.folder("v1")
            bed.folder("v2")
            try bed.write("v1/data", "one")
            try bed.write("v2/data", "two")
            bed.link("v1", "current")
            bed.link("./x/../current/data", "relative")
            bed.folder("x")
            bed.link(bed.path("relative"), "chained")
            let watch = bed.monitor.watch(bed.path("chained"))
            #expect(watch.fact == FileFact(exists: true))
            var causes = watch.signal.causes.makeAsyncIterator()
            try bed.write("v1/data", "changed")
            #expect(await bed.next(&causes) == "written")
            // As `ln -sfn` does.
            bed.link("v2", "current~")
            bed.rename("current~", "current")
            #expect(await bed.next(&causes) == "replaced")
            try bed.write("v1/data", "not watched")
            try bed.write("v2/data", "changed")
            #expect(await bed.next(&causes) == "written")
            bed.remove("v2/data")
            #expect(await bed.next(&causes) == "removed")
            #expect(!watch.fact.exists)
        }
    }

    @Test("with circular links do not exist, are reported, and are found when the circle is broken")
    func circle() async throws {
        try await withFiles { bed in
            bed.link("b", "a")
            bed.link("a", "b")
            let watch = bed.monitor.watch(bed.path("a"))
            var causes = watch.signal.causes.makeAsyncIterator()
            #expect(!watch.fact.exists)
            #expect(watch.fact.obstacle?.contains("circle") == true)
            try bed.write("new", "one")
            bed.rename("new", "b")
            // The retry because of the obstacle may check it at the same moment, so it may fire twice.
            #expect(await causes.next(isolation: nil)?.first?.first.detail == "created")
            #expect(watch.fact.exists && watch.fact.obstacle == nil)
        }
    }

    @Test("follow as many links as the kernel does, and no more", arguments: [(40, true), (41, false)])
    func depth(links: Int, exists: Bool) async throws {
        try await withFiles { bed in
            try bed.write("0", "one")
            for number in 1...links { bed.link("\(number - 1)", "\(number)") }
            // The path of the bed itself must have no links.
            #expect((PathResolution(bed.path("\(links)")).end != nil) == exists)
            #expect((access(bed.path("\(links)"), F_OK) == 0) == exists)
        }
    }

    @Test("that are directories fire for their entries, and not for files below these")
    func directory() async throws {
        try await withFiles { bed in
            bed.folder("d")
            bed.folder("d/below")
            let watch = bed.monitor.watch(bed.path("d"))
            var causes = watch.signal.causes.makeAsyncIterator()
            try bed.write("d/below/a", "one")
            bed.rename("d/below", "d/renamed")
            #expect(await bed.next(&causes) == "its entries changed")
            try bed.write("d/a", "one")
            #expect(await bed.next(&causes) == "its entries changed")
            bed.rename("d", "e")
            // The entry was created and then closed, so it may have fired twice.
            #expect(await bed.receives("removed", from: &causes))
        }
    }

    @Test("that change thousands of times while the loop is busy fire a few times at most")
    func burst() async throws {
        try await withFiles { bed in
            let watch = bed.monitor.watch(bed.path("a"))
            var causes = watch.signal.causes.makeAsyncIterator()
            try await bed.blockingLoop {
                for number in 0..<5_000 { try bed.write("a", "\(number)") }
            }
            // Once, unless a check ends before all events were read: then once more for the rest.
            var firings = try #require(await causes.next(isolation: nil)?.first?.count)
            bed.remove("a")
            while let cause = await causes.next(isolation: nil)?.first, cause.last.detail != "removed" {
                firings += cause.count
            }
            #expect(firings <= 20)
            #expect(bed.monitor.counts.overflows == 0)
        }
    }

    @Test("are checked after an overflow: only changed files fire")
    func overflow() async throws {
        let limit = try #require(Int(FileBed.read("/proc/sys/fs/inotify/max_queued_events")))
        try await withFiles { bed in
            try bed.write("a", "one")
            try bed.write("b", "one")
            let changed = bed.monitor.watch(bed.path("a"))
            let same = bed.monitor.watch(bed.path("b"))
            let late = bed.monitor.watch(bed.path("late/c"))
            var causes = changed.signal.causes.makeAsyncIterator()
            var others = same.signal.causes.makeAsyncIterator()
            var comers = late.signal.causes.makeAsyncIterator()
            // The directory must be watched from here on: otherwise the queue would not overflow.
            try bed.write("a", "first")
            #expect(await causes.next(isolation: nil)?.details == ["written"])
            try await bed.blockingLoop {
                // Two names in turn: the kernel merges equal successive events.
                try bed.write("n1", "one")
                try bed.write("n2", "one")
                for _ in 0...(limit / 2) {
                    bed.touch("n1")
                    bed.touch("n2")
                }
                try bed.write("a", "another length")
                bed.folder("late")
                try bed.write("late/c", "one")
            }
            #expect(await causes.next(isolation: nil)?.details == ["written"])
            #expect(await comers.next(isolation: nil)?.details == ["created"])
            #expect(bed.monitor.counts.overflows > 0)
            // The file is still watched, and this is its first firing.
            try bed.write("b", "two")
            #expect(await others.next(isolation: nil)?.first?.first.number == 1)
            try bed.write("late/c", "two")
            #expect(await comers.next(isolation: nil)?.details == ["written"])
        }
    }

    @Test("that are no longer followed leave no watch behind")
    func released() async throws {
        try await withFiles { bed in
            try bed.write("a", "one")
            bed.link("a", "l")
            var watches = ["a", "l", "no/such/file", "."].map { bed.monitor.watch(bed.path($0)) }
            #expect(bed.monitor.watchCount > 0)
            #expect(bed.monitor.watch(bed.path("a")) === watches[0])
            watches = []
            #expect(bed.monitor.watchCount == 0)
        }
    }

    @Test("in a directory that is renamed repeatedly are found in the end")
    func churn() async throws {
        try await withFiles { bed in
            bed.folder("d")
            try bed.write("d/f", "0")
            let watch = bed.monitor.watch(bed.path("d/f"))
            var causes = watch.signal.causes.makeAsyncIterator()
            for number in 1...200 {
                bed.rename("d", "e")
                if number.isMultiple(of: 3) {
                    bed.remove("e/f")
                    rmdir(bed.path("e"))
                    bed.folder("e")
                }
                bed.rename("e", "d")
                try bed.write("d/f", "\(number)")
            }
            _ = await causes.next(isolation: nil)
            // After the changes have ended, the last write is reported. Each has another size: the file system's times may be
            // equal to those of a look shortly before, and then a write of the same size is no change.
            var text = "the end"
            repeat {
                try Task.checkCancellation()
                text += "."
                try bed.write("d/f", text)
            } while await bed.next(&causes) != "written"
            #expect(watch.fact.exists)
        }
    }

    @Test("that cannot be watched have an obstacle with a remedy, and other files still work")
    func unreadable() async throws {
        try await withFiles { bed in
            bed.folder("locked")
            try bed.write("a", "one")
            chmod(bed.path("locked"), 0)
            defer { chmod(bed.path("locked"), 0o700) }
            let watch = bed.monitor.watch(bed.path("locked/b"))
            if geteuid() != 0 { #expect(watch.fact.obstacle?.contains("searchable") == true) }
            let other = bed.monitor.watch(bed.path("a"))
            var causes = other.signal.causes.makeAsyncIterator()
            try bed.write("a", "two")
            #expect(await bed.next(&causes) == "written")
        }
    }
}

extension [Cause] {
    fileprivate var details: [String?] { map(\.last.detail) }
}

/// A private directory, and a monitor on a loop that runs in another thread.
private final class FileBed: Sendable {
    let loop: EventLoop
    let monitor: FileMonitor
    private let directory: TemporaryDirectory

    init(_ loop: EventLoop) throws {
        directory = try TemporaryDirectory()
        self.loop = loop
        monitor = FileMonitor(loop)
    }

    func path(_ name: String) -> String { name == "." ? directory.path : directory.path(name) }

    func write(_ name: String, _ text: String) throws { try directory.write(text, to: name) }

    /// Opens it for writing, so that closing it is an event.
    func touch(_ name: String) { close(open(path(name), O_WRONLY | O_CLOEXEC)) }

    func rename(_ old: String, _ new: String) { #expect(Glibc.rename(path(old), path(new)) == 0) }
    func remove(_ name: String) { #expect(unlink(path(name)) == 0) }
    func folder(_ name: String) { #expect(mkdir(path(name), 0o700) == 0) }
    func link(_ target: String, _ name: String) { #expect(symlink(target, path(name)) == 0) }

    /// The detail of the next firing; several steps of one change have the last step's detail.
    func next(_ causes: inout some AsyncIteratorProtocol<[Cause], Never>) async -> String? {
        await causes.next(isolation: nil)?.last?.last.detail
    }

    /// Whether one of the next firings has this detail. A change of several steps (a file is created, then closed) may
    /// be found as a whole or step by step.
    func receives(_ detail: String, from causes: inout some AsyncIteratorProtocol<[Cause], Never>) async -> Bool {
        for _ in 0..<4 {
            guard let cause = await causes.next(isolation: nil)?.last else { return false }
            if [cause.first.detail, cause.last.detail].contains(detail) { return true }
        }
        return false
    }

    /// Runs a body while the loop's thread waits for it.
    func blockingLoop(_ body: () throws -> Void) async throws {
        let gate = Latch()
        await withCheckedContinuation { continuation in
            loop.perform {
                continuation.resume()
                _ = gate.wait(for: testTimeout)
            }
        }
        defer { gate.open() }
        try body()
    }

    static func read(_ path: String) -> Substring {
        var buffer = [UInt8](repeating: 0, count: 64)
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        defer { close(descriptor) }
        let count = Glibc.read(descriptor, &buffer, buffer.count)
        return String(decoding: buffer.prefix(max(0, count)), as: UTF8.self).prefix { $0 != "\n" }
    }
}

/// Runs a body beside a loop that runs in its own thread.
private func withFiles(_ body: (FileBed) async throws -> Void) async throws {
    let loop = try EventLoop()
    try loop.runInThread(named: "file-test")
    defer { loop.stop() }
    try await body(FileBed(loop))
}
