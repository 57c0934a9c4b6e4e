import Testing

@testable import FreshetPipelines

/// Drives the limiter with named requests, and records which are granted.
private final class LimiterDriver {
    var machine: RequestLimiterMachine<String>
    var tickets: [String: UInt64] = [:]

    init(total: Int, perOrigin: Int) {
        machine = RequestLimiterMachine(RequestLimiter.Limits(total: total, perOrigin: perOrigin))
    }

    static func origin(_ name: String?) -> HTTPOrigin? { name.flatMap { HTTPOrigin(of: "https://\($0)/") } }

    /// Whether the request is granted immediately.
    func request(_ name: String, as pipeline: UInt64, at origin: String?) -> Bool {
        let (ticket, isGranted) = machine.request(for: pipeline, at: Self.origin(origin), name)
        tickets[name] = ticket
        return isGranted
    }

    /// The requests that are granted then.
    func release(_ name: String) -> String? { tickets[name].flatMap { machine.release($0) } }

    func queue(_ name: String) -> RequestLimiter.Queue? { tickets[name].flatMap { machine.queue(of: $0) } }
}

@Suite("The request limiter")
struct RequestLimiterTests {
    @Test("requests are granted in their order, up to the total limit")
    func order() {
        let limiter = LimiterDriver(total: 2, perOrigin: 2)
        let served = [
            limiter.request("a", as: 1, at: nil), limiter.request("b", as: 2, at: nil),
            limiter.request("c", as: 3, at: nil),
            limiter.request("d", as: 4, at: nil),
        ]
        #expect(served == [true, true, false, false])
        #expect(limiter.release("c") == nil, "a withdrawn request")
        #expect(limiter.release("a") == "d")
        #expect(limiter.release("a") == nil, "a second time has no effect")
        #expect(limiter.machine.takenCount == 2)
        #expect(limiter.release("b") == nil)
        #expect(limiter.release("d") == nil)
        #expect(limiter.machine.takenCount == 0)
        #expect(limiter.machine.waitingCount == 0)
    }

    @Test("requests for an origin at its limit do not delay the requests behind them")
    func noHeadOfLine() {
        let limiter = LimiterDriver(total: 10, perOrigin: 1)
        let first = [
            limiter.request("a", as: 1, at: "full"), limiter.request("b", as: 2, at: "full"),
            limiter.request("c", as: 3, at: "full"),
        ]
        #expect(first == [true, false, false])
        let others = [
            limiter.request("d", as: 4, at: "other"), limiter.request("e", as: 5, at: nil),
            limiter.request("f", as: 6, at: nil),
        ]
        #expect(others == [true, true, true])
        #expect(limiter.release("d") == nil, "a permit for another origin does not help them")
        #expect(limiter.release("a") == "b")
        #expect(limiter.release("b") == "c")
    }

    @Test("of the requests whose origins are below their limit, the longest waiting one gets the permit")
    func longest() {
        let limiter = LimiterDriver(total: 2, perOrigin: 1)
        let served = [
            limiter.request("a", as: 1, at: "x"), limiter.request("b", as: 2, at: "y"),
            limiter.request("c", as: 3, at: "x"),
            limiter.request("d", as: 4, at: "z"), limiter.request("e", as: 5, at: "y"),
        ]
        #expect(served == [true, true, false, false, false])
        #expect(limiter.release("b") == "d", "c waits longer, for x")
        #expect(limiter.release("d") == "e")
        #expect(limiter.release("a") == "c")
    }

    @Test("a pipeline with many requests gets no more than its share")
    func flood() {
        let limiter = LimiterDriver(total: 1, perOrigin: 1)
        #expect(limiter.request("held", as: 9, at: "x"))
        for index in 0..<100 { #expect(!limiter.request("flood\(index)", as: 1, at: "x")) }
        #expect(!limiter.request("second", as: 2, at: "x"))
        #expect(!limiter.request("third", as: 3, at: "x"))
        var order: [String] = []
        var next = limiter.release("held")
        while let served = next {
            order.append(served)
            next = limiter.release(served)
        }
        #expect(order.prefix(4) == ["flood0", "second", "third", "flood1"])
        #expect(order.count == 102)
    }

    @Test("a waiting request shows its limit, and how many have waited longer")
    func told() {
        let limiter = LimiterDriver(total: 2, perOrigin: 1)
        #expect(limiter.request("a", as: 1, at: "x"))
        #expect(!limiter.request("b", as: 2, at: "x"))
        #expect(limiter.queue("b")?.description == "1 request is in progress at https://x")
        #expect(limiter.request("c", as: 3, at: "y"))
        #expect(!limiter.request("d", as: 4, at: "z"))
        #expect(limiter.queue("d")?.description == "2 requests are in progress, 1 other waits longer")
        #expect(!limiter.request("e", as: 5, at: nil))
        #expect(limiter.queue("e")?.description == "2 requests are in progress, 2 others wait longer")
        #expect(limiter.queue("a") == nil)
        _ = limiter.release("d")
        #expect(limiter.queue("e")?.ahead == 1)
        #expect(limiter.release("c") == "e")
        #expect(limiter.queue("e") == nil)
    }

    @Test("changed limits grant more requests, and permits above a lower limit are not granted again")
    func change() {
        let limiter = LimiterDriver(total: 1, perOrigin: 1)
        let served = [
            limiter.request("a", as: 1, at: "x"), limiter.request("b", as: 2, at: "x"),
            limiter.request("c", as: 3, at: "x"),
            limiter.request("d", as: 4, at: "y"),
        ]
        #expect(served == [true, false, false, false])
        #expect(limiter.machine.change(RequestLimiter.Limits(total: 4, perOrigin: 2)) == ["b", "d"])
        #expect(limiter.machine.change(RequestLimiter.Limits(total: 4, perOrigin: 1)) == [])
        #expect(limiter.release("a") == nil)
        #expect(limiter.release("b") == "c")
        #expect(limiter.machine.change(RequestLimiter.Limits(total: 0, perOrigin: 0)) == [])
        #expect(!limiter.request("e", as: 5, at: "z"))
        #expect(limiter.release("c") == nil)
        #expect(limiter.release("d") == "e", "there is at least one permit")
    }

    @Test("withdrawn requests lose no permit and leave no state")
    func takenBack() {
        let limiter = LimiterDriver(total: 1, perOrigin: 1)
        #expect(limiter.request("0", as: 0, at: "x"))
        for index in 1...10_000 { #expect(!limiter.request("\(index)", as: UInt64(index), at: "x\(index % 3)")) }
        for index in 1...10_000 where index % 10 != 0 { #expect(limiter.release("\(index)") == nil) }
        var granted: [String] = []
        var held = "0"
        while let next = limiter.release(held) {
            granted.append(next)
            held = next
        }
        #expect(granted == stride(from: 10, through: 10_000, by: 10).map { "\($0)" })
        #expect(limiter.machine.takenCount == 0)
        #expect(limiter.machine.isEmpty)
    }

    @Test("in any course no limit is exceeded, no free permit is kept back, and no request starves", arguments: 0..<40)
    func anyCourse(_ seed: UInt64) {
        var random = Jitter(seed: seed)
        let total = Int.random(in: 1...8, using: &random)
        let perOrigin = Int.random(in: 1...4, using: &random)
        let limiter = LimiterDriver(total: total, perOrigin: perOrigin)
        var origins: [String: String?] = [:]
        var pipelines: [String: UInt64] = [:]
        var running: [String] = []
        var waiting: [String] = []
        /// The number of other grants since it began to wait.
        var skipped: [String: Int] = [:]
        var worst = 0
        func serve(_ name: String) {
            for other in waiting where other != name { skipped[other, default: 0] += 1 }
            worst = max(worst, skipped[name] ?? 0)
            running.append(name)
        }
        for step in 0..<2_000 {
            // The flood, pipeline 0, makes requests whenever it can; others have one request at a time, as runs do.
            if Int.random(in: 0..<3, using: &random) > 0 {
                let pipeline = Bool.random(using: &random) ? 0 : UInt64.random(in: 1...20, using: &random)
                if pipeline > 0, (running + waiting).contains(where: { pipelines[$0] == pipeline }) { continue }
                if pipeline == 0, waiting.filter({ pipelines[$0] == 0 }).count > 50 { continue }
                let name = "\(step)"
                let origin = [nil, "a", "b", "c"].randomElement(using: &random) ?? nil
                pipelines[name] = pipeline
                origins[name] = .some(pipeline == 0 ? "a" : origin)
                if limiter.request(name, as: pipeline, at: pipeline == 0 ? "a" : origin) {
                    serve(name)
                } else {
                    waiting.append(name)
                }
            } else if let name = (running + waiting).randomElement(using: &random) {
                running.removeAll { $0 == name }
                waiting.removeAll { $0 == name }
                if let served = limiter.release(name) {
                    waiting.removeAll { $0 == served }
                    serve(served)
                }
            }
            let counts = Dictionary(grouping: running) { origins[$0] ?? nil }.mapValues(\.count)
            let isFull = { (origin: String?) in origin != nil && (counts[origin] ?? 0) >= perOrigin }
            #expect(running.count <= total)
            for (origin, count) in counts where origin != nil { #expect(count <= perOrigin) }
            if running.count < total { #expect(waiting.allSatisfy { isFull(origins[$0] ?? nil) }) }
            #expect(limiter.machine.takenCount == running.count)
            #expect(limiter.machine.waitingCount == waiting.count)
        }
        // At the end each other request is granted within one round of the waiting queues, in which the flood's queue
        // occurs at most once.
        var order: [String] = []
        while let name = running.popLast() {
            if let served = limiter.release(name) {
                order.append(served)
                running.append(served)
            }
        }
        #expect(Set(order) == Set(waiting))
        #expect(limiter.machine.isEmpty)
    }

    @Test("a pipeline with one request waits for at most one round of all others")
    func noneStarves() {
        var random = Jitter(seed: 5)
        let limiter = LimiterDriver(total: 3, perOrigin: 2)
        var running: [(name: String, pipeline: UInt64)] = []
        var since: [String: Int] = [:]
        var grants = 0
        var longest = 0
        let pipelines: ClosedRange<UInt64> = 0...30
        func origin(_ pipeline: UInt64) -> String? { [nil, "a", "b", "c"][Int(pipeline % 4)] }
        var step = 0
        func request(_ pipeline: UInt64) {
            step += 1
            let name = "\(pipeline).\(step)"
            if limiter.request(name, as: pipeline, at: origin(pipeline)) {
                running.append((name, pipeline))
            } else {
                since[name] = grants
            }
        }
        for pipeline in pipelines { request(pipeline) }
        for _ in 0..<200 { request(1) }
        for _ in 0..<5_000 {
            let place = Int.random(in: 0..<running.count, using: &random)
            let ended = running.remove(at: place)
            if let served = limiter.release(ended.name) {
                grants += 1
                let pipeline = served.prefix { $0 != "." }
                if pipeline != "1" { longest = max(longest, grants - (since[served] ?? 0)) }
                running.append((served, UInt64(pipeline) ?? 0))
            }
            // It makes another request immediately, like a pipeline with a short `every`.
            request(ended.pipeline)
        }
        #expect(grants > 4_000)
        // 31 pipelines alternate; the origin at its limit lets others pass meanwhile.
        #expect(longest <= 31 * 3)
    }
}

@Suite("The origin of a URL")
struct HTTPOriginTests {
    @Test(
        "is scheme, host and port, in any spelling",
        arguments: [
            ("https://example.com/a?b", "https://example.com"), ("HTTPS://Example.COM:443", "https://example.com"),
            ("http://example.com:0080/", "http://example.com"),
            ("http://example.com:8080?x", "http://example.com:8080"),
            ("https://example.com:80/", "https://example.com:80"), ("http://[2001:DB8::1]/x", "http://[2001:db8::1]"),
            ("http://[::1]:8080/x", "http://[::1]:8080"), ("https://user:p@ss@example.com/@", "https://example.com"),
            ("https://example.com:/", "https://example.com"), ("http://h#f:9", "http://h"),
        ])
    func origin(_ url: String, _ expected: String) {
        #expect(HTTPOrigin(of: url)?.description == expected)
    }

    @Test(
        "exists only for HTTP URLs",
        arguments: ["", "x", "ftp://h/", "http:/h", "http://", "http://h:x/", "https://:1"])
    func none(_ url: String) {
        #expect(HTTPOrigin(of: url) == nil)
    }

    @Test("does not exist for commands and files")
    func sources() {
        #expect(SourceDefinition.command(["/bin/true"]).origin == nil)
        #expect(SourceDefinition.file("/etc/hosts").origin == nil)
        let url = SourceDefinition.http(HTTPSource(url: "http://h:81/x", host: "h"))
        #expect(url.origin?.description == "http://h:81")
    }
}
