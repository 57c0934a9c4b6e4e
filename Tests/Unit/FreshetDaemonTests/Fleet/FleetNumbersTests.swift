import FreshetFleet
import FreshetModel
import Testing

@testable import FreshetDaemon

@Suite("The numbers of a fleet's records") struct FleetNumbersTests {
    private func subject(_ content: UInt8, fleet: String = "prod") throws -> FleetSubject {
        let digest = try #require(ContentDigest(bytes: Array(repeating: content, count: 32)))
        return FleetSubject(fleet: fleet, pipeline: "a", fingerprint: digest)
    }

    @Test("a number stays known when the definition was changed and changed back, also after a restart")
    func changedBack() throws {
        var numbers = FleetNumbers()
        #expect(numbers.settled(try subject(1), 3))
        #expect(numbers.settled(try subject(2), 1))
        #expect(!numbers.settled(try subject(1), 2), "an older one came later")
        let stored = FleetNumbers(stored: numbers.stored)
        #expect(stored == numbers)
        #expect(stored.number(of: try subject(1)) == 3)
        #expect(stored.number(of: try subject(2)) == 1)
        // Another fleet begins again.
        #expect(stored.number(of: try subject(1, fleet: "other")) == 0)
    }

    @Test("few definitions are remembered, and damaged lines are left out")
    func bounded() throws {
        var numbers = FleetNumbers()
        for content in UInt8(1)...20 { #expect(numbers.settled(try subject(content), 1)) }
        #expect(numbers.stored.split(separator: "\n").count == FleetNumbers.most)
        #expect(numbers.number(of: try subject(20)) == 1)
        #expect(numbers.number(of: try subject(1)) == 0)
        #expect(FleetNumbers(stored: "x\n\n 1\nprod ff -1\nprod ff 99999999999999999999\n").stored == " 1")
    }
}
