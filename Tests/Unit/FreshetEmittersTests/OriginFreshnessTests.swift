import FreshetModel
import FreshetPipelines
import Testing

@testable import FreshetEmitters

@Suite("The freshness of an answer by its fields")
struct OriginFreshnessTests {
    /// 2026-11-21 12:00:00 UTC.
    private static let noon: Int64 = 1_795_262_400
    private static let noonText = "Sat, 21 Nov 2026 12:00:00 GMT"

    private func seconds(
        _ control: String? = nil, expires: String? = nil, date: String? = noonText, age: String? = nil,
        after delay: Duration = .zero, now: Int64 = noon
    ) -> Duration? {
        OriginFreshness(cacheControl: control, expires: expires, date: date, age: age)
            .remaining(after: delay, now: now)
    }

    @Test(
        "max-age counts among any other directives, and in quotes",
        arguments: [
            ("max-age=60", 60), ("public, MAX-AGE=60, s-maxage=5", 60), ("max-age = \"60\" ,immutable", 60),
            ("private=\"a, max-age=5\", max-age=60", 60), ("max-age=60, max-age=5", 60), (",,max-age=060,", 60),
            ("ext=\"\\\"max-age=1,\", max-age=60, no-store", 60), ("stale-while-revalidate=9, max-age=0", 0),
            ("max-age=99999999999999999999", 1 << 31), ("max-age=4294967296", 1 << 31),
        ])
    func maxAge(_ control: String, _ expected: Int) {
        #expect(seconds(control) == .seconds(expected))
    }

    @Test(
        "an invalid value and no-cache mean that the answer is stale",
        arguments: [
            "max-age=60 60", "max-age=6 0 4 8 0 0", "max-age=60;", "max-age=\" 60\"",
            "max-age=", "max-age", "max-age=-1", "max-age=1.5", "max-age=1h", "max-age=60=1", "no-cache",
            "no-cache=\"Set-Cookie\", max-age=60", "max-age=60, No-Cache",
        ])
    func nothing(_ control: String) {
        #expect(seconds(control, expires: "Sat, 21 Nov 2026 13:00:00 GMT") == .zero)
    }

    @Test("without max-age and Expires the freshness is unknown; there is no heuristic")
    func unknown() {
        #expect(seconds() == nil)
        for control in ["", "no-store", "immutable", "s-maxage=60", "must-revalidate, stale-if-error=60", "xmax-age=6"]
        {
            #expect(seconds(control) == nil, "\(control)")
        }
    }

    @Test("Expires counts from Date, or from now without a Date, and only without max-age")
    func expires() {
        let hourLater = "Sat, 21 Nov 2026 13:00:00 GMT"
        #expect(seconds(expires: hourLater) == .seconds(3600))
        #expect(seconds(expires: hourLater, date: nil, now: Self.noon + 600) == .seconds(3000))
        #expect(seconds("max-age=5", expires: hourLater) == .seconds(5))
        #expect(seconds("public", expires: hourLater) == .seconds(3600))
        #expect(seconds(expires: "Sat, 21 Nov 2026 11:00:00 GMT") == .zero)
        for invalid in ["0", "-1", "never", "", "Wed, 31 Feb 2027 12:00:00 GMT"] {
            #expect(seconds(expires: invalid) == .zero, "\(invalid)")
        }
    }

    @Test("the age by the clocks or by caches is subtracted, whichever is larger")
    func age() {
        #expect(seconds("max-age=60", after: .milliseconds(1500)) == .milliseconds(58_500))
        #expect(seconds("max-age=60", age: "50") == .seconds(10))
        #expect(seconds("max-age=60", age: "50", after: .seconds(20)) == .zero)
        #expect(seconds("max-age=60", age: "x") == .seconds(60))
        #expect(seconds("max-age=60", age: "5 0") == .seconds(60))
        #expect(seconds("max-age=60", now: Self.noon + 15) == .seconds(45))
        #expect(seconds("max-age=60", age: "5", now: Self.noon + 15) == .seconds(45))
        // The origin's clock is ahead of the local clock: that does not extend the freshness.
        #expect(seconds("max-age=60", now: Self.noon - 900) == .seconds(60))
        #expect(seconds("max-age=60", date: nil, now: Self.noon + 15) == .seconds(60))
        #expect(seconds("max-age=60", date: "yesterday", now: Self.noon + 15) == .seconds(60))
    }

    @Test("a complete answer and a 304 have a freshness, from all lines of the field")
    func client() async throws {
        let running = try RunningLoop()
        let client = HTTPClient(running.loop)
        let origin = try ScriptedOrigin { request, connection in
            let isSame = request.headers["if-none-match"] != nil
            connection.answer(
                isSame ? "304 Not Modified" : "200 OK",
                headers: ["ETag: \"1\"", "Cache-Control: public", "Cache-Control: max-age=\(isSame ? 7200 : 3600)"])
        }
        let source = HTTPSource(url: origin.url(), host: "127.0.0.1")
        func range(_ seconds: Double) -> ClosedRange<Duration> { .seconds(seconds - 600)...(.seconds(seconds)) }
        let first = try await client.fetch(source, for: FetchRequest(source: .http(source)))
        #expect(range(3600).contains(try #require(first.content?.freshFor)))
        let second = try await client.fetch(
            source, for: FetchRequest(source: .http(source), validators: Validators(entityTag: "\"1\"")))
        guard case .notModified(_, let freshFor?) = second else {
            Issue.record("\(second)")
            return
        }
        #expect(range(7200).contains(freshFor))
    }
}
