import Testing

@testable import FreshetVarlink

@Suite struct DescriptorShortageTests {
    @Test("without a connection that gives way, a newcomer is turned away")
    func nobodyLeaves() {
        var shortage = DescriptorShortage()
        #expect(shortage.newcomerFailed() == .turnAway)
        shortage.connectionGivesWay()
        #expect(shortage.connectionEnded() == false, "no newcomer waits")
        #expect(shortage.newcomerFailed() == .turnAway)
    }

    @Test("newcomers wait until a connection that gave way has ended")
    func waiting() {
        var shortage = DescriptorShortage()
        shortage.connectionGivesWay()
        shortage.connectionGivesWay()
        #expect(shortage.newcomerFailed() == .wait)
        #expect(shortage.connectionEnded() == true)
        shortage.newcomerAccepted()
        #expect(shortage.connectionEnded() == false)
    }

    @Test("newcomers do not wait for ever for connections that do not end")
    func bound() {
        var shortage = DescriptorShortage()
        shortage.connectionGivesWay()
        shortage.connectionGivesWay()
        for _ in 0..<DescriptorShortage.pausesInARow { #expect(shortage.newcomerFailed() == .wait) }
        for _ in 0..<3 { #expect(shortage.newcomerFailed() == .turnAway) }
        // One of them ends after all.
        #expect(shortage.connectionEnded() == true)
        #expect(shortage.newcomerFailed() == .wait)
    }
}
