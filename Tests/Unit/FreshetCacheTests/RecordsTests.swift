import FreshetModel
import Glibc
import TestSupport
import Testing

@testable import FreshetCache

@Suite("The index stores")
struct RecordsTests {
    @Test("validators by URL, as long as the content to which they belong is current")
    func validators() throws {
        let fixture = try CacheFixture()
        let other = Validators(lastModified: "Sat, 21 Nov 2026 02:00:00 GMT")
        try fixture.commit(
            "one", validators: [.tag("a"), BoundValidators(binding: "https://example.com/2", other)])
        #expect(try fixture.cache.validators("jwks", boundTo: "https://example.com/jwks") == .tag("a"))
        #expect(try fixture.cache.validators("jwks", boundTo: "https://example.com/2") == other)
        #expect(try fixture.cache.validators("jwks", boundTo: "https://example.com/3") == nil)
        #expect(try fixture.cache.validators("unknown", boundTo: "https://example.com/jwks") == nil)
        try fixture.commit("two")
        #expect(try fixture.cache.validators("jwks", boundTo: "https://example.com/jwks") == nil)
        try fixture.commit("one")
        #expect(try fixture.cache.validators("jwks", boundTo: "https://example.com/jwks") == nil)
    }

    @Test("validators up to the limits")
    func validatorLimits() throws {
        let fixture = try CacheFixture()
        let longest = BoundValidators.tag(
            String(repeating: "t", count: CacheLimits.validatorBytes), boundTo: "u")
        let tooLong = BoundValidators.tag(
            String(repeating: "t", count: CacheLimits.validatorBytes + 1), boundTo: "v")
        try fixture.commit("one", validators: [longest, tooLong])
        #expect(try fixture.cache.validators("jwks", boundTo: "u") == longest.validators)
        #expect(try fixture.cache.validators("jwks", boundTo: "v") == nil)
        let many = (0...CacheLimits.validatorsPerPipeline).map { BoundValidators.tag("t", boundTo: "\($0)") }
        try fixture.commit("two", validators: many)
        #expect(try fixture.cache.validators("jwks", boundTo: "0") == nil)
        #expect(try fixture.cache.validators("jwks", boundTo: "1") != nil)
        #expect(try fixture.cache.validators("jwks", boundTo: "\(CacheLimits.validatorsPerPipeline)") != nil)
    }

    @Test("a 304 with its validators")
    func unchanged() throws {
        let fixture = try CacheFixture()
        let generation = try fixture.commit("one", validators: [.tag("a")]).generation
        let confirmed = try fixture.cache.records.recordUnchanged(
            "jwks", validators: [.tag("b")], at: WallTime(seconds: 5000))
        #expect(confirmed == generation.withoutRevision)
        #expect(try fixture.cache.validators("jwks", boundTo: "https://example.com/jwks") == .tag("b"))
        #expect(
            try fixture.cache.records.refreshState("jwks")
                == RefreshState(lastAttempt: WallTime(seconds: 5000), lastSuccess: WallTime(seconds: 5000)))
        #expect(try fixture.cache.records.recordUnchanged("unknown", at: WallTime(seconds: 1)) == nil)
    }

    @Test("until when the content is fresh, until another check changes it or the content is gone")
    func expires() throws {
        let directory = try TemporaryDirectory.forCache()
        func pending(_ text: String, _ fixture: CacheFixture) throws -> PendingGeneration {
            let pending = try fixture.cache.begin(CacheDestination(pipeline: "jwks", file: "jwks.json"))
            try pending.write(Array(text.utf8))
            return pending
        }
        do {
            let fixture = try CacheFixture(directory)
            _ = try pending("one", fixture).commit(at: WallTime(seconds: 10), expires: WallTime(seconds: 99))
            #expect(try fixture.cache.records.refreshState("jwks").expires == WallTime(seconds: 99))
        }
        let fixture = try CacheFixture(directory)
        #expect(try fixture.cache.records.memories(key: "k").states["jwks"]?.expires == WallTime(seconds: 99))
        _ = try fixture.cache.records.recordUnchanged(
            "jwks", expires: WallTime(seconds: 200), at: WallTime(seconds: 20))
        #expect(try fixture.cache.records.memory("jwks", key: "k")?.expires == WallTime(seconds: 200))
        _ = try pending("one", fixture).commit(at: WallTime(seconds: 30), expires: WallTime(seconds: 300))
        #expect(try fixture.cache.records.refreshState("jwks").expires == WallTime(seconds: 300))
        _ = try fixture.cache.records.recordUnchanged("jwks", at: WallTime(seconds: 40))
        #expect(try fixture.cache.records.refreshState("jwks").expires == nil)
        _ = try pending("two", fixture).commit(at: WallTime(seconds: 50), expires: WallTime(seconds: 99))
        try #require(unlink(directory.cache + "/current/jwks.json") == 0)
        #expect(try fixture.cache.records.refreshState("jwks").expires == nil)
    }

    @Test("attempts and Retry-After across a restart, until a success")
    func refreshState() throws {
        let directory = try TemporaryDirectory.forCache()
        do {
            let fixture = try CacheFixture(directory)
            #expect(try fixture.cache.records.refreshState("jwks") == RefreshState())
            try fixture.commit("one", at: 10)
            try fixture.cache.records.recordFailure(
                "jwks", at: WallTime(seconds: 20), retryAfter: WallTime(seconds: 90))
        }
        let fixture = try CacheFixture(directory)
        try fixture.cache.records.recordFailure("jwks", at: WallTime(seconds: 30))
        #expect(
            try fixture.cache.records.refreshState("jwks")
                == RefreshState(
                    lastAttempt: WallTime(seconds: 30), lastSuccess: WallTime(seconds: 10),
                    retryAfter: WallTime(seconds: 90)))
        try fixture.commit("one", at: 100)
        #expect(try fixture.cache.records.refreshState("jwks").retryAfter == nil)
        try fixture.cache.records.recordFailure("jwks", at: WallTime(seconds: 110), retryAfter: WallTime(seconds: 190))
        try fixture.cache.records.forgetRetryAfter("jwks")
        #expect(try fixture.cache.records.refreshState("jwks").retryAfter == nil)
    }

    @Test("all records in its file after a flush, and none in its log")
    func flush() throws {
        let fixture = try CacheFixture()
        try fixture.commit("one", at: 100)
        let log = fixture.directory.state + "/index.sqlite-wal"
        var status = stat()
        try #require(lstat(log, &status) == 0 && status.st_size > 0)
        fixture.cache.flush()
        try #require(lstat(log, &status) == 0)
        #expect(status.st_size == 0)
        #expect(try fixture.cache.records.refreshState("jwks").lastSuccess == WallTime(seconds: 100))
    }

    @Test("the requests that count against budgets, across a restart, in the place of previous ones")
    func requests() throws {
        let directory = try TemporaryDirectory.forCache()
        let spent = (1...3).map {
            RequestBurst(first: WallTime(seconds: $0), last: WallTime(seconds: $0 + 1), count: Int($0))
        }
        do {
            let fixture = try CacheFixture(directory)
            try fixture.cache.records.recordRequests("jwks", Array(spent.prefix(1)))
            try fixture.cache.records.recordRequests("jwks", spent)
            try fixture.cache.records.recordRequests("other", Array(spent.suffix(1)))
        }
        let fixture = try CacheFixture(directory)
        #expect(try fixture.cache.records.memory("jwks", key: "k")?.requests == spent)
        let all = try fixture.cache.records.memories(key: "k").states
        #expect(all["jwks"]?.requests == spent)
        #expect(all["other"]?.requests == Array(spent.suffix(1)))
        let many = (1...Int64(CacheLimits.spentPerPipeline) + 1).map {
            RequestBurst(first: WallTime(seconds: $0), last: WallTime(seconds: $0), count: 1)
        }
        try fixture.cache.records.recordRequests("jwks", many)
        #expect(try fixture.cache.records.memory("jwks", key: "k")?.requests == Array(many.dropFirst()))
        try fixture.cache.records.recordRequests("jwks", [])
        #expect(try fixture.cache.records.memory("jwks", key: "k")?.requests == [])
    }

    @Test("parameters, across a restart, in the place of previous ones")
    func parameters() throws {
        let directory = try TemporaryDirectory.forCache()
        do {
            let fixture = try CacheFixture(directory)
            try fixture.cache.records.recordParameters("jwks") { ["query": "x", "gone": ""] }
            try fixture.cache.records.recordParameters("jwks") { ["query": "J\u{E4}zz 'quoted'", "language": ""] }
            try fixture.cache.records.recordParameters("other") { ["query": "y"] }
        }
        let fixture = try CacheFixture(directory)
        let expected = ["query": "J\u{E4}zz 'quoted'", "language": ""]
        #expect(try fixture.cache.records.memory("jwks", key: "k")?.parameters == expected)
        let all = try fixture.cache.records.memories(key: "k").states
        #expect(all["jwks"]?.parameters == expected)
        #expect(all["other"]?.parameters == ["query": "y"])
        try fixture.cache.records.recordParameters("jwks") { [:] }
        #expect(try fixture.cache.records.memory("jwks", key: "k")?.parameters == [:])
    }

    @Test("the newest runs up to a limit; longer texts are cut between two characters")
    func runs() throws {
        let fixture = try CacheFixture()
        let total = CacheLimits.runsPerPipeline + 3
        for number in 1...Int64(total) {
            try fixture.cache.records.record(
                RunRecord(
                    pipeline: "jwks", number: UInt64(number), causes: "network", started: WallTime(seconds: number),
                    ended: WallTime(seconds: number + 1), outcome: .failed,
                    error: "x" + String(repeating: "é", count: CacheLimits.runTextBytes)))
        }
        try fixture.cache.records.record(
            RunRecord(
                pipeline: "other", number: 1, causes: "", started: WallTime(seconds: 1),
                ended: WallTime(seconds: 1), outcome: .changed, generation: 4))
        let runs = try fixture.cache.records.runs("jwks")
        #expect(runs.map(\.number) == (4...UInt64(total)).reversed())
        #expect(runs.first?.error?.utf8.count == CacheLimits.runTextBytes - 1)
        #expect(runs.first?.error?.last == "é")
        #expect(try fixture.cache.records.runs("jwks", limit: 2).map(\.number) == [UInt64(total), UInt64(total) - 1])
        #expect(try fixture.cache.records.runs("other").first?.generation == 4)
        #expect(try fixture.cache.records.runs("unknown").isEmpty)
    }

    @Test("the times of the causes of a run; too many of them are left out")
    func causeTimes() throws {
        let fixture = try CacheFixture()
        let times = [
            CauseTimes(first: WallTime(microseconds: 1_000_001), last: WallTime(microseconds: 1_000_009)),
            CauseTimes(first: WallTime(microseconds: 5), last: WallTime(microseconds: 5)),
        ]
        for (number, causeTimes) in [(1, times), (2, Array(repeating: times[0], count: 1_000))] {
            try fixture.cache.records.record(
                RunRecord(
                    pipeline: "jwks", number: UInt64(number), causes: "network (2), timer", causeTimes: causeTimes,
                    started: WallTime(seconds: 1), ended: WallTime(seconds: 2), outcome: .failed))
            #expect(
                try fixture.cache.records.memory("jwks", key: "k")?.lastRunRecord?.causeTimes
                    == (number == 1 ? times : []))
        }
        #expect(try fixture.cache.records.runs("jwks").map(\.causeTimes) == [[], times])
        for damaged in ["1", "1-2 x-3", "-1-2", "2-1", "1-2-3", "99999999999999999999-1"] {
            #expect([CauseTimes](text: damaged).isEmpty)
        }
    }

    @Test("the mirror of a run and of the generation that it made; a long one is cut")
    func mirror() throws {
        let fixture = try CacheFixture()
        func record(_ number: UInt64, _ outcome: RunOutcome, generation: UInt64?, mirror: String?) throws {
            try fixture.cache.records.record(
                RunRecord(
                    pipeline: "jwks", number: number, causes: "timer", started: WallTime(seconds: 1),
                    ended: WallTime(seconds: 2), outcome: outcome, generation: generation, mirror: mirror))
        }
        let (first, long) = ("https://a.example/data", "https://a.example/" + String(repeating: "é", count: 5_000))
        try fixture.commit("one")
        try record(1, .changed, generation: 1, mirror: first)
        try record(2, .unchanged, generation: 1, mirror: "https://b.example/data")
        try fixture.commit("two")
        try record(3, .changed, generation: 2, mirror: long)
        try fixture.commit("three")
        try record(4, .changed, generation: 3, mirror: nil)
        let runs = try fixture.cache.records.runs("jwks")
        #expect(runs.map { $0.mirror?.utf8.count } == [nil, CacheLimits.runTextBytes, 22, first.utf8.count])
        #expect(try fixture.cache.generations.history("jwks").map { $0.mirror == first } == [false, false, true])
        #expect(try fixture.cache.records.memory("jwks", key: "k")?.lastRunRecord?.mirror == nil)
        try record(5, .failed, generation: nil, mirror: first)
        #expect(try fixture.cache.records.memory("jwks", key: "k")?.lastRunRecord?.mirror == first)
    }

    @Test("runs of an index of before have no mirror")
    func runsWithoutMirror() throws {
        let step = try #require(CacheIndex.migrations.firstIndex { $0.contains("runs ADD COLUMN mirror") })
        let directory = try TemporaryDirectory.index(ofVersion: step) { database throws(SQLiteError) in
            try database.run("INSERT INTO pipelines (name) VALUES (?)", .text("jwks"))
            try database.run(
                """
                INSERT INTO runs (pipeline, number, causes, started, finished, outcome)
                VALUES (?, 7, 'timer', 1, 2, 'unchanged')
                """, .integer(database.lastInsertedRow))
        }
        let runs = try CacheIndex(path: directory.path + "/index.sqlite", checksPages: true).runs.newest(9, of: "jwks")
        #expect(runs.map(\.number) == [7] && runs.first?.mirror == nil)
    }

    @Test("a pipeline's small state up to the limits")
    func state() throws {
        let directory = try TemporaryDirectory.forCache()
        do {
            let cache = try CacheFixture(directory).cache
            let largest = [UInt8](repeating: 7, count: CacheLimits.stateValueBytes)
            let key = String(repeating: "k", count: CacheLimits.stateKeyBytes)
            try cache.records.setState("jwks", key: key, to: largest)
            #expect(try cache.records.state("jwks", key: key) == largest)
            #expect(throws: CacheError.stateLimit(key: "v")) {
                try cache.records.setState("jwks", key: "v", to: largest + [1])
            }
            #expect(throws: CacheError.stateLimit(key: key + "k")) {
                try cache.records.setState("jwks", key: key + "k", to: [])
            }
            for number in 1..<CacheLimits.stateKeysPerPipeline {
                try cache.records.setState("jwks", key: "\(number)", to: [UInt8(number)])
            }
            #expect(throws: CacheError.stateLimit(key: "more")) {
                try cache.records.setState("jwks", key: "more", to: [1])
            }
            try cache.records.setState("jwks", key: "1", to: [])
            try cache.records.setState("jwks", key: "2", to: nil)
            try cache.records.setState("jwks", key: "more", to: [9])
        }
        let cache = try CacheFixture(directory).cache
        #expect(try cache.records.state("jwks", key: "1") == [])
        #expect(try cache.records.state("jwks", key: "2") == nil)
        #expect(try cache.records.state("jwks", key: "more") == [9])
        #expect(try cache.records.state("other", key: "more") == nil)
    }

    @Test("no changes of a failed transaction")
    func rollBack() throws {
        let fixture = try CacheFixture()
        let error = #expect(throws: CacheError.self) {
            try fixture.cache.context.transaction { (index) throws(SQLiteError) in
                _ = try index.pipelines.ensure("half")
                try index.database.run("INSERT INTO nowhere VALUES (1)")
            }
        }
        guard case .index(let reason) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(reason.message.contains("nowhere"))
        #expect(
            try fixture.cache.context.withIndex { (index) throws(SQLiteError) in try index.pipelines.row("half") }
                == nil)
        try fixture.commit("one")
    }
}

@Suite("Small parts")
struct PartsTests {
    @Test("a digest is its 32 bytes and its 64 digits")
    func digest() throws {
        let bytes = (0..<32).map { UInt8($0 * 8) }
        let digest = try #require(ContentDigest(bytes: bytes))
        #expect(digest.bytes == bytes)
        #expect(ContentDigest(hexadecimal: digest.description) == digest)
        #expect(digest.description.hasPrefix("00081018"))
        for wrong in [
            "", "0", digest.description.uppercased(), digest.description + "00", "g" + digest.description.dropFirst(),
        ] {
            #expect(ContentDigest(hexadecimal: wrong) == nil)
        }
        #expect(ContentDigest(bytes: Array(bytes.dropLast())) == nil)
    }

    @Test("a hash over pieces is the hash of the whole")
    func pieces() throws {
        var whole = try SHA256Hasher()
        var pieces = try SHA256Hasher()
        let bytes = (0..<1000).map { UInt8(truncatingIfNeeded: $0) }
        bytes.withUnsafeBytes { buffer in
            whole.update(buffer)
            for start in stride(from: 0, to: buffer.count, by: 37) {
                pieces.update(UnsafeRawBufferPointer(rebasing: buffer[start..<min(start + 37, buffer.count)]))
            }
            pieces.update(UnsafeRawBufferPointer(rebasing: buffer[..<0]))
        }
        #expect(try whole.finalize() == pieces.finalize())
        #expect(
            try SHA256Hasher().finalize().description
                == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    }

    @Test("only names that the cache makes count as generations")
    func storedNames() throws {
        let digest = String(repeating: "0f", count: 32)
        #expect(StoredContent(name: "42-\(digest)")?.number == 42)
        for wrong in ["42", "-\(digest)", "+1-\(digest)", "01-\(digest)", "0-\(digest)", "1-\(digest)0", ".new-1"] {
            #expect(StoredContent(name: wrong) == nil)
        }
    }

    @Test("the reserve is the smaller of share and bytes")
    func reserve() {
        #expect(FreeSpaceReserve.standard.bytes(of: 1 << 30) == (1 << 30) / 100 * 5)
        #expect(FreeSpaceReserve.standard.bytes(of: 1 << 40) == 256 << 20)
        #expect(FreeSpaceReserve.none.bytes(of: 1 << 40) == 0)
    }

    @Test("times beyond the range become the last time that fits")
    func wallTime() {
        #expect(WallTime(seconds: 1).nanoseconds == 1_000_000_000)
        #expect(WallTime(seconds: .max).nanoseconds == .max)
        #expect(WallTime(seconds: .min).nanoseconds == .min)
    }

    @Test("parts of a snapshot are kept until a snapshot without them, separately for each pipeline")
    func parts() throws {
        let fixture = try CacheFixture()
        func part(_ text: String, tag: String? = nil) -> StoredPart {
            StoredPart(binding: "b", validators: Validators(entityTag: tag), value: Array(text.utf8))
        }
        try fixture.cache.records.keepParts(of: "home", new: ["x": part("1", tag: "\"a\""), "y": part("")]) { _ in false
        }
        try fixture.cache.records.keepParts(of: "other", new: ["x": part("other")]) { _ in false }
        #expect(try fixture.cache.records.part("x", of: "home") == part("1", tag: "\"a\""))
        #expect(try fixture.cache.records.part("y", of: "home") == part(""))
        #expect(try fixture.cache.records.part("z", of: "home") == nil)
        try fixture.cache.records.keepParts(of: "home", new: ["z": part("3")], and: ["x", "nothing"].contains)
        #expect(try fixture.cache.records.part("x", of: "home") == part("1", tag: "\"a\""))
        #expect(try fixture.cache.records.part("y", of: "home") == nil)
        #expect(try fixture.cache.records.part("z", of: "home") == part("3"))
        try fixture.cache.records.keepParts(of: "home", new: ["x": part("2")], and: ["x"].contains)
        #expect(try fixture.cache.records.part("x", of: "home") == part("2"))
        #expect(try fixture.cache.records.part("x", of: "other") == part("other"))
    }

    @Test(
        "parts that are read together are those of one pipeline, in the order of their names, and end when they are long"
    )
    func partsTogether() throws {
        let fixture = try CacheFixture()
        let long = StoredPart(
            binding: "b", validators: Validators(),
            value: [UInt8](repeating: 32, count: RecordStore.partsTogetherBytes / 2))
        let short = StoredPart(binding: "b", validators: Validators(), value: [])
        try fixture.cache.records.keepParts(
            of: "home", new: ["short": short, "a": long, "b": long, "c": long, "d": long]
        ) { _ in false }
        try fixture.cache.records.keepParts(of: "other", new: ["x": short]) { _ in false }
        let records = fixture.cache.records
        #expect(try records.parts(["x", "short", "y"], of: "home") == [nil, short, nil])
        #expect(try records.parts(["c", "a"], of: "home") == [long, long])
        #expect(try records.parts(["c", "a", "short", "x", "b"], of: "home") == [long, long, short, nil, long])
        #expect(try records.parts(["c", "a", "b", "d"], of: "home") == [long, long, long])
        #expect(try records.parts(["a"], of: "nothing") == [nil])
        #expect(try records.parts([], of: "home") == [])
    }

    @Test("the pages of a part are kept and deleted with it; their state is read without their items")
    func pages() throws {
        let fixture = try CacheFixture()
        func part(_ count: Int, next: String?) -> StoredPart {
            StoredPart(
                binding: "b", validators: Validators(), value: [],
                pages: StoredPages(
                    items: Array("[1]\n".utf8), count: count, next: next.flatMap { PageBookmark($0) },
                    token: next == nil ? "t" : nil))
        }
        let open = part(1, next: "2 1 home\nh\nu\n")
        try fixture.cache.records.keepParts(of: "home", new: ["x": open, "y": part(2, next: nil)]) { _ in false }
        #expect(try fixture.cache.records.part("x", of: "home") == open)
        func states() throws -> [StoredPagesState]? {
            try fixture.cache.records.memory("home", key: "k")?.pages.sorted { $0.part < $1.part }
        }
        #expect(
            try states() == [
                StoredPagesState(part: "x", count: 1, hasMore: true),
                StoredPagesState(part: "y", count: 2, hasMore: false),
            ])
        #expect(try fixture.cache.records.memories(key: "k").states["home"]?.pages.count == 2)
        try fixture.cache.records.keepParts(of: "home", new: ["x": part(2, next: nil)], and: ["x"].contains)
        #expect(try states() == [StoredPagesState(part: "x", count: 2, hasMore: false)])
        #expect(try fixture.cache.records.part("x", of: "home")?.pages?.token == "t")
        try fixture.cache.records.keepParts(
            of: "home", new: ["x": StoredPart(binding: "b", validators: Validators(), value: [1])]
        ) { _ in false }
        #expect(try states() == [])
        #expect(try fixture.cache.records.part("x", of: "home")?.pages == nil)
    }
}
