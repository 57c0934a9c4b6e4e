import FreshetModel
import TestSupport
import Testing

@testable import FreshetPipelines

@Suite("The waits of many pipelines' hooks")
struct DeadlineQueueTests {
    private let start = BootInstant.now

    @Test("the earliest deadline is found; a moved or removed one does not count any more")
    func order() {
        var queue = DeadlineQueue()
        #expect(queue.earliest() == nil)
        for (name, seconds) in [("a", 5), ("b", 3), ("c", 4)] { queue.set(name, to: start + .seconds(seconds)) }
        #expect(queue.earliest() == start + .seconds(3))
        queue.set("b", to: start + .seconds(9))
        #expect(queue.earliest() == start + .seconds(4))
        queue.set("c", to: nil)
        #expect(queue.popDue(at: start + .seconds(8)) == ["a"])
        #expect(queue.earliest() == start + .seconds(9))
        #expect(queue.popDue(at: start + .seconds(9)) == ["b"])
        #expect(queue.earliest() == nil && queue.popDue(at: start + .seconds(99)) == [])
    }

    @Test("it behaves as a search of all deadlines would, and stale entries do not fill the memory")
    func random() {
        var dice = SeededGenerator(seed: 11)
        var queue = DeadlineQueue()
        var model: [String: BootInstant] = [:]
        for step in 0..<4_000 {
            let name = "p\(Int.random(in: 0..<40, using: &dice))"
            let deadline =
                Int.random(in: 0..<4, using: &dice) == 0
                ? nil : start + .milliseconds(Int.random(in: 0..<100, using: &dice) + step)
            queue.set(name, to: deadline)
            model[name] = deadline
            if step.isMultiple(of: 7) {
                let now = start + .milliseconds(step + 20)
                let due = model.filter { $0.value <= now }.keys.sorted()
                #expect(queue.popDue(at: now) == due)
                for name in due { model[name] = nil }
            }
            #expect(queue.earliest() == model.values.min())
            #expect(queue.entryCount <= 2 * model.count + 65)
        }
    }

    @Test("after any events, the number of failed hooks and the next wake-up are those of all pipelines")
    func consistent() {
        var dice = SeededGenerator(seed: 5)
        var driver = HookDriver()
        let names = (0..<12).map { "p\($0)" }
        var numbers: [String: Int] = [:]
        func change(_ name: String) {
            numbers[name, default: 1] += 1
            driver.generationChanged(name, numbers[name, default: 1])
        }
        for _ in 0..<3_000 {
            let name = names[Int.random(in: 0..<names.count, using: &dice)]
            switch Int.random(in: 0..<9, using: &dice) {
            case 0:
                driver.configure(
                    name, ["x", "y"], current: numbers[name] ?? 1, splay: .seconds(Int.random(in: 0...2, using: &dice)))
            case 1: driver.perform(driver.machine.dismiss(name, at: driver.now))
            case 2...3: change(name)
            case 4...5: driver.fail(name)
            case 6: driver.succeed(name)
            case 7: driver.advance(.milliseconds(Int.random(in: 0..<900, using: &dice)))
            default: driver.wake()
            }
            #expect(driver.machine.failing == names.reduce(0) { $0 + driver.machine.failing($1) })
            // No wait ends without a wake-up.
            let due = names.flatMap { driver.machine.pendingHooks(of: $0) }.compactMap(\.next)
                .filter { $0 > driver.now }.min()
            if let due {
                #expect(driver.wakeUp.map { $0 <= due } == true)
            }
        }
    }
}
