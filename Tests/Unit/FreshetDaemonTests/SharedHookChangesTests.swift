import FreshetModel
import Testing
import WorldTestSupport

@testable import FreshetDaemon
@testable import FreshetPipelines

@Suite("The input of a hook of several pipelines")
struct SharedHookChangesTests {
    private func order(_ names: [String], more: Int = 0) -> SharedHookMachine.Order {
        let hook = SharedHookDefinition("all", on: names, HookDefinition(["/x"]))
        return SharedHookMachine.Order(
            hook: hook,
            changes: names.map {
                HookMachine.Order(
                    pipeline: $0, hook: hook.action, generation: generation, notified: nil, attempt: 1,
                    memory: StoredHookState())
            }, more: more, attempt: 3)
    }

    private let generation = CurrentGeneration(
        number: 7, size: 10, digest: "x", committedAt: 0, path: "/current/a")

    /// A change whose difference has this many bytes.
    private func change(_ name: String, lines: Int) -> HookChange {
        var change = HookChange(order([name]).changes[0], notified: nil, time: 5)
        change.difference = HookChange.Difference(
            bytes: 1, lines: lines > 0 ? [String(repeating: "+", count: lines)] : nil)
        return change
    }

    @Test("the changes follow the hook's name and the attempt; members without a value are absent")
    func text() {
        var changes = SharedHookChanges(order(["a"]), time: 9)
        changes.append(change("a", lines: 2), isCompared: true)
        #expect(
            changes.text.hasPrefix(#"{"attempt":3,"changes":[{"attempt":1,"current":{"committedAt":0,"digest":"#))
        #expect(changes.text.hasSuffix(#","pipeline":"a","time":5}],"hook":"all","time":9}"# + "\n"))
        #expect(SharedHookChanges(order([], more: 4), time: 9).text.contains(#""more":4"#))
    }

    @Test("the details have a limited size, and the others are counted")
    func limitedBytes() {
        var changes = SharedHookChanges(order(["a"]), time: 9)
        let half = SharedHookChanges.detailBytes / 2 - 1_000
        for name in ["a", "b", "c", "d"] { changes.append(change(name, lines: half), isCompared: true) }
        #expect(changes.changes.map(\.hasDetails) == [true, true, false, false] && changes.withoutDetails == 2)
        #expect(changes.changes.map(\.difference?.bytes) == [1, 1, 1, 1])
        // A small one still fits.
        changes.append(change("e", lines: 10), isCompared: true)
        #expect(changes.changes.last?.hasDetails == true && changes.withoutDetails == 2)
        #expect(changes.text.utf8.count < SharedHookChanges.detailBytes + 10_000)
    }

    @Test("a limited number of contents is compared")
    func limitedComparisons() {
        var changes = SharedHookChanges(order(["a"]), time: 9)
        for number in 0..<150 {
            let isCompared = changes.comparesContent
            #expect(isCompared == (number < SharedHookChanges.mostDifferences))
            changes.append(change("p\(number)", lines: isCompared ? 1 : 0), isCompared: isCompared)
        }
        #expect(changes.changes.count == 150 && changes.withoutDetails == 50)
    }
}
