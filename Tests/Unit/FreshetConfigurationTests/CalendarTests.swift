import FreshetModel
import FreshetPipelines
import Testing

@testable import FreshetConfiguration

@Suite("Calendar times in the configuration")
struct CalendarTests {
    @Test("at has a time or a list of times, and every may be a word")
    func times() throws {
        func texts(_ line: String) -> [String]? { load(pipeline: pipeline(line)).policy?.calendar.map(\.text) }
        #expect(texts("refresh: {at: daily}") == ["daily"])
        #expect(texts("refresh: {at: ['Mon..Fri 06:30', '*:0/15']}") == ["Mon..Fri 06:30", "*:0/15"])
        #expect(texts("refresh: {every: weekly}") == ["weekly"])
        #expect(texts("refresh: {every: daily Europe/Berlin, at: 06:00}") == ["daily Europe/Berlin", "06:00"])
        #expect(load(pipeline: pipeline("refresh: {every: 1h, at: 06:00}")).policy?.every == .seconds(3600))
        #expect(load(pipeline: pipeline("refresh: {every: infinity}")).policy?.isPlanned == false)
    }

    @Test(
        "an error names what to write instead",
        arguments: [
            ("at: 15min", "for a time between checks, write every: 15min"),
            ("at: '0 3 * * *'", "this looks like cron's notation; '0 3 * * 1-5' is 'Mon..Fri 03:00'"),
            ("at: '*:*:0.5'", "write whole seconds"),
            ("at: '*-02-30'", "no year until 2199 has such a day"),
            ("every: '06:30'", "for times of the day or of the week, write at: '06:30'"),
            ("every: Mon..Fri", "for times of the day or of the week, write at: 'Mon..Fri'"),
            ("every: day", "write a number too: every: 1day"),
            ("at: *:0/15", "quote the text"),
            ("cron: '0 3 * * *'", "use 'refresh.at': refresh: {at: 'Mon..Fri 06:30'}"),
        ])
    func errors(line: String, remedy: String) throws {
        let found = try #require(load(pipeline: pipeline("refresh: {\(line)}")).diagnostics.first)
        #expect(found.remedy?.hasPrefix(remedy) == true, "\(found.explanation())")
    }
}
