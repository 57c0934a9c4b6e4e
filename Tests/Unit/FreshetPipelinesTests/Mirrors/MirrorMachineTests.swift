import FreshetModel
import Testing

@testable import FreshetPipelines

@Suite("The order of mirrors")
struct MirrorMachineTests {
    private static let beginning = BootInstant.now

    private static func at(_ seconds: Double) -> BootInstant { beginning.advanced(by: .seconds(seconds)) }

    private static func mirrors(_ order: Mirrors.Order, _ names: String...) -> Mirrors {
        Mirrors(names.map { Mirrors.Mirror(url: "https://\($0)/", host: $0) }, order: order)
    }

    private let listed = mirrors(.listed, "a", "b", "c")

    private func plan(
        _ machine: inout MirrorMachine, _ mirrors: Mirrors, at seconds: Double, share: Double = 0, epoch: UInt64 = 1,
        isForced: Bool = false
    ) -> [Int] {
        machine.plan(mirrors, share: share, epoch: epoch, isForced: isForced, at: Self.at(seconds))
    }

    @Test(
        "the name of a mirror has no user information, no query and no fragment",
        arguments: [
            ("https://a.example/b/c", "https://a.example/b/c"),
            ("https://user:secret@a.example/b", "https://a.example/b"),
            ("https://user:p@ss@a.example:8443/b@c?key=secret", "https://a.example:8443/b@c"),
            ("https://user:secret@a.example?key=secret", "https://a.example"),
            ("https://a.example/b#secret", "https://a.example/b"),
        ])
    func name(url: String, name: String) {
        #expect(Mirrors.Mirror(url: url, host: "a.example").name == name)
    }

    @Test("listed: a mirror that failed is asked last for ten minutes, the longest failure first")
    func failed() {
        var machine = MirrorMachine()
        #expect(plan(&machine, listed, at: 0) == [0, 1, 2])
        machine.failed("https://a/", retryAfter: nil, at: Self.at(1))
        machine.worked("https://b/", after: nil, at: Self.at(2))
        #expect(plan(&machine, listed, at: 3) == [1, 2, 0])
        machine.failed("https://b/", retryAfter: nil, at: Self.at(300))
        #expect(plan(&machine, listed, at: 301) == [2, 0, 1])
        machine.failed("https://c/", retryAfter: nil, at: Self.at(302))
        #expect(plan(&machine, listed, at: 303) == [0, 1, 2])
        #expect(plan(&machine, listed, at: 602) == [0, 1, 2])
        #expect(plan(&machine, listed, at: 901) == [0, 1, 2])
        machine.worked("https://b/", after: nil, at: Self.at(310))
        #expect(plan(&machine, listed, at: 311) == [1, 0, 2])
    }

    @Test("failures on another network say nothing about this one")
    func otherNetwork() {
        var machine = MirrorMachine()
        _ = plan(&machine, listed, at: 0)
        machine.failed("https://a/", retryAfter: nil, at: Self.at(1))
        #expect(plan(&machine, listed, at: 2) == [1, 2, 0])
        #expect(plan(&machine, listed, at: 3, epoch: 2) == [0, 1, 2])
    }

    @Test("a mirror with Retry-After is not asked until then, unless the run is forced")
    func retryAfter() {
        var machine = MirrorMachine()
        _ = plan(&machine, listed, at: 0)
        machine.failed("https://a/", retryAfter: .seconds(3600), at: Self.at(0))
        #expect(plan(&machine, listed, at: 1000) == [1, 2])
        #expect(plan(&machine, listed, at: 1000, isForced: true) == [0, 1, 2])
        #expect(machine.wait(listed, at: Self.at(1000)) == nil)
        machine.failed("https://b/", retryAfter: .seconds(600), at: Self.at(1000))
        machine.failed("https://c/", retryAfter: .seconds(900), at: Self.at(1000))
        #expect(plan(&machine, listed, at: 1100) == [])
        #expect(machine.wait(listed, at: Self.at(1100)) == .seconds(500))
        #expect(plan(&machine, listed, at: 1600) == [1])
        #expect(plan(&machine, listed, at: 3600) == [0, 1, 2])
        machine.failed("https://a/", retryAfter: .seconds(1 << 40), at: Self.at(4000))
        #expect(plan(&machine, listed, at: 4000 + 7 * 24 * 3600) == [0, 1, 2], "it is bounded")
    }

    @Test("fastest: each mirror is measured once, then a change needs twice the speed")
    func fastest() {
        let mirrors = Self.mirrors(.fastest, "a", "b", "c")
        var machine = MirrorMachine()
        #expect(plan(&machine, mirrors, at: 0) == [0, 1, 2])
        machine.worked("https://a/", after: .milliseconds(100), at: Self.at(0))
        #expect(plan(&machine, mirrors, at: 1) == [1, 2, 0])
        machine.worked("https://b/", after: .milliseconds(60), at: Self.at(1))
        #expect(plan(&machine, mirrors, at: 2) == [2, 1, 0])
        machine.worked("https://c/", after: .milliseconds(200), at: Self.at(2))
        #expect(plan(&machine, mirrors, at: 3) == [1, 0, 2])
        machine.worked("https://b/", after: .milliseconds(60), at: Self.at(3))
        for second in 4..<20 { machine.worked("https://b/", after: .milliseconds(180), at: Self.at(Double(second))) }
        #expect(plan(&machine, mirrors, at: 21) == [1, 0, 2], "not twice as slow")
        for second in 22..<40 { machine.worked("https://b/", after: .milliseconds(400), at: Self.at(Double(second))) }
        #expect(plan(&machine, mirrors, at: 41) == [0, 1, 2])
        #expect(plan(&machine, mirrors, at: 41 + 24 * 3600) == [0, 1, 2], "all are measured again")
    }

    @Test("stable: the same order for one share, and all orders are equally frequent")
    func stable() {
        let mirrors = Self.mirrors(.stable, "a", "b", "c")
        var counts: [[Int]: Int] = [:]
        for step in 0..<600 {
            let share = (Double(step) + 0.5) / 600
            var machine = MirrorMachine()
            let order = plan(&machine, mirrors, at: 0, share: share)
            #expect(order.sorted() == [0, 1, 2])
            #expect(plan(&machine, mirrors, at: 100, share: share) == order)
            counts[order, default: 0] += 1
        }
        #expect(counts.count == 6 && counts.values.allSatisfy { $0 == 100 })
        #expect(MirrorMachine.permutation(of: 8, 0.999_999_999_999).sorted() == Array(0..<8))
    }

    @Test("what is known of a mirror that is not configured any more is forgotten")
    func forgotten() {
        var machine = MirrorMachine()
        _ = plan(&machine, listed, at: 0)
        machine.failed("https://a/", retryAfter: .seconds(3600), at: Self.at(0))
        #expect(plan(&machine, Self.mirrors(.listed, "b", "c"), at: 1) == [0, 1])
        #expect(plan(&machine, listed, at: 2) == [0, 1, 2])
    }
}
