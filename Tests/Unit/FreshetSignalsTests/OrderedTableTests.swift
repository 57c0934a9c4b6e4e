import Testing

@testable import FreshetSignals

@Suite("The ordered table")
struct OrderedTableTests {
    @Test("keeps the order through removals and compaction, and rejects removed keys")
    func order() throws {
        var table = OrderedTable<Int>()
        let keys = (0..<100).map { table.append($0) }
        for index in 0..<100 where index % 3 != 0 {
            #expect(table.remove(keys[index]) == index)
            #expect(table.remove(keys[index]) == nil)
        }
        table.updateEach { $0 += 1000 }
        #expect(table.update(keys[3]) { $0 } == 1003)
        #expect(table.update(keys[4]) { $0 } == nil)
        let last = table.append(7)
        var seen: [Int] = []
        table.forEach { seen.append($0) }
        #expect(seen == stride(from: 0, to: 100, by: 3).map { $0 + 1000 } + [7])
        #expect(table.count == 35)
        #expect(table.removeAll() == seen)
        #expect(table.count == 0)
        #expect(table.remove(last) == nil)
        #expect(table.append(1) != last)
    }
}
