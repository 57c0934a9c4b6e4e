import FreshetSignals
import FreshetTestKit
import SignalExamples
import Testing

@Suite("Example: observed list")
struct ObservedListTests {
    let executor = SerialTestExecutor()
    let list = ObservedList()

    @Test("an observer gets the snapshot first, then one difference for each change")
    func differences() throws {
        try executor.run { [list] in
            list.edit { $0 = ["milk", "tea"] }
            var changes = list.changes.makeAsyncIterator()
            #expect(await changes.next(isolation: nil) == .snapshot(["milk", "tea"]))
            list.edit { $0.append("salt") }
            let added = try #require(CollectionDifference([.insert(offset: 2, element: "salt", associatedWith: nil)]))
            #expect(await changes.next(isolation: nil) == .difference(added))
            list.edit { $0.removeFirst() }
            let removed = try #require(CollectionDifference([.remove(offset: 0, element: "milk", associatedWith: nil)]))
            #expect(await changes.next(isolation: nil) == .difference(removed))
        }
    }

    @Test("a slow observer gets several changes as one difference")
    func slow() throws {
        try executor.run { [list] in
            var changes = list.changes.makeAsyncIterator()
            var shown = try #require(await changes.next(isolation: nil)?.applied(to: []))
            for item in ["milk", "tea", "salt"] {
                list.edit { $0.append(item) }
            }
            list.edit { $0.removeFirst() }
            shown = try #require(await changes.next(isolation: nil)?.applied(to: shown))
            #expect(shown == ["tea", "salt"])
        }
    }

    @Test("an edit without a change emits nothing")
    func nothing() throws {
        try executor.run { [list] in
            var changes = list.changes.makeAsyncIterator()
            #expect(await changes.next(isolation: nil) == .snapshot([]))
            list.edit { $0 += [] }
            list.edit { $0.append("milk") }
            let added = try #require(CollectionDifference([.insert(offset: 0, element: "milk", associatedWith: nil)]))
            #expect(await changes.next(isolation: nil) == .difference(added))
        }
    }

    @Test("two observers that begin at different times, and a burst: both end with the current list")
    func burst() throws {
        try executor.run { [list] in
            await withTaskGroup(of: Void.self) { group in
                for observer in 0..<2 {
                    group.addTask {
                        for _ in 0..<observer * 50 { await Task.yield() }
                        var shown: [String]? = []
                        for await change in list.changes {
                            shown = shown.flatMap { change.applied(to: $0) }
                            if shown == nil || shown?.last == "last" { break }
                        }
                        #expect(shown == (0..<200).map { "\($0)" } + ["last"])
                    }
                }
                for item in 0..<200 {
                    list.edit { $0.append("\(item)") }
                    await Task.yield()
                }
                list.edit { $0.append("last") }
            }
        }
    }

    @Test("a difference to other items cannot be applied")
    func wrongItems() throws {
        let removed = try #require(CollectionDifference([.remove(offset: 3, element: "milk", associatedWith: nil)]))
        #expect(ObservedList.Change.difference(removed).applied(to: ["tea"]) == nil)
    }
}
