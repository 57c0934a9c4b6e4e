import Testing

@testable import FreshetPipelines

/// A talk with the desk: who asks where, and whom it serves. Each wish has a name.
private final class Desk {
    var machine: RequestLimiterMachine<String>
    var tickets: [String: UInt64] = [:]

    init(total: Int, perOrigin: Int) {
        machine = RequestLimiterMachine(RequestLimiter.Limits(total: total, perOrigin: perOrigin))
    }

    static func origin(_ name: String?) -> HTTPOrigin? { name.flatMap { HTTPOrigin(of: "https://\($0)/") } }

    /// Whether it is served at once.
    func asks(_ wish: String, as pipeline: UInt64, at origin: String?) -> Bool {
        let (ticket, isGranted) = machine.request(for: pipeline, at: Self.origin(origin), wish)
        tickets[wish] = ticket
        return isGranted
    }

    /// Who is served then.
    func gives(back wish: String) -> String? { tickets[wish].flatMap { machine.release($0) } }

    func queue(_ wish: String) -> RequestLimiter.Queue? { tickets[wish].flatMap { machine.queue(of: $0) } }
}

@Suite("Places for requests")
struct RequestLimiterTests {
    @Test("first come, first served, up to the limit of all")
    func order() {
        let desk = Desk(total: 2, perOrigin: 2)
        let served = [
            desk.asks("a", as: 1, at: nil), desk.asks("b", as: 2, at: nil), desk.asks("c", as: 3, at: nil),
            desk.asks("d", as: 4, at: nil),
        ]
        #expect(served == [true, true, false, false])
        #expect(desk.gives(back: "c") == nil, "a wish that is taken back")
        #expect(desk.gives(back: "a") == "d")
        #expect(desk.gives(back: "a") == nil, "a second time has no effect")
        #expect(desk.machine.takenCount == 2)
        #expect(desk.gives(back: "b") == nil)
        #expect(desk.gives(back: "d") == nil)
        #expect(desk.machine.takenCount == 0)
        #expect(desk.machine.waitingCount == 0)
    }

    @Test("an origin that is full holds up nobody behind it")
    func noHeadOfLine() {
        let desk = Desk(total: 10, perOrigin: 1)
        let first = [
            desk.asks("a", as: 1, at: "full"), desk.asks("b", as: 2, at: "full"), desk.asks("c", as: 3, at: "full"),
        ]
        #expect(first == [true, false, false])
        let others = [
            desk.asks("d", as: 4, at: "other"), desk.asks("e", as: 5, at: nil), desk.asks("f", as: 6, at: nil),
        ]
        #expect(others == [true, true, true])
        #expect(desk.gives(back: "d") == nil, "a place elsewhere is of no use to them")
        #expect(desk.gives(back: "a") == "b")
        #expect(desk.gives(back: "b") == "c")
    }

    @Test("of those whose origins have room, who has waited longest gets the place")
    func longest() {
        let desk = Desk(total: 2, perOrigin: 1)
        let served = [
            desk.asks("a", as: 1, at: "x"), desk.asks("b", as: 2, at: "y"), desk.asks("c", as: 3, at: "x"),
            desk.asks("d", as: 4, at: "z"), desk.asks("e", as: 5, at: "y"),
        ]
        #expect(served == [true, true, false, false, false])
        #expect(desk.gives(back: "b") == "d", "c waits longer, for x")
        #expect(desk.gives(back: "d") == "e")
        #expect(desk.gives(back: "a") == "c")
    }

    @Test("a pipeline that floods gets no more than its turn")
    func flood() {
        let desk = Desk(total: 1, perOrigin: 1)
        #expect(desk.asks("held", as: 9, at: "x"))
        for index in 0..<100 { #expect(!desk.asks("flood\(index)", as: 1, at: "x")) }
        #expect(!desk.asks("second", as: 2, at: "x"))
        #expect(!desk.asks("third", as: 3, at: "x"))
        var order: [String] = []
        var next = desk.gives(back: "held")
        while let served = next {
            order.append(served)
            next = desk.gives(back: served)
        }
        #expect(order.prefix(4) == ["flood0", "second", "third", "flood1"])
        #expect(order.count == 102)
    }

    @Test("what one waits for is told: whose limit, and how many have waited longer")
    func told() {
        let desk = Desk(total: 2, perOrigin: 1)
        #expect(desk.asks("a", as: 1, at: "x"))
        #expect(!desk.asks("b", as: 2, at: "x"))
        #expect(desk.queue("b")?.description == "1 request is under way at https://x")
        #expect(desk.asks("c", as: 3, at: "y"))
        #expect(!desk.asks("d", as: 4, at: "z"))
        #expect(desk.queue("d")?.description == "2 requests are under way, 1 other waits longer")
        #expect(!desk.asks("e", as: 5, at: nil))
        #expect(desk.queue("e")?.description == "2 requests are under way, 2 others wait longer")
        #expect(desk.queue("a") == nil)
        _ = desk.gives(back: "d")
        #expect(desk.queue("e")?.ahead == 1)
        #expect(desk.gives(back: "c") == "e")
        #expect(desk.queue("e") == nil)
    }

    @Test("with other limits those who may are served, and what is too much is not given out again")
    func change() {
        let desk = Desk(total: 1, perOrigin: 1)
        let served = [
            desk.asks("a", as: 1, at: "x"), desk.asks("b", as: 2, at: "x"), desk.asks("c", as: 3, at: "x"),
            desk.asks("d", as: 4, at: "y"),
        ]
        #expect(served == [true, false, false, false])
        #expect(desk.machine.change(RequestLimiter.Limits(total: 4, perOrigin: 2)) == ["b", "d"])
        #expect(desk.machine.change(RequestLimiter.Limits(total: 4, perOrigin: 1)) == [])
        #expect(desk.gives(back: "a") == nil)
        #expect(desk.gives(back: "b") == "c")
        #expect(desk.machine.change(RequestLimiter.Limits(total: 0, perOrigin: 0)) == [])
        #expect(!desk.asks("e", as: 5, at: "z"))
        #expect(desk.gives(back: "c") == nil)
        #expect(desk.gives(back: "d") == "e", "there is at least one place")
    }

    @Test("wishes that are taken back leave no one out and nothing behind")
    func takenBack() {
        let desk = Desk(total: 1, perOrigin: 1)
        #expect(desk.asks("0", as: 0, at: "x"))
        for index in 1...10_000 { #expect(!desk.asks("\(index)", as: UInt64(index), at: "x\(index % 3)")) }
        for index in 1...10_000 where index % 10 != 0 { #expect(desk.gives(back: "\(index)") == nil) }
        var granted: [String] = []
        var held = "0"
        while let next = desk.gives(back: held) {
            granted.append(next)
            held = next
        }
        #expect(granted == stride(from: 10, through: 10_000, by: 10).map { "\($0)" })
        #expect(desk.machine.takenCount == 0)
        #expect(desk.machine.isEmpty)
    }

    @Test("whatever comes, no limit is passed, no free place is kept back, and none starves", arguments: 0..<40)
    func anyCourse(_ seed: UInt64) {
        var random = Jitter(seed: seed)
        let total = Int.random(in: 1...8, using: &random)
        let perOrigin = Int.random(in: 1...4, using: &random)
        let desk = Desk(total: total, perOrigin: perOrigin)
        var origins: [String: String?] = [:]
        var pipelines: [String: UInt64] = [:]
        var running: [String] = []
        var waiting: [String] = []
        /// How many others were served since it began to wait.
        var passedOver: [String: Int] = [:]
        var worst = 0
        func serve(_ wish: String) {
            for other in waiting where other != wish { passedOver[other, default: 0] += 1 }
            worst = max(worst, passedOver[wish] ?? 0)
            running.append(wish)
        }
        for step in 0..<2_000 {
            // The flood, pipeline 0, asks whenever it can; others have one wish at a time, as runs do.
            if Int.random(in: 0..<3, using: &random) > 0 {
                let pipeline = Bool.random(using: &random) ? 0 : UInt64.random(in: 1...20, using: &random)
                if pipeline > 0, (running + waiting).contains(where: { pipelines[$0] == pipeline }) { continue }
                if pipeline == 0, waiting.filter({ pipelines[$0] == 0 }).count > 50 { continue }
                let wish = "\(step)"
                let origin = [nil, "a", "b", "c"].randomElement(using: &random) ?? nil
                pipelines[wish] = pipeline
                origins[wish] = .some(pipeline == 0 ? "a" : origin)
                if desk.asks(wish, as: pipeline, at: pipeline == 0 ? "a" : origin) {
                    serve(wish)
                } else {
                    waiting.append(wish)
                }
            } else if let wish = (running + waiting).randomElement(using: &random) {
                running.removeAll { $0 == wish }
                waiting.removeAll { $0 == wish }
                if let served = desk.gives(back: wish) {
                    waiting.removeAll { $0 == served }
                    serve(served)
                }
            }
            let counts = Dictionary(grouping: running) { origins[$0] ?? nil }.mapValues(\.count)
            let isFull = { (origin: String?) in origin != nil && (counts[origin] ?? 0) >= perOrigin }
            #expect(running.count <= total)
            for (origin, count) in counts where origin != nil { #expect(count <= perOrigin) }
            if running.count < total { #expect(waiting.allSatisfy { isFull(origins[$0] ?? nil) }) }
            #expect(desk.machine.takenCount == running.count)
            #expect(desk.machine.waitingCount == waiting.count)
        }
        // All go home: each of the others is served within one round of the lines that were there, of which none is
        // the flood's more than once.
        var order: [String] = []
        while let wish = running.popLast() {
            if let served = desk.gives(back: wish) {
                order.append(served)
                running.append(served)
            }
        }
        #expect(Set(order) == Set(waiting))
        #expect(desk.machine.isEmpty)
    }

    @Test("none of those with one wish waits for more than a round of all others")
    func noneStarves() {
        var random = Jitter(seed: 5)
        let desk = Desk(total: 3, perOrigin: 2)
        var running: [(wish: String, pipeline: UInt64)] = []
        var since: [String: Int] = [:]
        var grants = 0
        var longest = 0
        let pipelines: ClosedRange<UInt64> = 0...30
        func origin(_ pipeline: UInt64) -> String? { [nil, "a", "b", "c"][Int(pipeline % 4)] }
        var step = 0
        func ask(_ pipeline: UInt64) {
            step += 1
            let wish = "\(pipeline).\(step)"
            if desk.asks(wish, as: pipeline, at: origin(pipeline)) {
                running.append((wish, pipeline))
            } else {
                since[wish] = grants
            }
        }
        for pipeline in pipelines { ask(pipeline) }
        for _ in 0..<200 { ask(1) }
        for _ in 0..<5_000 {
            let place = Int.random(in: 0..<running.count, using: &random)
            let ended = running.remove(at: place)
            if let served = desk.gives(back: ended.wish) {
                grants += 1
                let pipeline = served.prefix { $0 != "." }
                if pipeline != "1" { longest = max(longest, grants - (since[served] ?? 0)) }
                running.append((served, UInt64(pipeline) ?? 0))
            }
            // Asks again at once, as one with a short `every`.
            ask(ended.pipeline)
        }
        #expect(grants > 4_000)
        // 31 pipelines take turns; the origin that is always full lets others pass meanwhile.
        #expect(longest <= 31 * 3)
    }
}

@Suite("The origin of a URL")
struct HTTPOriginTests {
    @Test(
        "is scheme, host and port, however they are written",
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
        "of something else there is none",
        arguments: ["", "x", "ftp://h/", "http:/h", "http://", "http://h:x/", "https://:1"])
    func none(_ url: String) {
        #expect(HTTPOrigin(of: url) == nil)
    }

    @Test("commands and files have none")
    func sources() {
        #expect(SourceDefinition.command(["/bin/true"]).origin == nil)
        #expect(SourceDefinition.file("/etc/hosts").origin == nil)
        let url = SourceDefinition.http(HTTPSource(url: "http://h:81/x", host: "h"))
        #expect(url.origin?.description == "http://h:81")
    }
}
