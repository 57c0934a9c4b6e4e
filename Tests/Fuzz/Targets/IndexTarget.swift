import FreshetModel
import Glibc

@testable import FreshetCache

extension FuzzTarget {
    /// Rows of the index that damage or another program has changed. Each line sets a column in all rows of its table:
    /// `pipelines last_attempt 9223372036854775807`, with a value as SQL writes it.
    static let indexRows = FuzzTarget(
        "index-rows", limit: 4_096, shapes: [],
        read: { input in keep(try? outcome(of: input)) },
        check: { input throws(FuzzViolation) in
            guard let outcome = try? outcome(of: input) else { return }
            try hold("no rows keep a cache from being opened: \(outcome.words)", outcome.opens)
            try hold("a cache that was opened can be opened again: \(outcome.words)", outcome.opensAgain)
            for memory in outcome.memories where memory.current != nil {
                try hold("the current generation has the number of one that is kept", memory.isKept)
            }
        })

    private struct Outcome {
        struct Memory {
            var current: Int64?
            var isKept = true
        }
        var memories: [Memory] = []
        var opens = true
        var opensAgain = true
        var words = ""
    }

    /// Makes a cache, changes its index, and opens the cache.
    private static func outcome(of input: [UInt8]) throws -> Outcome {
        let directory = try FuzzDirectory()
        let (cache, state) = ("\(directory.path)/cache", "\(directory.path)/state")
        do {
            let (local, _) = try LocalCache.open(cacheDirectory: cache, stateDirectory: state)
            for text in ["one", "two"] {
                let pending = try local.begin(CacheDestination(pipeline: "a", file: "a.json"))
                try pending.write(Array(text.utf8))
                _ = try pending.commit(
                    validators: [BoundValidators(binding: "u", Validators(entityTag: "\"t\"", lastModified: "m"))],
                    run: 1,
                    at: WallTime(nanoseconds: 1_000_000_000), expires: WallTime(nanoseconds: 2_000_000_000))
            }
            try local.records.record(
                RunRecord(
                    pipeline: "a", number: 1, causes: "start", started: WallTime(nanoseconds: 1),
                    ended: WallTime(nanoseconds: 2), outcome: .changed, error: nil, generation: 2))
            try local.records.recordRequests(
                "a",
                [RequestBurst(first: WallTime(nanoseconds: 1), last: WallTime(nanoseconds: 2), count: 3)])
            try local.records.recordParameters("a") { ["p": "v"] }
            try local.records.setState("a", key: "k", to: [1, 2, 3])
        }
        do {
            let index = try SQLiteDatabase(path: "\(state)/index.sqlite", busyTimeout: 1_000)
            for line in input.split(separator: UInt8(ascii: "\n")).prefix(16) {
                guard let statement = statement(line) else { continue }
                try? index.execute(statement)
            }
        }
        var outcome = Outcome()
        do {
            _ = try LocalCache.open(cacheDirectory: cache, stateDirectory: state)
        } catch {
            outcome.opens = false
            outcome.words = "\(error)"
            return outcome
        }
        let local: LocalCache
        do {
            (local, _) = try LocalCache.open(cacheDirectory: cache, stateDirectory: state)
        } catch {
            outcome.opensAgain = false
            outcome.words = "\(error)"
            return outcome
        }
        for (name, _) in try local.records.memories(key: "k").states {
            let memory = try local.records.memory(name, key: "k")
            keep(try local.records.refreshState(name))
            let history = try local.generations.history(name)
            keep(try local.records.runs(name, limit: 10))
            keep(try local.records.state(name, key: "k"))
            keep(try local.validators(name, boundTo: "u"))
            keep(try local.rejections.candidate(name, at: WallTime(nanoseconds: 3_000_000_000)))
            let current = (memory?.generation?.number).map(Int64.init)
            outcome.memories.append(
                .init(
                    current: current, isKept: current.map { number in history.contains { $0.number == number } } ?? true
                ))
        }
        keep(try local.pruner.holdings(besides: []))
        keep(try local.checker.examineIndex())
        return outcome
    }

    /// The SQL of a line; nil if the line is invalid.
    private static func statement(_ line: ArraySlice<UInt8>) -> String? {
        let words = line.split(separator: UInt8(ascii: " "), maxSplits: 2)
        guard words.count == 3, !line.contains(0) else { return nil }
        let isName = { (word: ArraySlice<UInt8>) in
            word.allSatisfy { $0 == UInt8(ascii: "_") || (0x61...0x7A).contains($0) }
        }
        guard isName(words[0]), isName(words[1]), tables.contains(String(decoding: words[0], as: UTF8.self)) else {
            return nil
        }
        let value = String(decoding: words[2], as: UTF8.self)
        // Only one value, without a further statement.
        guard !value.contains(";"), value.utf8.count < 1_024 else { return nil }
        return
            "UPDATE \(String(decoding: words[0], as: UTF8.self)) SET \(String(decoding: words[1], as: UTF8.self)) = (\(value))"
    }

    private static let tables: Set<String> = [
        "pipelines", "generations", "validators", "runs", "state", "requests", "parameters", "history", "parts",
        "pages", "refused", "accepted", "hooks",
    ]
}

/// The directory for one input, in memory if possible; it is removed with the value.
private struct FuzzDirectory: ~Copyable {
    let path: String

    struct Unmade: Error {}

    init() throws {
        let parent = access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp"
        var template = Array("\(parent)/freshet-fuzz-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw Unmade() }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit {
        Self.remove(path)
    }
    private static func remove(_ path: String) {
        guard let directory = opendir(path) else { return }
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            guard name != ".", name != ".." else { continue }
            if unlink("\(path)/\(name)") != 0 { remove("\(path)/\(name)") }
        }
        closedir(directory)
        rmdir(path)
    }
}
