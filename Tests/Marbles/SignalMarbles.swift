import FreshetSignals
import FreshetTestKit
import Testing

@Suite("Signals, as marble diagrams")
struct SignalMarbles {
    let stage = MarbleStage()

    @Test("a signal delivers each firing when it happens, and ends")
    func signal() throws {
        let signal = stage.signal("  --a-(aa)--a-|")
        try stage.expect(signal, "    --o-(oo)--o-|")
    }

    @Test("a slow consumer receives each firing, also after the end of the source")
    func slow() throws {
        let signal = stage.signal("  (aaa)a|          ")
        let consumer: Marbles = "    --- ^-^-^--^^"
        try stage.expect(signal, "    --- o-o-o--o|", consumer: consumer)
    }

    @Test("a merge delivers the firings of all signals, and ends with the last")
    func merge() throws {
        let a = stage.signal("                     a- -a--|")
        let b = stage.signal("                     -b -b-----|")
        try stage.expect(Signal.merge(a, b), "     oo-(oo)-----|")
    }

    @Test("a merge with never does not end")
    func mergeWithNever() throws {
        let a = stage.signal("                        -a-|")
        try stage.expect(Signal.merge(a, .never), "   -o------")
    }

    @Test("a source that is listed twice counts twice, nested or not")
    func twice() throws {
        let a = stage.signal("                                   -a--")
        try stage.expect(Signal.merge(a, .merge(a, .never)), "   -(oo)--")
    }

    @Test("coalesced() takes what is pending as one")
    func coalesced() throws {
        let signal = stage.signal("              -(aa)a----a-|")
        let consumer: Marbles = "                ^ -  ---^---^-^"
        try stage.expect(signal.coalesced(), "    - o  ---o---o-|", consumer: consumer)
    }

    @Test("causes contain all pending firings, ordered by first firing")
    func causes() throws {
        let network = stage.signal("  n--n ----n-|", named: "n")
        let resume = stage.signal("   -r-- ------|", named: "r")
        let consumer: Marbles = "     ----^   ---^-^^"
        let expected: Marbles = "     ----{n2 r1}---{n1}-|"
        try stage.expect(Signal.merge(resume, network, resume).causes, expected, consumer: consumer) { causes in
            causes.map { "\($0.first.signal)\($0.count)" }.joined(separator: " ")
        }
    }

    @Test("a cancelled consumer ends; the signal does not")
    func cancelled() throws {
        let signal = stage.signal("  -a---a-")
        let consumer: Marbles = "    ---!"
        try stage.expect(signal, "    -o-|---", consumer: consumer)
    }

    @Test("an activated identifier fires its own signal")
    func trigger() throws {
        let trigger = Trigger()
        for (frame, identifier) in [(1, 1), (2, 2), (3, 1)] {
            stage.at(frame: frame) { trigger.activate(for: identifier) }
        }
        try stage.expect(trigger.signal(activatedBy: 1), "-o-o")
    }

    @Test("a current value delivers the current one first, then each change")
    func currentValue() throws {
        let value = stage.currentValue("a", "--b--c-|")
        try stage.expect(value, "            a-b--c-|")
    }

    @Test("a slow reader of a current value gets the newest, also after its end")
    func slowReader() throws {
        let value = stage.currentValue("a", "--b-(cd)--e|")
        let consumer: Marbles = "            ^--- -   ^------^^"
        try stage.expect(value, "            a--- -   d------e|", consumer: consumer)
    }

    @Test("duplicates are removed")
    func removeDuplicates() throws {
        let upstream = stage.emitter("                   a-aab-b-a-|")
        try stage.expect(upstream.removeDuplicates(), "    a---b---a-|")
    }
}
